"""The user's consent to an MCP server, and the forms (elicitation) with which a server asks the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.events import ApprovalDecision
from daiku.domain.servers import Consent, ConsentQuestion
from daiku.texts.text import NO_TEXT, Text, joined, renderings, text
from daiku.tools.mcp.definitions import Listing, OfferedTool, clean_text, describe_changes, hash_text
from daiku.tools.mcp.launch import Launch, find_token_path
from daiku.tools.tool import Ask

MAX_FIELDS = 20
"""Fields of one form."""
MAX_ATTEMPTS = 3
"""Attempts per field."""
MAX_MESSAGE = 2000
"""Characters of a server's message."""
ANSWER_CHOICE, DECLINE_CHOICE, DONE_CHOICE, SKIP_CHOICE = (
    text("mcp.form_answer"),
    text("mcp.form_decline"),
    text("mcp.form_done"),
    text("mcp.form_skip"),
)


@dataclass(frozen=True, slots=True)
class FormResult:
    """The result of a form; `content` if it was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class _InvalidAnswer:
    """An answer that does not match the field; `reason` is for the user."""

    reason: Text


async def fill_form(server: str, message: str, schema: JsonObject, ask: Ask) -> FormResult:
    """Ask the user the form, one question per field. Any unclear answer to the first question declines."""
    raw = schema.get("properties")
    properties = dict(list(raw.items())[:MAX_FIELDS]) if isinstance(raw, dict) else {}
    required_names = schema.get("required")
    required = (
        [name for name in required_names if isinstance(name, str)] if isinstance(required_names, list) else []
    )
    if not set(required) <= set(properties):
        return FormResult("cancel")
    message_text = text("mcp.asks", name=repr(server), message=clean_text(message, MAX_MESSAGE))
    fields = ", ".join(clean_text(name, 80) for name in properties)
    if fields:
        message_text = joined("lines", [message_text, text("mcp.form_wants", names=fields)])
    if not await _confirm(message_text, ANSWER_CHOICE, ask):
        return FormResult("decline")
    content: JsonObject = {}
    for name, node in properties.items():
        value = await _ask_field(name, node if isinstance(node, dict) else {}, name in required, ask)
        if isinstance(value, _InvalidAnswer):
            return FormResult("cancel")
        if value is not None:
            content[name] = value
    return FormResult("accept", content)


async def ask_to_open_page(server: str, message: str, url: str, ask: Ask) -> FormResult:
    """Ask the user to open a page of the server. Daiku never opens it."""
    message_text = text(
        "mcp.open_page",
        name=repr(server),
        message=clean_text(message, MAX_MESSAGE),
        url=clean_text(url, MAX_MESSAGE),
    )
    is_done = await _confirm(joined("lines", [message_text, text("mcp.only_if_expected")]), DONE_CHOICE, ask)
    return FormResult("accept" if is_done else "decline")


async def _confirm(question: Text, yes: Text, ask: Ask) -> bool:
    """Return True if the user chose `yes`; everything else declines."""
    return (await ask(question, (yes, DECLINE_CHOICE))).choice == 0


async def _ask_field(name: str, node: JsonObject, required: bool, ask: Ask) -> JsonValue | _InvalidAnswer:
    """Return the value, None for an optional field that was skipped, _InvalidAnswer if no answer matched."""
    is_list = node.get("type") == "array"
    items = node.get("items")
    choices = _list_choices(items if is_list and isinstance(items, dict) else node)
    default = node.get("default")
    description = clean_text(str(node.get("description") or node.get("title") or ""), 500)
    question = Text(f"{clean_text(name, 80)}{f' – {description}' if description else ''}")
    if is_list:
        question = text("mcp.form_several", what=question)
    if default is not None:
        question = text("mcp.form_default", what=question, value=clean_text(str(default), 80))
    choice_list = (
        tuple(choices) if required and default is None else (*choices, SKIP_CHOICE) if choices else ()
    )
    reply, problem = "", NO_TEXT
    for _ in range(MAX_ATTEMPTS):
        answer = await ask(joined("sentences", [problem, question]), choice_list)
        reply = answer.text.strip() if answer.choice is None else (*choices, "")[answer.choice]
        if not reply:
            if default is not None:
                return default
            if not required:
                return None
            problem = text("mcp.answer_needed")
            continue
        value = _parse_values(reply, choices, node) if is_list else _parse_value(reply, choices, node)
        if not isinstance(value, _InvalidAnswer):
            return value
        problem = value.reason
    return _InvalidAnswer(problem)


def _list_choices(node: JsonObject) -> dict[Text, JsonValue]:
    """Map each displayed choice to its value."""
    if node.get("type") == "boolean":
        return {text("mcp.yes"): True, text("mcp.no"): False}
    values, names = node.get("enum"), node.get("enumNames")
    if isinstance(values, list):
        displayed = names if isinstance(names, list) and len(names) == len(values) else values
        return {
            Text(clean_text(str(name), 200)): value for name, value in zip(displayed, values, strict=True)
        }
    options = node.get("oneOf") or node.get("anyOf")
    choices: dict[Text, JsonValue] = {}
    for option in options if isinstance(options, list) else ():
        if isinstance(option, dict) and "const" in option:
            choices[Text(clean_text(str(option.get("title") or option["const"]), 200))] = option["const"]
    return choices


def _parse_value(reply: str, choices: dict[Text, JsonValue], node: JsonObject) -> JsonValue | _InvalidAnswer:
    if choices:
        for displayed, value in choices.items():
            if reply.casefold() in {name.casefold() for name in (*renderings(displayed), str(value))}:
                return value
        return _InvalidAnswer(text("mcp.one_of", names=joined("list", choices)))
    match node.get("type"):
        case "integer" | "number" as kind:
            return _parse_number(reply, kind == "integer", node)
        case _:
            low, high = node.get("minLength"), node.get("maxLength")
            if isinstance(low, int) and len(reply) < low:
                return _InvalidAnswer(text("mcp.at_least_characters", low=low))
            if isinstance(high, int) and len(reply) > high:
                return _InvalidAnswer(text("mcp.at_most_characters", high=high))
            return reply


def _parse_values(reply: str, choices: dict[Text, JsonValue], node: JsonObject) -> JsonValue | _InvalidAnswer:
    parsed: list[JsonValue] = []
    for part in (p.strip() for p in reply.split(",") if p.strip()):
        value = _parse_value(part, choices, {"type": "string"})
        if isinstance(value, _InvalidAnswer):
            return value
        parsed.append(value)
    low, high = node.get("minItems"), node.get("maxItems")
    if (isinstance(low, int) and len(parsed) < low) or (isinstance(high, int) and len(parsed) > high):
        return _InvalidAnswer(text("mcp.wrong_count"))
    return parsed


def _parse_number(reply: str, is_integer: bool, node: JsonObject) -> JsonValue | _InvalidAnswer:
    try:
        value = int(reply) if is_integer else float(reply)
    except ValueError:
        return _InvalidAnswer(text("mcp.whole_number") if is_integer else text("mcp.number"))
    low, high = node.get("minimum"), node.get("maximum")
    if isinstance(low, int | float) and value < low:
        return _InvalidAnswer(text("mcp.at_least", low=low))
    if isinstance(high, int | float) and value > high:
        return _InvalidAnswer(text("mcp.at_most", high=high))
    return value


@dataclass(frozen=True, slots=True)
class McpHost:
    """The environment of a server.

    `lookup` and `remember` store consents; `on_change` is called when the offered tools change; `notify`
    shows the user a message; `has_user` returns True if a user is there.
    """

    home: Path
    lookup: Callable[[], Consent | None]
    remember: Callable[[Consent], None]
    on_change: Callable[[], None]
    notify: Callable[[Text], None]
    has_user: Callable[[], bool]


class ServerConsent:
    """The user's consent to a configured server. `problem`: why the server is unusable whatever they answer."""

    def __init__(self, launch: Launch, host: McpHost, problem: Text) -> None:
        self.launch = launch
        self.problem = problem
        self.listing = Listing()
        """The server's current offer."""
        self._host = host
        self._consent: Consent | None = None
        self._is_loaded = False
        self._declined = ""

    @property
    def consent(self) -> Consent | None:
        """The user's consent to exactly this launch, once or stored; None if there is none."""
        if not self._is_loaded:
            self._is_loaded = True
            stored = self._host.lookup()
            self._consent = stored if stored is not None and stored.launch == self.launch.digest else None
        return self._consent

    @property
    def is_allowed(self) -> bool:
        """True if the server may be used."""
        consent = self.consent
        return not self.problem and consent is not None and consent.answer == "allow"

    def find_question(self) -> ConsentQuestion | None:
        """Return the question that the user must answer before this server, or more of it, is used."""
        if self.problem:
            return None
        if self.consent is None:
            return ConsentQuestion(
                server=self.launch.name,
                key=f"mcp:{self.launch.name}:{self.launch.digest}",
                preview=self.launch.preview,
                why=joined(
                    "clauses",
                    [text("mcp.settings_name", name=self.launch.name), text("mcp.not_before_allowed")],
                ),
                remember=text("mcp.remember_use", name=self.launch.name),
            )
        differs = self.describe_changes()
        if not differs or not self.is_allowed or self._declined == self._hash_listing():
            return None
        return ConsentQuestion(
            server=self.launch.name,
            key=f"mcp:{self.launch.name}:{self._hash_listing()}",
            preview=text("mcp.offer_changed", name=self.launch.name, differs=differs),
            why=text("mcp.changed_since", name=self.launch.name),
            remember=text("mcp.remember_now", name=self.launch.name),
        )

    def record_answer(self, question: ConsentQuestion, decision: ApprovalDecision) -> None:
        """Apply the user's decision: `once` holds for this process, `always` is stored."""
        is_allowed = decision in ("allow_once", "allow_always")
        if question.key.endswith(self.launch.digest):
            self._consent = Consent(launch=self.launch.digest, answer="allow" if is_allowed else "reject")
        elif not is_allowed:
            self._declined = self._hash_listing()
            return
        elif self._consent is not None:
            self._consent = self._consent.model_copy(update={"tools": self.listing.digests})
            self._host.on_change()
        if decision.endswith("always") and self._consent is not None:
            self._host.remember(self._consent)

    def forget(self) -> None:
        """Delete the consent and the sign-in."""
        self._consent, self._is_loaded, self._declined = None, False, ""
        find_token_path(self._host.home, self.launch.settings.url).unlink(missing_ok=True)

    def describe_changes(self) -> Text:
        """Describe what is new or changed since the user consented; empty if nothing is."""
        consent = self.consent
        agreed = consent.tools if consent is not None else None
        return NO_TEXT if agreed is None else describe_changes(agreed, self.listing)

    def _hash_listing(self) -> str:
        return hash_text(repr(sorted(self.listing.digests.items())))

    @property
    def offered_tools(self) -> tuple[OfferedTool, ...]:
        """The tools that the user consented to and that have not changed."""
        consent = self.consent
        agreed = (consent.tools if consent is not None else None) or {}
        return tuple(tool for tool in self.listing.tools if agreed.get(tool.name) == tool.digest)

    @property
    def instructions(self) -> str:
        """The server's instructions, if the user consented to them."""
        consent = self.consent
        agreed = (consent.tools if consent is not None else None) or {}
        instructions = self.listing.instructions
        return instructions if instructions and agreed.get("") == self.listing.digests[""] else ""

    def update_listing(self, listing: Listing) -> None:
        """Store the server's new offer. The user's consent covers the first one."""
        self.listing = listing
        consent = self.consent
        if consent is not None and consent.tools is None:
            is_stored = self._host.lookup() == consent
            self._consent = consent.model_copy(update={"tools": listing.digests})
            if is_stored:
                self._host.remember(self._consent)
        self._host.on_change()
