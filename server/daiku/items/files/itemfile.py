"""A Markdown file as a work item: its front matter and body, and below them what Daiku and the person write."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from daiku.dataclass import dataclass
from daiku.domain.items.item import ItemState
from daiku.items.labels import label_of, our_labels, same_label
from daiku.items.rules.marks import PROGRESS, without_marks
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
class Words:
    """A paragraph that a person wrote below the body. `time`: when it was first seen, empty where it is new."""

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
        """The text between the front matter and what is written below it."""
        return self.text[self.matter.body : self._below()].strip()

    def has_label(self, names: tuple[str, ...]) -> bool:
        """Whether one of the labels `names` is set."""
        return any(same_label(one, name) for one in self.matter.values("labels") for name in names)

    def in_state(self, state: ItemState, labels: WorkLabels) -> ItemFile:
        """The file with `state` and its label; everything else as it was."""
        changed = _read(self.matter.with_value("state", state)) if self.state != state else self
        return _read(changed.matter.with_item("labels", label_of(labels, state), our_labels(labels)))

    def has_comment(self, mark: str) -> bool:
        """Whether the comment with `mark` is there."""
        return any(line == mark for line, _ in self._lines())

    def with_comment(self, mark: str, said: str, language: str) -> ItemFile:
        """The file with one more comment at its end."""
        whole = self if self._below() < len(self.text) else self._with_sections(language)
        return whole._with_end(f"{mark}\n{_harmless(said)}\n{_END}\n")

    def with_progress(self, said: str, language: str) -> ItemFile:
        """The file whose section of progress says `said`; the sections are made in `language` where they are not there
        yet."""
        start = self._start_of(PROGRESS)
        block = f"{PROGRESS}\n{_harmless(said)}\n{_END}\n"
        if start is None:
            told = (text("itemfile.progress"), text("itemfile.comments"), text("itemfile.answer_here"))
            first, second, answer = (render(each, language) for each in told)
            hint = f"{_COMMENTS}\n## {second}\n\n{answer}\n{_END}\n"
            return self._with_end(f"{_BELOW}\n## {first}\n\n{block}\n{hint}")
        end, closed = self._end_of(start)
        # Where somebody took the end away it is not known what is whose: it stays, and counts as ours.
        return _read(self.text[:start] + self._as_here(block if closed else block + _LEFT) + self.text[end:])

    def _with_sections(self, language: str) -> ItemFile:
        return self.with_progress(render(text("itemfile.not_begun"), language), language)

    def noting(self, time: str) -> ItemFile:
        """The file in which new words of the person have a time: a later change of the file makes them no newer."""
        new = [words for words in self.words() if not words.time]
        lines = "".join(f"<!-- daiku:said {time} {words.id} -->\n" for words in new)
        return self._with_end(lines) if lines else self

    def words(self) -> tuple[Words, ...]:
        """What the person wrote below the body, by paragraphs."""
        times: dict[str, str] = {}
        for line, _ in self._lines():
            if noted := _NOTED.fullmatch(line):
                times.setdefault(noted[2], noted[1])
        found: list[Words] = []
        seen = Counter[str]()
        for paragraph in self._paragraphs():
            key = hashlib.sha256(f"{seen[paragraph]}:{paragraph}".encode()).hexdigest()[:16]
            found.append(Words(key, paragraph, times.get(key, "")))
            seen[paragraph] += 1
        return tuple(found)

    def _below(self) -> int:
        """Where our part of the file begins."""
        at = self.text.find(f"\n{_BELOW}", max(self.matter.body - 1, 0))
        return len(self.text) if at < 0 else at + 1

    def _lines(self) -> Iterator[tuple[str, int]]:
        """The lines of our part, and where each begins."""
        at = self._below()
        while at < len(self.text):
            end = self.text.find("\n", at) + 1 or len(self.text)
            yield self.text[at:end].rstrip("\r\n"), at
            at = end

    def _start_of(self, mark: str) -> int | None:
        return next((at for line, at in self._lines() if line == mark), None)

    def _end_of(self, start: int) -> tuple[int, bool]:
        """What is behind the block that begins at `start`, and whether it has an end; without one, behind its mark."""
        first = self.text.find("\n", start)
        for line, at in self._lines():
            if at > start and line == _END:
                return self.text.find("\n", at) + 1 or len(self.text), True
            if at > start and _BEGINS.fullmatch(line):
                break
        return (len(self.text) if first < 0 else first), False

    def _paragraphs(self) -> Iterator[str]:
        """The paragraphs between our blocks; what stands in a code fence stays together."""
        ours, fence = False, ""
        lines: list[str] = []
        for line, _ in self._lines():
            begins, ends = _BEGINS.fullmatch(line), line == _END or _NOTED.fullmatch(line)
            ours = bool(begins) or (ours and not ends)
            if ours or ends or (not fence and not line.strip()):
                yield from _joined(lines)
                fence = ""
                continue
            lines.append(line)
            if found := _FENCE.match(line):
                fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        yield from _joined(lines)

    def _with_end(self, added: str) -> ItemFile:
        gap = (
            ""
            if self.text.endswith("\n\n") or not self.text
            else "\n"
            if self.text.endswith("\n")
            else "\n\n"
        )
        return _read(self.text + self._as_here(gap + added))

    def _as_here(self, added: str) -> str:
        return added.replace("\n", "\r\n") if "\r\n" in self.text[: self.matter.body] else added


def read_item_file(written: str) -> ItemFile | BadLine | None:
    """The item that `written` is; None where it has no front matter and so is none."""
    found = read_front_matter(written, ("title", "state"), ("labels",))
    return ItemFile(written, found) if isinstance(found, FrontMatter) else found


def _read(written: str) -> ItemFile:
    found = read_item_file(written)
    assert isinstance(found, ItemFile), "what was changed in one field can be read again"
    return found


def _harmless(said: str) -> str:
    """What a model wrote must not end its own block or begin another: what stands outside counts as the person's."""
    return without_marks(said.replace("\r\n", "\n").replace("\0", ""))


def _joined(lines: list[str]) -> Iterator[str]:
    if lines:
        yield "\n".join(lines)
        lines.clear()
