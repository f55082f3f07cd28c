"""What the panel and the docs take from the server's tables: tools, agents, events that are one line; providers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
from pydantic.alias_generators import to_camel

from daiku.domain.events import EVENTS
from daiku.domain.labels import Label, Line, LineEvent
from daiku.fronts.cli.main import cli
from daiku.models.table import PROVIDERS
from daiku.team.table import ALL_AGENTS
from daiku.texts.rules.visible import BLANK, FLAGS, UNSEEN
from daiku.tools.table import collect_faces

HEADER = """// GENERATED from the server's tables of tools, agents and events by .dev/gen.py; do not edit, run `npm run gen`.

interface Face {
  /** A codicon. */
  icon: string;
  /** What is done; to be translated. */
  title: string;
  /** What it is done to, made of the call's arguments, see `toolFace.ts`. */
  subject: string;
}

export interface Line {
  /** A codicon. */
  icon: string;
  /** To be translated; `{name}` is a field of the event. */
  text: string;
  /** Another text where a field of the event has this value. */
  cases?: readonly { field: string; value: string; text: string }[];
}
"""


def tables() -> str:
    """The text of tables.gen.ts."""
    tools = "".join(
        f"  {_text(name)}: {{ icon: {_text(face.icon)}, title: {_text(face.label.en)}, subject: {_text(face.subject)} }},\n"
        for name, face in collect_faces().items()
    )
    agents = "".join(f"  {name}: {_text(agent.label.en)},\n" for name, agent in ALL_AGENTS.items())
    lines = "".join(
        f"  {name}: {_line(event.line) if event.line else 'null'},\n"
        for name, event in EVENTS.items()
        if issubclass(event, LineEvent)
    )
    return f"""{HEADER}
/** Tools by name. */
export const TOOL_FACES: Readonly<Record<string, Face>> = {{
{tools}}};

/** Agents by name; to be translated. */
export const AGENT_LABELS: Readonly<Record<string, string>> = {{
{agents}}};

/** Events that are shown as one line, or not at all. */
export const EVENT_LINES = {{
{lines}}} satisfies Record<string, Line | null>;
"""


def hidden() -> str:
    """Return the text of hidden.gen.ts: the server's characters that hide or reorder text."""
    return f"""// GENERATED from server/daiku/texts/rules/visible.py by .dev/gen.py; do not edit, run `npm run gen`.

/** Characters that hide or reorder text, for a regular expression's character class. */
export const UNSEEN = {_text(_to_pattern(UNSEEN))};

/** Letters and marks that render as blank, for a character class as well. */
export const BLANK = {_text(_to_pattern(BLANK))};

/** Regular expression for flags that are written with tag characters. */
export const FLAGS = {_text(_to_pattern(FLAGS))};
"""


def _to_pattern(pattern: str) -> str:
    """Return a regular expression with JavaScript escapes for non-ASCII characters."""
    return "".join(char if char.isascii() else f"\\u{{{ord(char):x}}}" for char in pattern)


def _line(line: Line) -> str:
    cases = "".join(
        f"\n      {{ field: {_text(to_camel(each.field))}, value: {_text(each.value)}, text: {_text(on_wire(each.editor.en))} }},"
        for each in line.cases
    )
    more = f", cases: [{cases}\n    ]" if cases else ""
    return f"{{ icon: {_text(line.icon)}, text: {_text(on_wire(line.label.en))}{more} }}"


def providers() -> str:
    """Return the table of the providers that a user connects: name and setup."""
    rows = [
        f"| {entry.label} | {entry.how or f'`{entry.key_env[0]}`, or *Daiku: Set API Key* in VS Code'} |"
        for entry in PROVIDERS.values()
        if entry.needs != "script"
    ]
    return "\n".join(["| what | how |", "|---|---|", *rows])


def command_tree() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and subcommand with its path, groups first."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None:
            yield from _below((name,), command)


def _below(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _below((*path, name), inner)


def labels(language: str) -> dict[str, str]:
    """The labels in the tables by their English, in `language`."""
    return {on_wire(label.en): on_wire(label.text(language)) for label in _labels()}


def _labels() -> Iterator[Label]:
    yield from (face.label for face in collect_faces().values())
    yield from (agent.label for agent in ALL_AGENTS.values())
    for line in (e.line for e in EVENTS.values() if issubclass(e, LineEvent) and e.line):
        yield from (line.label, *(each.editor for each in line.cases))


def on_wire(text: str) -> str:
    """A label with fields named as on the wire."""
    return re.sub(r"\{(\w+)\}", lambda field: f"{{{to_camel(field[1])}}}", text)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
