"""Map the indentation of a model's lines to the file's, and reindent new lines by that mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daiku.dataclass import dataclass, field

_TABS = (4, 8, 2, 3)
"""How many blanks a tab may stand for."""


@dataclass(frozen=True, slots=True)
class Indents:
    """A mapping from the model's indentation to the file's.
    `shift`: what the model took off every line, or (without `pairs`) off every line that had it."""

    pairs: Mapping[str, str] = field(default_factory=dict[str, str])
    shift: str = ""

    def apply(self, line: str) -> str:
        """`line` with its indentation as the file has it."""
        return reindent(line, self.pairs) if self.pairs else self.shift + line if line.strip() else ""

    def is_ambiguous(self, line: str) -> bool:
        """Return whether the line is indented less than the shift, so that the model may not have shifted it."""
        return len(indent_of(line)) < len(self.shift)


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def learn_indents(
    wanted: Sequence[str | None], found: Sequence[str], *, shift: bool = False
) -> Indents | None:
    """Return the mapping from the indentation of `wanted` (None: any line) to that of `found`; None if uneven.

    With `shift` also if one indentation was taken off every line that has it, and the others stayed.
    """
    both = [(indent_of(a), indent_of(b)) for a, b in zip(wanted, found, strict=True) if a and a.strip()]
    pairs: dict[str, str] = {}
    if all(pairs.setdefault(here, there) == there for here, there in both) and _alike(pairs):
        shifts = {there.removesuffix(here) for here, there in both}
        return Indents(pairs, next(iter(shifts)) if len(shifts) == 1 and _additive(pairs) else "")
    return _shifted(both) if shift else None


def _alike(pairs: Mapping[str, str]) -> bool:
    """Return True if the indentations differ by one amount, or by their unit (tabs for blanks, two blanks for four)."""
    ordered = sorted(pairs.items(), key=lambda pair: len(pair[0]))
    depths = [len(there) for _, there in ordered]
    if depths != sorted(set(depths)):
        return False
    ratios = {len(there) / len(here) if here else there for here, there in ordered if here or there}
    return len(ratios) <= 1 or any(len(_surplus(pairs, width)) <= 1 for width in _TABS)


def _surplus(pairs: Mapping[str, str], width: int) -> set[int]:
    """By how much the file is indented deeper, with tabs of that width."""
    return {len(there.expandtabs(width)) - len(here.expandtabs(width)) for here, there in pairs.items()}


def _additive(pairs: Mapping[str, str]) -> bool:
    return len({len(there) - len(here) for here, there in pairs.items()}) <= 1


def _shifted(both: Sequence[tuple[str, str]]) -> Indents | None:
    shifts = {there.removesuffix(here) for here, there in both if there != here}
    if len(shifts) != 1 or not (taken := next(iter(shifts))).isspace():
        return None
    left = [there for here, there in both if there == here]
    moved = all(there in (here, taken + here) for here, there in both)
    return Indents(shift=taken) if moved and all(len(there) < len(taken) for there in left) else None


def reindent(line: str, pairs: Mapping[str, str]) -> str:
    """Return `line` with its indentation converted by `pairs`, as learned by `learn_indents`."""
    if not line.strip():
        return line.strip()
    indent = indent_of(line)
    body = line[len(indent) :]
    if indent in pairs:
        return pairs[indent] + body
    known = [here for here in pairs if indent.startswith(here)]
    if known:
        base = max(known, key=len)
        return pairs[base] + _in_units(indent[len(base) :], pairs) + body
    if (converted := _converted(indent, pairs)) is not None:
        return converted + body
    here, there = min(pairs.items(), key=lambda pair: len(pair[0]), default=("", ""))
    if there.endswith(here):
        return there[: len(there) - len(here)] + indent + body
    surplus = here[: len(here) - len(there)] if here.endswith(there) else ""
    return indent.removeprefix(surplus) + body


def _converted(indent: str, pairs: Mapping[str, str]) -> str | None:
    """An indentation with tabs as blanks, where the file has blanks of one width for each of the others' tabs."""
    if "\t" not in indent:
        return None
    fits = (width for width in _TABS if all(here.expandtabs(width) == there for here, there in pairs.items()))
    width = next(fits, None)
    return None if width is None else indent.expandtabs(width)


def _in_units(extra: str, pairs: Mapping[str, str]) -> str:
    """Deeper indentation in the file's own unit, where the two have different ones (blanks, tabs)."""
    for here, there in sorted(pairs.items(), key=lambda pair: -len(pair[0])):
        if here and there and set(here) != set(there) and len(set(here)) == len(set(there)) == 1:
            per_unit = len(here) / len(there)
            units = len(extra) / per_unit
            if extra and set(extra) == set(here) and units == int(units):
                return there[0] * int(units)
    return extra
