"""An answer in a form: asked for by a tool, read from its call or from JSON, kept with the reply that gave it."""

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
from daiku.team.form_tool import by_tool
from daiku.team.role import Role
from daiku.texts.text import NO_TEXT, Text, text

F = TypeVar("F", bound=BaseModel)


def _anything_fits(_form: object, _brief: Brief | None) -> Text:
    return NO_TEXT


@dataclass(frozen=True, slots=True)
class AnswerForm(Generic[F]):
    """Answers of type `kind`, given by tool `name`. `shown`: text for people; `unfit`: a problem, or empty."""

    kind: type[F]
    name: str
    description: str
    shown: Callable[[F], Text]
    unfit: Callable[[F, Brief | None], Text] = _anything_fits

    @property
    def role(self) -> Role:
        """The role of an agent that answers so and says nothing in words."""
        tool = ToolSpec(
            name=self.name, description=self.description, parameters=schema_of(self.kind), effect="none"
        )
        return Role(
            by_tool(tool, self._read),
            prose=lambda _said, _before: self.missing,
            tools=(tool,),
            unfit=self._unfit,
        )

    @property
    def missing(self) -> Unreadable:
        """What a model is told that did not answer so."""
        return Unreadable(text("roles.call_missing", tool=wire_name(self.name)))

    def given(self, state: State) -> F | None:
        """The answer that the run's last reply gave; None where it gave none."""
        said = last_reply(state)
        return None if said is None else self._kept(said)

    def _read(
        self, message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
    ) -> AssistantMessage | Unreadable:
        form = read_json(message.text, self.kind.model_validate, cut=cut)
        if isinstance(form, Unreadable):
            return form
        kept = form.model_dump(mode="json")
        return AssistantMessage(text=self.shown(form), thinking=message.thinking, opaque={"daiku": kept})

    def _unfit(self, message: AssistantMessage, brief: Brief | None) -> Text:
        form = self._kept(message)
        return NO_TEXT if form is None else self.unfit(form, brief)

    def _kept(self, message: AssistantMessage) -> F | None:
        told = message.opaque.get("daiku")
        return self.kind.model_validate(told) if isinstance(told, dict) else None


def last_reply(state: State) -> AssistantMessage | None:
    """The last reply of this run."""
    here = state.conversation.messages[state.conversation.start :]
    return next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
