"""Tool names: the canonical `namespace/tool`, the function name sent to models, and legacy names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from daiku.domain.tools import ToolSpec
from daiku.texts.rules.patterns import lazy

WIRE_LIMIT = 64
"""Characters that every provider takes for a function's name."""

SEED_NAMES = {
    "file_ops.write": "files/write",
    "file_ops.write_file": "files/write",
    "file_ops.read": "files/read",
    "file_ops.read_file": "files/read",
    "file_ops.delete": "files/delete",
    "file_ops.delete_file": "files/delete",
    "file_ops.move": "files/move",
    "file_ops.move_file": "files/move",
    "file_ops.list": "files/list",
    "file_ops.list_files": "files/list",
    "plan_tool.propose": "plan/propose",
    "plan_tool.update_step": "plan/update_step",
    "plan_tool.get": "plan/get",
    "plan_tool.approve": "plan/approve",
    "task_tool.generate_list": "task/generate_list",
    "task_loop.run": "task_loop/run",
}
"""What the seeds call tools (R4.7, C4.1)."""
_FOREIGN: Mapping[str, str] = MappingProxyType(
    {
        name: ours
        for ours, names in {
            "files/read": "read readfile viewfile openfile view",
            "files/write": "write writefile createfile writetofile",
            "files/edit": "edit editfile replaceinfile strreplace searchreplace replace strreplaceeditor multiedit",
            "files/patch": "applypatch patch",
            "files/list": "ls listdir listfiles listdirectory glob findfiles",
            "search/text": "grep grepsearch searchfiles searchfilecontent ripgrep textsearch",
            "shell/run": "bash shell runcommand executecommand runterminalcmd runshellcommand execcommand terminal",
            "shell/kill": "killshell killbash",
            "shell/output": "bashoutput",
            "web/fetch": "webfetch fetch fetchwebpage fetchurl",
            "web/search": "websearch googlewebsearch",
            "user/ask": "askuser askfollowupquestion askuserquestion askquestion",
            "todo/write": "todowrite writetodos updatetodolist managetodolist",
        }.items()
        for name in names.split()
    }
)
"""What tools that models were trained on are called there, without case and signs."""
_CANONICAL = lazy(r"[^/]+/.")


@lru_cache(maxsize=1024)
def wire_name(name: str) -> str:
    """Return `name` as a function name for native calls: letters, digits, `_` and `-`, at most 64.

    `a/b` becomes `a__b`. A name that would lose something ends in a hash, so that no two are equal.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name.replace("/", "__", 1))
    if plain.replace("__", "/", 1) == name and len(plain) <= WIRE_LIMIT:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{plain[: WIRE_LIMIT - 11]}_{digest}"


def candidate_names(name: str) -> tuple[str, ...]:
    """The canonical names that `name` may stand for, the likeliest first."""
    stripped = name.strip()
    return (
        stripped,
        SEED_NAMES.get(re.sub(r"__|/", ".", stripped, count=1), ""),
        stripped.replace("__", "/", 1),
        stripped.replace(".", "/", 1),
    )


def canonical_name(name: str) -> str:
    """`namespace/tool` for any accepted spelling: itself, a seed's name, `a.b`, `a__b`."""
    return next((each for each in candidate_names(name) if _CANONICAL.match(each)), name.strip())


def spell(name: str) -> str:
    """A tool's name as a model reads it in a text: the one that it calls. What is no tool's name stays."""
    return wire_name(name) if _CANONICAL.match(name) else name


class NameMap:
    """Names of the tools on offer in both directions. Unknown names map too: a history or a model may use them."""

    __slots__ = ("_names",)

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._names = {wire_name(spec.name): spec.name for spec in specs}

    def to_wire(self, name: str) -> str:
        """The function name for `name`: letters, digits, `_`, `-`; at most 64 characters."""
        return wire_name(name)

    def to_name(self, wire: str) -> str:
        """The canonical name of what the model called."""
        return self._names.get(wire) or canonical_name(wire)


def nearest_names(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The known names most like `name`: by spelling, else those with the same last part."""
    import difflib  # when used

    names = list(known)
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.5)
    last = re.split(r"[/._]", name)[-1].lower()
    same = [n for n in names if last and last in n.lower() and n not in close]
    return tuple((close + same)[:limit])


def match_spelling(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` means, however it is put together; None where it means none, or several."""
    names = list(known)
    found = next((each for each in candidate_names(name) if each in names), None)
    found = found or next((each for each in names if wire_name(each) == name.strip()), None)
    if found is not None:
        return found
    seed = next((to for old, to in SEED_NAMES.items() if old.partition(".")[2] == name.strip()), None)
    if seed is not None and "_" in name and seed in names:
        return seed
    plain = _plain(name)
    same = [each for each in names if plain and _plain(each) == plain]
    return same[0] if len(same) == 1 else None


def foreign_name(name: str) -> str | None:
    """Return our tool for another program's tool `name`; `core.calls.dialects` translates its arguments."""
    return _FOREIGN.get(_plain(name))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
