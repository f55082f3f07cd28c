"""The loop's ports for one run: replies, calls, previews, and questions, through guard and journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven, Notice
from daiku.domain.messages import Message, ModelEvent, Usage
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.domain.work.patches import Patch
from daiku.guard.rules.policy import describe_grant
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.live import LiveRun
from daiku.run.ports.guards import guard_reply, guards_of
from daiku.run.ports.policy import restrict_for_work_item
from daiku.run.ports.replies import COMPACT_SHARE, Replies
from daiku.run.ports.token_guards import token_meter
from daiku.run.rules.decide import Rules, never_unfinished
from daiku.run.rules.ports import ApprovalPreview, approval_preview
from daiku.run.rules.state.condense import WORK_KEPT, WORK_SHARE
from daiku.run.rules.state.machine import Move, Recorder, next_preset_call
from daiku.run.rules.state.state import State
from daiku.run.run_budget import Counting, Metered, count_nothing
from daiku.run.services import RunServices
from daiku.team.rules.proof.attempts import EDITING
from daiku.team.rules_files import read_nested_rules
from daiku.texts.rules.visible import show_hidden, show_invisible
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.tool import Answer, Preview, ToolContext

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Verdict
    from daiku.run.ports.replies import McpConsent

_UNKNOWN_PATCH = Patch(files=())
"""Patch of an edit whose preview is not built yet."""


class RunPorts:
    """Implementation of the loop's Ports. Raises DaikuError if the run's model cannot be resolved."""

    def __init__(self, live: LiveRun) -> None:

        log, request = live.log, live.record.state.request
        self._live = live
        self._services = log.services
        self._unwatched = live.tree.approvals == "work"
        """Work-item run: users see questions remotely, one at a time, and answer later."""
        self._config = restrict_for_work_item(log.services.config) if self._unwatched else log.services.config
        self._policy = live.policy()
        self._at_place: set[str] = set()
        """Ids of calls whose edit stays inside the place that the user selected."""
        self._patches: dict[str, Patch] = {}
        """Patches of previewed edits by call id."""
        self._folder_rules = FolderRules(log.services, log.record)
        self._guards = guards_of(log.services, log.agent, nested=log.parent is not None)
        model = log.services.model_of(log.agent, request.model) if request.asks_model else None
        self._meter = token_meter(live)
        self._replies = Replies(
            log,
            None if model is None else Metered(model, live.tree.budget, self._warn, self._request_counter()),
            self._consent() if request.asks_model else None,
            WORK_SHARE if live.tree.approvals == "work" else COMPACT_SHARE,
        )
        if model is not None:
            live.model_prompt = self._replies.model_prompt
        self.agent = log.agent.name
        self.rules = self._build_rules()

    def _request_counter(self) -> Counting:
        return self._meter.request if self._meter.guards else count_nothing

    def _build_rules(self) -> Rules:
        state, agent = self._live.record.state, self._live.log.agent
        machine = None if state.calls.preset else agent.machine
        return Rules(
            spec=self._spec,
            verdict=self._verdict,
            read=self._services.registry.read,
            compact_at=self._replies.compact_at,
            keep_messages=WORK_KEPT if self._live.tree.approvals == "work" else 0,
            tokens=self._replies.tokens,
            prefix=self._replies.prefix,
            objection=self._objection,
            unfinished=never_unfinished if machine is None else machine.unfinished,
            machine=None if state.request.asks_model else self._next_move,
        )

    def _next_move(self, state: State) -> Move:
        machine, tree = self._live.log.agent.machine, self._live.tree
        if state.calls.preset or machine is None:
            return next_preset_call(state)
        return machine.next_move(state, tree.approvals, tree.budget.find_exhaustion())

    def _consent(self) -> McpConsent | None:
        from daiku.run.ports.replies import McpConsent, wants_servers  # when used

        live, servers = self._live, self._services.servers
        if not servers or not wants_servers(servers, live.log.agent):
            return None
        asks = live.record.state.request.mode == "act"
        # An untrusted repository must not make work items ask for consent to its servers.
        is_attended = live.tree.attended and not self._unwatched
        return McpConsent(servers, live.record, self.approval, is_attended, asks, live.log.agent.patterns)

    def _objection(self, state: State) -> Text:
        """Return the reason that a stage's handover cannot be used; empty if it can."""
        log = self._live.log
        if log.parent is None or log.agent.stage is None:
            return NO_TEXT
        handover = log.agent.stage.hand_back(state)
        return handover.problem if isinstance(handover, Unreadable) else NO_TEXT

    def _warn(self, message: Text) -> None:
        self._live.record(Notice(level="warning", text=message))

    def _spec(self, name: str) -> ToolSpec | None:
        return self._replies.tools.get(name)

    def _verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        from daiku.guard.rules.guard import verdict  # when used

        spec = self._replies.tools[call.tool]
        has_preview = spec.effect == "edit" and self._services.registry.has_preview(call.tool)
        patch = self._patches.get(call.id, _UNKNOWN_PATCH if has_preview else None)
        foreign = self._live.record.state.foreign
        placed = call.id in self._at_place
        policy = replace(self._policy, tainted=tainted, foreign=foreign, pointed_at=placed, patch=patch)
        decision = verdict(call, spec, policy)
        # An edit is judged by its patch: build the preview first, then ask the guard again.
        return (
            replace(decision, answer="ask")
            if patch is _UNKNOWN_PATCH and decision.answer == "allow"
            else decision
        )

    def paused(self) -> bool:
        return self._live.is_pausing

    def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        pieces = self._replies.reply(state)
        return guard_reply(self._guards, pieces, self._warn) if self._guards.all else pieces

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        return await self._replies.summarise(messages)

    # -- tools ----------------------------------------------------------------------------

    def _context(self, call: ToolCall, record: Recorder) -> ToolContext:
        from daiku.edits.rules.changes.choose import get_chosen_hunks  # when used
        from daiku.run.rules.verdict import refused_edits  # when used

        live, services, state = self._live, self._services, record.state
        command_verdict = self._command_verdict(call, state.tainted)
        return ToolContext(
            session=live.log.session,
            run=live.run,
            call_id=call.id,
            workspace=services.workspace,
            checkpoints=services.checkpoints,
            config=self._config,
            emit=record,
            editor=services.editor,
            may_cd=live.log.agent.may_cd,
            extra_cfg=live.log.agent.extra_cfg,
            plans=lambda: record.state.plans.all,
            done=lambda: record.state.done,
            refused_edits=lambda plan, step: refused_edits(record.state, plan, step),
            asked=state.request.prompt,
            replans=lambda: None if state.request.brief is None else state.request.brief.plan,
            outputs=services.outputs,
            may_reach=self._policy.may_reach if self._unwatched else None,
            document=None if state.request.brief is None else state.request.brief.document,
            place=live.place if call.id in self._at_place else None,
            wanted=get_chosen_hunks(state.questions.approvals.get(call.id), state.questions.decisions),
            masked=command_verdict is not None and command_verdict.masked,
            unseen=command_verdict is not None and command_verdict.unseen,
            consented=state.questions.is_allowed(call.id),
            ask=partial(self._ask, call) if live.tree.attended and not self._unwatched else None,
            hand_over=partial(live.tree.nested.hand_over, live, call.id),
            tasks=live.tree.nested.tasks(live, call.id),
            toolset=self._replies.toolset,
            personal=not self._unwatched,
        )

    def _command_verdict(self, call: ToolCall, tainted: bool) -> Verdict | None:
        """Return the verdict that says what the sandbox hides from a command; None for other tools."""
        spec = self._replies.tools.get(call.tool)
        return self._verdict(call, tainted) if spec is not None and spec.effect == "command" else None

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        registry = self._services.registry
        spec = None if call.tool in self._replies.tools else registry.spec(call.tool)
        if spec is not None:
            reason = self._live.log.agent.why_refused(spec, record.state.request.mode)
            return ToolResult(outcome="denied", text=reason)
        if (blocked := await self._guards.refusal(call, self._warn)) is not None:
            return blocked
        if (limit_result := await self._meter.tool(call)) is not None:
            return limit_result
        result = await registry.call(call, self._context(call, record))
        self._patches.pop(call.id, None)
        if result.images:
            from daiku.models.history.pictures import fit_result  # when used

            result = await fit_result(result)
        if (visible_text := show_invisible(result.text)) != result.text:
            result = result.model_copy(update={"text": visible_text})
        await self._meter.result(result)
        if call.tool in self._replies.tools and self._verdict(call, record.state.tainted).outside:
            result = result.model_copy(update={"untrusted": True})
        self._folder_rules.record_rules(call, result)
        return result

    async def preview(self, call: ToolCall, record: Recorder) -> ApprovalPreview | ToolResult | None:
        if (blocked := await self._guards.refusal(call, self._warn)) is not None:
            return blocked
        preview = await self._services.registry.preview(call, self._context(call, record))
        if isinstance(preview, ToolResult):
            return preview
        if preview is not None and preview.patch is not None:
            self._patches[call.id] = preview.patch
            if self._stays_at_place(call, preview):
                return None
        decision = self._verdict(call, record.state.tainted)
        if decision.answer == "allow":
            return None
        if decision.answer == "deny":
            return ToolResult(outcome="unattended" if decision.unattended else "denied", text=decision.why)
        display = preview or Preview(ToolCall.model_dump_json(call, include={"tool", "args"}, indent=1))
        remember = (display.remember or describe_grant(decision.key)) if decision.key else ""
        return approval_preview(call, display.text, remember, decision.why)

    async def trial(self, call: ToolCall, record: Recorder) -> ToolResult | Text:
        if (blocked := await self._guards.refusal(call, self._warn)) is not None:
            return blocked
        result = await self._services.registry.trial(call, self._context(call, record))
        if isinstance(result, ToolResult):
            await self._meter.result(result)
            self._folder_rules.record_rules(call, result)
        return result

    async def settle(self, call: ToolCall, record: Recorder) -> ToolResult | None:
        if call.tool not in EDITING:
            return None
        from daiku.run.ports.interrupted import settle_edit  # when used

        return await settle_edit(call, self._live.log)

    def _stays_at_place(self, call: ToolCall, preview: Preview) -> bool:
        """Return True if the edit stays inside the place that the user selected and the guard allows it."""
        from daiku.edits.rules.changes.scope import is_inside  # when used

        place = self._live.place
        if place is None or preview.patch is None or not is_inside(preview.patch, place):
            return False
        self._at_place.add(call.id)
        if self._verdict(call, self._live.record.state.tainted).answer == "allow":
            return True
        self._at_place.discard(call.id)
        return False

    # -- the user --------------------------------------------------------------------------

    async def approval(self, question: ApprovalAsked) -> ApprovalGiven:
        return await self._live.waits.approval(question)

    async def answer(self, question: InputAsked) -> InputGiven:
        return await self._live.waits.answer(question)

    async def _ask(self, call: ToolCall, question: str, choices: tuple[str, ...]) -> Answer:
        """Ask a question of a tool during its call (an MCP server's form)."""
        input_id = long_id("input")
        event = InputAsked(
            input_id=input_id,
            question=show_hidden(question),
            choices=tuple(map(show_hidden, choices)),
            call_id=f"{call.id}:{input_id}",
            from_server=True,
        )
        self._live.record(event)
        answer = await self.answer(event)
        if answer.input_id not in self._live.record.state.questions.answers:
            self._live.record(answer)
        return Answer(answer.text, event.chosen(answer.text))


# ---- rules of folders

MOST_FILES = 50
"""Files of one call whose folders are checked for rules, at most."""


@dataclass(slots=True)
class FolderRules:
    """Sends a run the rules of folders that it touches; remembers the folders it has checked."""

    services: RunServices
    record: Recorder
    _seen: set[Path] = field(default_factory=set[Path])

    def record_rules(self, call: ToolCall, result: ToolResult) -> None:
        """Record rules that apply to the files of `call` and are new to the model."""
        paths = tuple(islice(_touched_paths(call, result), MOST_FILES))
        if not paths:
            return
        workspace = self.services.workspace
        roots = tuple(root.resolve() for root in workspace.roots)
        for path in paths:
            try:
                place = workspace.locate(path).resolve()
            except (DaikuError, OSError, ValueError):
                continue
            if place.parent in self._seen:
                continue
            self._seen.add(place.parent)
            rules = read_nested_rules(
                place,
                roots,
                self.record.state.conversation.rules,
                workspace.relative,
                trusted=self.services.trusted,
            )
            if rules:
                names = ", ".join(each.path for each in rules)
                self.record(Notice(level="info", text=text("runs.rules", names=names), rules=rules))


def _touched_paths(call: ToolCall, result: ToolResult) -> Iterator[str]:
    if not call.tool.startswith("files/") or not result.ok:
        return
    for name in ("path", "to"):
        if isinstance(path := call.args.get(name), str):
            yield path
    files = (result.data or {}).get("files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict) and isinstance(path := file.get("path"), str):
            yield path
