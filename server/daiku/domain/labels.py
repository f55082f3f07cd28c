"""Short texts in every supported language, and events that are displayed as one line or not at all."""

from typing import ClassVar

from daiku.dataclass import dataclass
from daiku.domain.base import Wire
from daiku.texts.text import ENGLISH, label


@dataclass(frozen=True, slots=True)
class Label:
    """A label in English (`en`) and Japanese (`ja`).

    Other languages have it in their catalogue under `label.` and the English text.
    """

    en: str
    ja: str

    def text(self, language: str) -> str:
        """Return the text in `language`, or in English if there is no translation."""
        return {ENGLISH: self.en, "ja": self.ja}.get(language) or label(language, self.en)


@dataclass(frozen=True, slots=True)
class LineCase:
    """Label of an event if its `field` equals `value`: for the terminal, and for an editor."""

    field: str
    value: str
    label: Label
    editor: Label


@dataclass(frozen=True, slots=True)
class Line:
    """Display of an event: a codicon and a label in which `{name}` is a field; `cases` override the label."""

    icon: str
    label: Label
    cases: tuple[LineCase, ...] = ()


class Aside(Wire):
    """An informational event: it does not affect the state of a run."""


class LineEvent(Aside):
    """An event that is displayed as one line if it has a `line`, and not at all otherwise."""

    line: ClassVar[Line | None] = None

    def line_in(self, language: str) -> str:
        """Return the line for a terminal, followed by what the user can do; empty if there is none."""
        if self.line is None:
            return ""
        matching = (case.label for case in self.line.cases if getattr(self, case.field) == case.value)
        values = {name: " ".join(str(value).split()) for name, value in self.model_dump().items()}
        return next(matching, self.line.label).text(language).format(**values)
