"""A short text for people, in every language that Daiku speaks; and the events that are shown as one line, or not at all."""

from typing import ClassVar

from daiku.dataclass import dataclass
from daiku.domain.base import Wire
from daiku.texts.catalogue import ENGLISH, label


@dataclass(frozen=True, slots=True)
class Label:
    """`en` English, `ja` Japanese; a further language has it in its catalogue, under `label.` and the English."""

    en: str
    ja: str

    def text(self, language: str) -> str:
        """The text in `language`; English where it has none."""
        return {ENGLISH: self.en, "ja": self.ja}.get(language) or label(language, self.en)


@dataclass(frozen=True, slots=True)
class LineCase:
    """What an event says where its `field` is `value`: in the terminal, and in an editor."""

    field: str
    value: str
    label: Label
    editor: Label


@dataclass(frozen=True, slots=True)
class Line:
    """How an event is shown: a codicon, and a text in which `{name}` is a field of the event; another one in some cases."""

    icon: str
    label: Label
    cases: tuple[LineCase, ...] = ()


class Aside(Wire):
    """An event that only tells: it changes nothing of what a run knows and does."""


class LineEvent(Aside):
    """An event that is shown to people as one line if it has a `line`, and otherwise not at all."""

    line: ClassVar[Line | None] = None

    def line_in(self, language: str) -> str:
        """The line as a terminal has it, and below it what can be done; empty where there is none."""
        if self.line is None:
            return ""
        mine = (each.label for each in self.line.cases if getattr(self, each.field) == each.value)
        said = {name: " ".join(str(value).split()) for name, value in self.model_dump().items()}
        return next(mine, self.line.label).text(language).format(**said)
