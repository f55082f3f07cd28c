"""A short text for people, in every language that Daiku speaks."""

from daiku.dataclass import dataclass
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
class Line:
    """How an event is shown: a codicon, and a text in which `{name}` is a field of the event."""

    icon: str
    label: Label
