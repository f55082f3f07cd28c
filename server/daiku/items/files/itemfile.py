"""A Markdown file as a work item: front matter, body, and below it the text of Daiku and the user."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from daiku.dataclass import dataclass
from daiku.domain.items.item import ItemState
from daiku.items.labels import get_label, is_same_label, list_own_labels
from daiku.items.rules.harmless import PROGRESS, remove_marks
from daiku.settings.config import WorkLabels
from daiku.texts.rules.frontmatter import BadLine, FrontMatter, read_front_matter
from daiku.texts.text import render, text

_BELOW = "<!-- daiku:below -->"
_COMMENTS = "<!-- daiku:comments -->"
_LEFT = "<!-- daiku:left -->"
_END = "<!-- daiku:end -->"
_BEGINS = re.compile(r"<!-- daiku:(?:op [^\n]*|progress|below|comments|left) -->")
_NOTED = re.compile(r"<!-- daiku:said (\S+) ([0-9a-f]{16}) -->")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph that the user wrote below the body. `time`: when it was first seen, empty if it is new."""

    id: str
    text: str
    time: str


@dataclass(frozen=True, slots=True)
class ItemFile:
    """The text of an item's file."""

    text: str
    matter: FrontMatter

    @property
    def title(self) -> str:
        return self.matter.value("title").strip()

    @property
    def state(self) -> str:
        return self.matter.value("state").strip().casefold()

    @property
    def body(self) -> str:
        """The text between the front matter and Daiku's part."""
        return self.text[self.matter.body : self._find_own_start()].strip()

    def has_label(self, names: tuple[str, ...]) -> bool:
        """Return True if one of the labels `names` is set."""
        return any(is_same_label(label, name) for label in self.matter.values("labels") for name in names)

    def with_state(self, state: ItemState, labels: WorkLabels) -> ItemFile:
        """Return the file with `state` and its label; the rest is unchanged."""
        changed = _read(self.matter.with_value("state", state)) if self.state != state else self
        return _read(changed.matter.with_item("labels", get_label(labels, state), list_own_labels(labels)))

    def has_comment(self, mark: str) -> bool:
        """Return True if the comment with `mark` is present."""
        return any(line == mark for line, _ in self._iter_own_lines())

    def with_comment(self, mark: str, comment: str, language: str) -> ItemFile:
        """Return the file with one more comment at its end."""
        with_sections = self if self._find_own_start() < len(self.text) else self._with_sections(language)
        return with_sections._append(f"{mark}\n{_strip_marks(comment)}\n{_END}\n")

    def with_progress(self, progress: str, language: str) -> ItemFile:
        """Return the file with `progress` in its progress section. Missing sections are added in `language`."""
        start = self._find_start(PROGRESS)
        block = f"{PROGRESS}\n{_strip_marks(progress)}\n{_END}\n"
        if start is None:
            headings = (text("itemfile.progress"), text("itemfile.comments"), text("itemfile.answer_here"))
            first, second, answer = (render(heading, language) for heading in headings)
            hint = f"{_COMMENTS}\n## {second}\n\n{answer}\n{_END}\n"
            return self._append(f"{_BELOW}\n## {first}\n\n{block}\n{hint}")
        end, closed = self._find_block_end(start)
        # Without an end mark the owner of the text below is unknown: it stays, and counts as Daiku's.
        return _read(
            self.text[:start] + self._with_line_ends(block if closed else block + _LEFT) + self.text[end:]
        )

    def _with_sections(self, language: str) -> ItemFile:
        return self.with_progress(render(text("itemfile.not_begun"), language), language)

    def with_times(self, time: str) -> ItemFile:
        """Record `time` for new paragraphs, so that later changes of the file do not make them newer."""
        new_paragraphs = [paragraph for paragraph in self.read_paragraphs() if not paragraph.time]
        lines = "".join(f"<!-- daiku:said {time} {paragraph.id} -->\n" for paragraph in new_paragraphs)
        return self._append(lines) if lines else self

    def read_paragraphs(self) -> tuple[Paragraph, ...]:
        """Return the paragraphs that the user wrote below the body."""
        times: dict[str, str] = {}
        for line, _ in self._iter_own_lines():
            if match := _NOTED.fullmatch(line):
                times.setdefault(match[2], match[1])
        paragraphs: list[Paragraph] = []
        counts = Counter[str]()
        for paragraph in self._iter_paragraphs():
            key = hashlib.sha256(f"{counts[paragraph]}:{paragraph}".encode()).hexdigest()[:16]
            paragraphs.append(Paragraph(key, paragraph, times.get(key, "")))
            counts[paragraph] += 1
        return tuple(paragraphs)

    def _find_own_start(self) -> int:
        """Return the offset at which Daiku's part of the file starts."""
        at = self.text.find(f"\n{_BELOW}", max(self.matter.body - 1, 0))
        return len(self.text) if at < 0 else at + 1

    def _iter_own_lines(self) -> Iterator[tuple[str, int]]:
        """Yield the lines of Daiku's part with their offsets."""
        at = self._find_own_start()
        while at < len(self.text):
            end = self.text.find("\n", at) + 1 or len(self.text)
            yield self.text[at:end].rstrip("\r\n"), at
            at = end

    def _find_start(self, mark: str) -> int | None:
        return next((at for line, at in self._iter_own_lines() if line == mark), None)

    def _find_block_end(self, start: int) -> tuple[int, bool]:
        """Return the offset after the block at `start`, and whether it has an end mark.

        Without an end mark it is the offset after the block's first line.
        """
        first = self.text.find("\n", start)
        for line, at in self._iter_own_lines():
            if at > start and line == _END:
                return self.text.find("\n", at) + 1 or len(self.text), True
            if at > start and _BEGINS.fullmatch(line):
                break
        return (len(self.text) if first < 0 else first), False

    def _iter_paragraphs(self) -> Iterator[str]:
        """Yield the paragraphs between Daiku's blocks; a code fence stays in one piece."""
        is_own, fence = False, ""
        lines: list[str] = []
        for line, _ in self._iter_own_lines():
            begins, ends = _BEGINS.fullmatch(line), line == _END or _NOTED.fullmatch(line)
            is_own = bool(begins) or (is_own and not ends)
            if is_own or ends or (not fence and not line.strip()):
                yield from _flush(lines)
                fence = ""
                continue
            lines.append(line)
            if match := _FENCE.match(line):
                fence = "" if fence and match[1].startswith(fence) else fence or match[1]
        yield from _flush(lines)

    def _append(self, added: str) -> ItemFile:
        gap = (
            ""
            if self.text.endswith("\n\n") or not self.text
            else "\n"
            if self.text.endswith("\n")
            else "\n\n"
        )
        return _read(self.text + self._with_line_ends(gap + added))

    def _with_line_ends(self, added: str) -> str:
        return added.replace("\n", "\r\n") if "\r\n" in self.text[: self.matter.body] else added


def read_item_file(written: str) -> ItemFile | BadLine | None:
    """Parse the item in `written`; None if it has no front matter and is no item."""
    matter = read_front_matter(written, ("title", "state"), ("labels",))
    return ItemFile(written, matter) if isinstance(matter, FrontMatter) else matter


def _read(written: str) -> ItemFile:
    item = read_item_file(written)
    assert isinstance(item, ItemFile), "what was changed in one field can be read again"
    return item


def _strip_marks(text: str) -> str:
    """Return a model's text without marks. It must not end its own block: text outside counts as the user's."""
    return remove_marks(text.replace("\r\n", "\n").replace("\0", ""))


def _flush(lines: list[str]) -> Iterator[str]:
    if lines:
        yield "\n".join(lines)
        lines.clear()
