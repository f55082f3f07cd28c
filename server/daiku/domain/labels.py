"""A short text for people, in every language that Daiku speaks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """`en` English, `ja` Japanese."""

    en: str
    ja: str

    def text(self, language: str) -> str:
        """The text in `language` (`ja`, …); English where it is none of these."""
        return self.ja if language == "ja" else self.en


@dataclass(frozen=True, slots=True)
class Line:
    """How an event is shown: a codicon, and a text in which `{name}` is a field of the event."""

    icon: str
    label: Label
