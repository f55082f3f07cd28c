"""`daiku plan`: create a plan for a goal; list, show, edit, approve, run, export, import, and delete plans."""

from __future__ import annotations

import os
import sys
import tempfile
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from daiku.domain.errors import DaikuError
from daiku.domain.work.plans import Plan, in_full
from daiku.fronts.cli.app_setup import in_app
from daiku.fronts.cli.commands.run import run_agent, start_request
from daiku.fronts.cli.display.term import clip, human_stream, person_present, safe, terminal
from daiku.fronts.cli.main import usage_error, write_json
from daiku.fronts.cli.options import RunOptions, place_options, prompt_text, run_options
from daiku.library.fronts import App, RunRequest
from daiku.library.plans.managing import approve_draft, delete_plan, find_plan, save_plan, work_request
from daiku.team.rules.plans.markdown import read_plan_text, revise_plan, to_markdown
from daiku.texts.terminal import localize, say

MAX_FILE = 10_000_000
"""Maximum bytes of an imported plan."""


class GoalGroup(click.Group):
    """A group whose first argument is a subcommand or else the text of a goal."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in self.commands:
            inner = click.Group(self.name, commands=self.commands, help=self.help)
            return inner.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        literal = "--" in args
        rest = click.Command.parse_args(self, ctx, args)
        goal = ctx.params.get("goal", ())
        if len(goal) == 1 and not literal and not ctx.resilient_parsing:
            self._refuse_command_word(ctx, goal[0])
        return rest

    def _refuse_command_word(self, ctx: click.Context, word: str) -> None:
        """Raise UsageError if the goal is a single word that is or resembles a subcommand."""
        near = get_close_matches(word.lower(), self.commands, n=1, cutoff=0.8)
        if near:
            raise click.UsageError(say("plan.is_a_command", word=word, command=near[0]), ctx)

    def invoke(self, ctx: click.Context) -> Any:
        return click.Command.invoke(self, ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return click.Command.collect_usage_pieces(self, ctx)


# Options may follow the goal, as in `daiku run`.
@click.group(cls=GoalGroup, context_settings={"allow_interspersed_args": True}, help=say("help.plan"))
@click.argument("goal", nargs=-1, required=True)
@click.option("--work", is_flag=True, help=say("help.opt.work"))
@run_options
def plan(goal: tuple[str, ...], *, work: bool, **options: Any) -> int:
    parsed = RunOptions(**options)
    show_plan = None if parsed.as_json or work else _print_new_plan
    return run_agent(prompt_text(goal), "team" if work else "planner", parsed, then=show_plan)


def _print_new_plan(app: App, plan_id: str) -> None:
    """Print the new plan to the user: its id, steps, checks, and dependencies."""
    people = human_stream()
    new_plan = app.journal.get_plan(plan_id)
    people.write(f"\n{_render_plan(new_plan)}\n")
    people.write(people.paint(say("plan.next", plan=new_plan.plan_id), "dim") + "\n")


def _render_plan(plan: Plan) -> str:
    return f"{plan.plan_id}  {plan.status}\n\n{safe(to_markdown(plan)).rstrip()}"


def _find_plan(folder: str | None, name: str) -> Plan:
    async def find(app: App) -> Plan:
        return find_plan(app, name)

    return in_app(folder, find)


def _print_plan(plan: Plan, line: str, *, as_json: bool) -> None:
    """Print the plan as JSON, or one line about it."""
    if as_json:
        write_json(in_full(plan).model_dump_json(by_alias=True))
    else:
        click.echo(line)


@plan.command("list", help=say("help.plan.list"))
@place_options
def list_(folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> tuple[Plan, ...]:
        return app.journal.list_plans(app.runs.services.workspace_key)

    plans = in_app(folder, work)
    if as_json:
        write_json("[" + ",".join(in_full(stored).model_dump_json(by_alias=True) for stored in plans) + "]")
        return
    out = terminal(sys.stdout)
    if not plans:
        click.echo(say("none_yet"))
    for stored in plans:
        done, total = stored.progress()
        name = clip(safe(stored.name), out.width - 40) if out.live else safe(stored.name)
        click.echo(f"{stored.plan_id}  {stored.status:<11}  {done}/{total}  {name}".rstrip())


@plan.command("show", help=say("help.plan.show"))
@click.argument("name", metavar="[PLAN]", required=False, default="")
@place_options
def show(name: str, folder: str | None, as_json: bool) -> None:  # click's flag
    selected = _find_plan(folder, name)
    _print_plan(selected, _render_plan(selected), as_json=as_json)


@plan.command("edit", help=say("help.plan.edit"))
@click.argument("name", metavar="[PLAN]", required=False, default="")
@place_options
def edit(name: str, folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> Plan:
        selected = find_plan(app, name)
        content = to_markdown(selected)
        path, edited = _edit_text(content)
        if edited == content:
            path.unlink()
            return selected
        try:
            if app.journal.get_plan(selected.plan_id) != selected:
                raise usage_error(say("plan.changed_meanwhile", name=selected.name))
            revised = await save_plan(app, selected, revise_plan(selected, edited))
        except DaikuError as error:
            raise usage_error(
                say("plan.not_saved", why=localize(error.failure.message), path=path)
            ) from error
        path.unlink()
        return revised

    saved = in_app(folder, work)
    _print_plan(saved, _render_plan(saved), as_json=as_json)


def _edit_text(content: str) -> tuple[Path, str]:
    """Open the text in the user's editor; return its file and the new text. Raises UsageError."""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR") or person_present()):
        raise usage_error(say("plan.no_editor"))
    handle, name = tempfile.mkstemp(prefix="daiku-plan-", suffix=".md")
    os.close(handle)
    path = Path(name)
    path.write_text(content, encoding="utf-8")
    try:
        click.edit(filename=name)
        return path, path.read_text(encoding="utf-8-sig")
    except (click.ClickException, UnicodeDecodeError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise usage_error(say("plan.not_saved", why=message, path=path)) from error


@plan.command("approve", help=say("help.plan.approve"))
@click.argument("name", metavar="[PLAN]", required=False, default="")
@place_options
def approve_(name: str, folder: str | None, as_json: bool) -> None:  # click's flag
    async def work(app: App) -> Plan:
        return await approve_draft(app, find_plan(app, name))

    approved = in_app(folder, work)
    _print_plan(approved, say("plan.approved", name=safe(approved.name)), as_json=as_json)


@plan.command("work", help=say("help.plan.work"))
@click.argument("name", metavar="[PLAN]", required=False, default="")
@click.option("--step", default="", metavar="STEP", help=say("help.plan.step"))
@run_options
def work_(name: str, step: str, **options: Any) -> int:
    async def request(app: App) -> RunRequest:
        return await work_request(app, find_plan(app, name), step)

    return start_request(request, RunOptions(**options))


@plan.command("export", help=say("help.plan.export"))
@click.argument("name", metavar="[PLAN]", required=False, default="")
@place_options
def export_(name: str, folder: str | None, as_json: bool) -> None:  # click's flag
    selected = _find_plan(folder, name)
    _print_plan(selected, to_markdown(selected).rstrip("\n"), as_json=as_json)


@plan.command("import", help=say("help.plan.import"))
@click.argument("file", type=click.File("rb"))
@place_options
def import_(file: Any, folder: str | None, as_json: bool) -> None:  # click's file and flag
    data: bytes = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise usage_error(say("error.prompt_large", where=file.name, limit=MAX_FILE))
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise usage_error(say("error.prompt_utf8", where=file.name)) from None

    async def work(app: App) -> Plan:
        return await app.runs.keep_plan(read_plan_text(content), None)

    stored = in_app(folder, work)
    _print_plan(stored, stored.plan_id, as_json=as_json)


@plan.command("delete", help=say("help.plan.delete"))
@click.argument("name", metavar="PLAN")
@click.option("-C", "folder", metavar="DIR", help=say("help.opt.dir"))
def delete(name: str, folder: str | None) -> None:
    async def work(app: App) -> str:
        selected = find_plan(app, name)
        await delete_plan(app, selected)
        return selected.plan_id

    click.echo(say("deleted", session=in_app(folder, work)))
