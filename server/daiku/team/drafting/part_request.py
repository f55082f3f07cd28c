"""Requests to the draft and style agents for a part of a document, and the form of their answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.domain.work.handovers import Brief
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.prompts import render
from daiku.run.rules.calls.arguments import schema_of
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.coding.handover_text import fence
from daiku.team.form_tool import with_tool_call
from daiku.team.role import Role
from daiku.team.rules.drafting.headings import find_headings
from daiku.texts.rules.patterns import lazy
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


_KANA = re.compile(r"[\u3040-\u30ff]")
_LETTER = re.compile(r"[A-Za-z\u3040-\u30ff\u4e00-\u9fff]")
_POLITE = lazy(r"(?:です|ます|でした|ました|ません|でしょう|ください)(?:か|ね|よ)?[。！？!?\n]")
_PLAIN = lazy(r"(?:である|であった|だった|だ|した|する|ない|なる|れる|いる|ある|った|いた)[。！？!?\n]")
_SHARE = 0.1
_LEAST = 3


def is_japanese(text: str) -> bool:
    """Return True if a text is Japanese: at least a tenth of its letters are kana."""
    return len(_KANA.findall(text)) > _SHARE * max(1, len(_LETTER.findall(text)))


def detect_sentence_endings(text: str) -> str:
    """Return how the sentences of a Japanese text end, for the prompt; empty if mixed or unclear."""
    if not is_japanese(text):
        return ""
    polite, plain = len(_POLITE.findall(text)), len(_PLAIN.findall(text))
    if max(polite, plain) < _LEAST or min(polite, plain) * 3 > max(polite, plain):
        return ""
    return "敬体（です・ます）" if polite > plain else "常体（だ・である）"


class PartVariables(Frozen):
    """Template variables: a part of a document and facts about it; `text` is fenced already."""

    request: str
    path: str
    form: str
    depth: int
    part: int
    parts: int
    outline: str
    headings: tuple[str, ...]
    japanese: bool
    manner: str
    lessons: str
    text: str


def build_part_request(template: str, brief: Brief) -> str:
    """Build the request for the part in `brief` from `template`; the bare request if there is no document."""
    document = brief.document
    if document is None:
        return brief.request
    plain = document.text.replace("\r\n", "\n")
    return render(
        template,
        PartVariables(
            request=brief.request,
            path=document.path,
            form=document.form,
            depth=document.depth,
            part=document.part,
            parts=document.parts,
            outline=fence(document.outline, "~") if document.outline else "",
            headings=tuple(heading.format() for heading in find_headings(plain, document.form)),
            japanese=is_japanese(plain),
            manner=detect_sentence_endings(plain),
            lessons=document.lessons,
            text=fence(plain, "~"),
        ),
    ).strip()
