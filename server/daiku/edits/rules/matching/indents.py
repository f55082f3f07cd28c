"""Mapping of a model's indentation to the file's, and reindentation of new lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daiku.dataclass import dataclass, field

_TABS = (4, 8, 2, 3)
"""Numbers of blanks that a tab may stand for."""


@dataclass(frozen=True, slots=True)
class Indents:
    """A mapping from the model's indentation to the file's.

    `shift`: the indentation that the model removed from every line, or (without `pairs`) from every line that
    had it.
    """

    pairs: Mapping[str, str] = field(default_factory=dict[str, str])
    shift: str = ""

    def apply(self, line: str) -> str:
        """Return `line` with the file's indentation."""
        return reindent(line, self.pairs) if self.pairs else self.shift + line if line.strip() else ""

    def is_ambiguous(self, line: str) -> bool:
        """Return True if the line is indented less than the shift, so that it may not have been shifted."""
        return len(get_indent(line)) < len(self.shift)


def get_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def learn_indents(
    search: Sequence[str | None], file_lines: Sequence[str], *, shift: bool = False
) -> Indents | None:
    """Return the mapping from the indentation of `search` to that of `file_lines`; None if uneven.

    A search line None matches any line. With `shift` also if one indentation was removed from every line
    that has it, and the others stayed.
    """
    both = [
        (get_indent(a), get_indent(b)) for a, b in zip(search, file_lines, strict=True) if a and a.strip()
    ]
    pairs: dict[str, str] = {}
    if all(
        pairs.setdefault(model_indent, file_indent) == file_indent for model_indent, file_indent in both
    ) and _is_uniform(pairs):
        shifts = {file_indent.removesuffix(model_indent) for model_indent, file_indent in both}
        return Indents(pairs, next(iter(shifts)) if len(shifts) == 1 and _has_one_difference(pairs) else "")
    return _learn_shift(both) if shift else None


def _is_uniform(pairs: Mapping[str, str]) -> bool:
    """Return True if the indentations differ by one amount, or by their unit (tabs or blanks)."""
    ordered = sorted(pairs.items(), key=lambda pair: len(pair[0]))
    depths = [len(file_indent) for _, file_indent in ordered]
    if depths != sorted(set(depths)):
        return False
    ratios = {
        len(file_indent) / len(model_indent) if model_indent else file_indent
        for model_indent, file_indent in ordered
        if model_indent or file_indent
    }
    return len(ratios) <= 1 or any(len(_compute_extra_depths(pairs, width)) <= 1 for width in _TABS)


def _compute_extra_depths(pairs: Mapping[str, str], width: int) -> set[int]:
    """Return by how many columns the file is indented deeper, with tabs of that width."""
    return {
        len(file_indent.expandtabs(width)) - len(model_indent.expandtabs(width))
        for model_indent, file_indent in pairs.items()
    }


def _has_one_difference(pairs: Mapping[str, str]) -> bool:
    return len({len(file_indent) - len(model_indent) for model_indent, file_indent in pairs.items()}) <= 1


def _learn_shift(both: Sequence[tuple[str, str]]) -> Indents | None:
    shifts = {
        file_indent.removesuffix(model_indent)
        for model_indent, file_indent in both
        if file_indent != model_indent
    }
    if len(shifts) != 1 or not (removed := next(iter(shifts))).isspace():
        return None
    left = [file_indent for model_indent, file_indent in both if file_indent == model_indent]
    moved = all(file_indent in (model_indent, removed + model_indent) for model_indent, file_indent in both)
    return (
        Indents(shift=removed)
        if moved and all(len(file_indent) < len(removed) for file_indent in left)
        else None
    )


def reindent(line: str, pairs: Mapping[str, str]) -> str:
    """Return `line` with its indentation converted by `pairs`, as learned by `learn_indents`."""
    if not line.strip():
        return line.strip()
    indent = get_indent(line)
    body = line[len(indent) :]
    if indent in pairs:
        return pairs[indent] + body
    prefixes = [model_indent for model_indent in pairs if indent.startswith(model_indent)]
    if prefixes:
        base = max(prefixes, key=len)
        return pairs[base] + _convert_units(indent[len(base) :], pairs) + body
    if (converted := _expand_tabs(indent, pairs)) is not None:
        return converted + body
    model_indent, file_indent = min(pairs.items(), key=lambda pair: len(pair[0]), default=("", ""))
    if file_indent.endswith(model_indent):
        return file_indent[: len(file_indent) - len(model_indent)] + indent + body
    surplus = (
        model_indent[: len(model_indent) - len(file_indent)] if model_indent.endswith(file_indent) else ""
    )
    return indent.removeprefix(surplus) + body


def _expand_tabs(indent: str, pairs: Mapping[str, str]) -> str | None:
    """Expand tabs to the width that `pairs` shows; None without a tab or such a width."""
    if "\t" not in indent:
        return None
    fits = (
        width
        for width in _TABS
        if all(model_indent.expandtabs(width) == file_indent for model_indent, file_indent in pairs.items())
    )
    width = next(fits, None)
    return None if width is None else indent.expandtabs(width)


def _convert_units(extra: str, pairs: Mapping[str, str]) -> str:
    """Return extra indentation in the file's unit, if the two differ (blanks, tabs)."""
    for model_indent, file_indent in sorted(pairs.items(), key=lambda pair: -len(pair[0])):
        if (
            model_indent
            and file_indent
            and set(model_indent) != set(file_indent)
            and len(set(model_indent)) == len(set(file_indent)) == 1
        ):
            per_unit = len(model_indent) / len(file_indent)
            units = len(extra) / per_unit
            if extra and set(extra) == set(model_indent) and units == int(units):
                return file_indent[0] * int(units)
    return extra
