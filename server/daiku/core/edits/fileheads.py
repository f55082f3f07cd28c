"""Recognize other ways in which models name a whole file, and rewrite them as `File:` lines."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy

_FENCE = lazy(r"^\s*(?P<mark>`{3,}|~{4,})(?P<info>.*)$")
_PATH = r"(?:\.{0,2}/)?[\w.@+\-]+(?:/[\w.@+\-]+)*"
_LABEL = r"(?:file(?:\s*name)?|path|new file|ファイル名?|パス|新規ファイル|新しいファイル)\s*[:：]?\s*"
_REMARK = r"(?:\s*[(（][^()（）]{0,30}[)）])?"
_HEAD = lazy(
    rf"^[\s>]*(?P<heading>#{{1,6}}\s+)?(?:\d+[.)]\s+|[-*+]\s+)?(?P<label>[*_]{{0,2}}{_LABEL})?"
    rf"(?P<open>[`*_]{{0,4}})(?P<path>{_PATH})(?P<close>[`*_:：]{{0,6}}){_REMARK}[`*_:：]{{0,4}}\s*$",
    re.IGNORECASE,
)
_IN_INFO = lazy(
    rf"^\s*(?:[\w+#-]+(?:\s+|:))?(?:(?:title|file|filename|path)\s*=\s*)?[\"'{{]?(?P<path>{_PATH})[\"'}}]?\s*$",
    re.IGNORECASE,
)
_COMMENT = lazy(
    rf"^\s*(?:#|//|--|;|%|/\*|<!--)\s*(?:{_LABEL})?(?P<path>{_PATH})\s*(?:\*/|-->)?\s*$", re.IGNORECASE
)
_BARE_NAMES = frozenset({"Makefile", "Dockerfile", "Gemfile", "Rakefile", "Procfile", "LICENSE", "Justfile"})
_OTHER_TAGS = frozenset({"diff", "patch", "console", "output", "log", "text", "txt"})
_TAGS = {
    "python": ("py", "pyi"), "py": ("py", "pyi"), "javascript": ("js", "mjs", "cjs", "jsx"), "js": ("js", "mjs", "cjs"),
    "typescript": ("ts", "mts", "cts", "tsx"), "ts": ("ts", "mts", "cts", "tsx"), "rust": ("rs",), "ruby": ("rb",), "golang": ("go",),
    "c++": ("cpp", "cc", "cxx", "hpp", "h"), "cpp": ("cpp", "cc", "cxx", "hpp", "h"), "c": ("c", "h"), "csharp": ("cs",), "c#": ("cs",),
    "kotlin": ("kt", "kts"), "bash": ("sh", "bash"), "sh": ("sh",), "shell": ("sh",), "yaml": ("yaml", "yml"), "yml": ("yaml", "yml"),
    "html": ("html", "htm"), "perl": ("pl", "pm"), "powershell": ("ps1",), "makefile": ("mk",), "json": ("json", "jsonc"),
}  # fmt: skip


def add_file_heads(text: str) -> str:
    """`text` with a `File:` line before each fence that names its file for certain: a heading, bold or inline
    code of nothing but a path on the line above it, the path behind the fence's language, or a comment that
    is nothing but a path on its first line. Unchanged where a Markdown file holds fences of its own: nobody
    can tell where it ends."""
    lines = text.split("\n")
    found: list[str] = []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            found.append(lines[at])
            at += 1
            continue
        end = _closing(lines, at, fence["mark"])
        if end is None or (_tag(fence["info"]) in ("markdown", "md") and _holds_fences(lines[at + 1 : end])):
            return text
        path, above = _head_of_fence(found, fence["info"], lines[at + 1 : end])
        if path:
            if above:
                del found[_last(found) :]
            found.append(f"File: `{path}`:")
        found += [f"{fence['mark']}{_tag(fence['info'])}", *lines[at + 1 : end + 1]]
        at = end + 1
    return "\n".join(found)


def _head_of_fence(before: list[str], info: str, content: list[str]) -> tuple[str, bool]:
    """The path that a fence is headed with, and whether the line above it is its head."""
    tag = _tag(info)
    if tag in _OTHER_TAGS:
        return "", False
    head = _HEAD.match(before[_last(before)]) if _last(before) < len(before) else None
    marked = head is not None and bool(head["heading"] or head["label"] or re.search("[`*]", head["open"]))
    if head is not None and marked and _is_path(head["path"]):
        return head["path"], True
    inside = _IN_INFO.match(info)
    if inside is not None and _is_path(inside["path"]) and inside["path"] != tag:
        return inside["path"], False
    comment = _COMMENT.match(content[0]) if content else None
    if comment is not None and _is_path(comment["path"]) and _of_language(comment["path"], tag):
        return comment["path"], False
    return "", False


def _last(lines: list[str]) -> int:
    """The last line that says something, at most one blank one behind it; the number of lines for none."""
    for at in range(len(lines) - 1, max(-1, len(lines) - 3), -1):
        if lines[at].strip():
            return at
    return len(lines)


def _tag(info: str) -> str:
    found = re.match(r"\s*([\w+#-]*)(?=[\s:{]|$)", info)
    return found[1].lower() if found else ""


def _is_path(text: str) -> bool:
    name = text.rpartition("/")[2]
    return (
        name in _BARE_NAMES or re.fullmatch(r"\.?[\w@+\-.]*\.[A-Za-z]\w{0,9}|\.\w[\w.-]+", name) is not None
    )


def _of_language(path: str, tag: str) -> bool:
    ending = path.rpartition(".")[2].lower()
    return not tag or ending in _TAGS.get(tag, (tag,))


def _closing(lines: list[str], opening: int, mark: str) -> int | None:
    for at in range(opening + 1, len(lines)):
        line = lines[at].strip()
        if len(line) >= len(mark) and not line.strip(mark[0]):
            return at
    return None


def _holds_fences(content: list[str]) -> bool:
    return any(_FENCE.match(line) for line in content)
