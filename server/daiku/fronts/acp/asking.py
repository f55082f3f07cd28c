"""Approval requests and questions of a run, forwarded to the ACP client."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from acp import Client, RequestError
from acp.schema import AllowedOutcome, PermissionOption, ToolCallUpdate

from daiku.dataclass import dataclass
from daiku.domain.events import ApprovalAsked, ApprovalDecision, InputAsked
from daiku.fronts.acp.outbox import Outbox
from daiku.fronts.acp.updates import View, kind_of, title_of
from daiku.library.fronts import Runs
from daiku.library.questions import OpenQuestions
from daiku.texts.text import render, text

log = logging.getLogger(__name__)

WORDS = "words"
"""Id of the option with which the user answers in free text."""
_OPTIONS: tuple[tuple[ApprovalDecision, str], ...] = (
    ("allow_once", "acp.allow_once"),
    ("allow_always", "acp.allow_always"),
    ("reject_once", "acp.reject_once"),
    ("reject_always", "acp.reject_always"),
)
_ONCE = (_OPTIONS[0], _OPTIONS[2])


@dataclass(frozen=True, slots=True)
class Chosen:
    """The option that the user selected."""

    option: str


Unanswered: TypeAlias = Literal["cancelled", "unable", "gone"]
"""Outcomes without an answer: the client cancelled the request, cannot ask, or disconnected."""


class ClientQuestions(OpenQuestions):
    """Sends the questions of one turn to the client.

    If the client disconnects, its questions stay open and are asked again when the run resumes. `cancel`
    ends the turn; `wait_for_words` waits for the user's next message.
    """

    def __init__(
        self,
        client: Client,
        session: str,
        outbox: Outbox,
        view: View,
        runs: Runs,
        *,
        cancel: Callable[[], Awaitable[None]],
        wait_for_words: Callable[[InputAsked], Awaitable[None]],
    ) -> None:
        super().__init__()
        self._client = client
        self._session = session
        self._outbox = outbox
        self._view = view
        self._runs = runs
        self._cancel = cancel
        self._wait_for_words = wait_for_words

    async def approve(self, run: str, approval: ApprovalAsked) -> None:
        kinds = _OPTIONS if approval.remember else _ONCE
        options = [PermissionOption(option_id=kind, name=self._label(key), kind=kind) for kind, key in kinds]
        call = ToolCallUpdate(
            tool_call_id=approval.call_id or approval.approval_id,
            title=title_of(approval.tool, approval.args, self._view.language),
            kind=kind_of(approval.tool),
            status="pending",
            content=list(self._view.preview(approval)),
            raw_input=approval.args,
        )
        selection = await self._request_permission(call, options)
        feedback = None
        decision: ApprovalDecision = "reject_once"
        match selection:
            case "gone":
                return
            case "cancelled":
                await self._cancel()
                return
            case "unable":
                feedback = str(text("acp.cannot_ask"))
            case Chosen(option=option):
                allowed: dict[str, ApprovalDecision] = {kind: kind for kind, _ in kinds}
                decision = allowed.get(option, "reject_once")
        unattended = selection == "unable"
        await self.deliver(
            self._runs.approve(run, approval.approval_id, decision, feedback, unattended=unattended)
        )

    async def answer(self, run: str, question: InputAsked) -> None:
        if not question.choices:
            await self._wait_for_words(question)
            return
        options = [
            PermissionOption(option_id=str(index), name=choice, kind="allow_once")
            for index, choice in enumerate(question.choices)
        ]
        options.append(
            PermissionOption(option_id=WORDS, name=self._label("acp.in_words"), kind="reject_once")
        )
        call = ToolCallUpdate(
            tool_call_id=question.call_id or question.input_id,
            title=question.question,
            kind="other",
            status="pending",
        )
        selection = await self._request_permission(call, options)
        match selection:
            case "gone":
                return
            case "cancelled":
                await self._cancel()
            case Chosen(option=option) if option.isdecimal() and int(option) < len(question.choices):
                choice = question.choices[int(option)]
                await self.deliver(self._runs.answer(run, question.input_id, choice))
            case _:
                await self._wait_for_words(question)

    async def _request_permission(
        self, call: ToolCallUpdate, options: list[PermissionOption]
    ) -> Chosen | Unanswered:
        await self._outbox.drained()  # the client must know the tool call first
        try:
            answer = await self._client.request_permission(self._session, call, options)
        except ConnectionError:
            return "gone"
        except (RequestError, ValueError) as error:  # unsupported, or an invalid answer
            log.warning("the client cannot ask: %s", error)
            return "unable"
        outcome = answer.outcome
        return Chosen(outcome.option_id) if isinstance(outcome, AllowedOutcome) else "cancelled"

    def _label(self, key: str) -> str:
        return render(text(key), self._view.language)
