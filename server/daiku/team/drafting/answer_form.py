"""Structured answers: given by a tool call or as JSON, and stored in the reply's data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel

from daiku.dataclass import dataclass
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.domain.work.handovers import Brief
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.run.rules.calls.arguments import schema_of
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.form_tool import with_tool_call
from daiku.team.role import Role
from daiku.texts.text import NO_TEXT, Text, text

F = TypeVar("F", bound=BaseModel)


def _accept_any(_form: object, _brief: Brief | None) -> Text:
    return NO_TEXT


@dataclass(frozen=True, slots=True)
class AnswerForm(Generic[F]):
    """Answers of type `kind`, given by the tool `name`.

    `render` formats one for people; `unfit` returns its problem, or empty.
    """

    kind: type[F]
    name: str
    description: str
    render: Callable[[F], Text]
    unfit: Callable[[F, Brief | None], Text] = _accept_any

    @property
    def role(self) -> Role:
        """Role of an agent that answers only in this form."""
        tool = ToolSpec(
            name=self.name, description=self.description, parameters=schema_of(self.kind), effect="none"
        )
        return Role(
            with_tool_call(tool, self._read),
            prose=lambda _reply, _messages: self.missing,
            tools=(tool,),
            unfit=self._find_problem,
        )

    @property
    def missing(self) -> Unreadable:
        """Problem for a reply without the form."""
        return Unreadable(text("roles.call_missing", tool=wire_name(self.name)))

    def find_answer(self, state: State) -> F | None:
        """Return the answer in the run's last reply; None if there is none."""
        reply = find_last_reply(state)
        return None if reply is None else self._load(reply)

    def _read(
        self, message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
    ) -> AssistantMessage | Unreadable:
        form = read_json(message.text, self.kind.model_validate, cut=cut)
        if isinstance(form, Unreadable):
            return form
        data = form.model_dump(mode="json")
        return AssistantMessage(text=self.render(form), thinking=message.thinking, opaque={"daiku": data})

    def _find_problem(self, message: AssistantMessage, brief: Brief | None) -> Text:
        form = self._load(message)
        return NO_TEXT if form is None else self.unfit(form, brief)

    def _load(self, message: AssistantMessage) -> F | None:
        data = message.opaque.get("daiku")
        return self.kind.model_validate(data) if isinstance(data, dict) else None


def find_last_reply(state: State) -> AssistantMessage | None:
    """Return the last reply of this run."""
    messages = state.conversation.messages[state.conversation.start :]
    return next((m for m in reversed(messages) if isinstance(m, AssistantMessage)), None)
