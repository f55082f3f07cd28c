"""Tool names: canonical `namespace/tool`, function name for models, and legacy names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from daiku.domain.tools import ToolSpec
from daiku.texts.rules.patterns import lazy

WIRE_LIMIT = 64
"""Characters of a function name that every provider accepts."""

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
"""Tool names in the seeds."""
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
"""Our tools by the names that models learned in training, in lower case without punctuation."""
_CANONICAL = lazy(r"[^/]+/.")


@lru_cache(maxsize=1024)
def wire_name(name: str) -> str:
    """Return `name` as a function name of native calls: letters, digits, `_`, `-`; at most 64 characters."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name.replace("/", "__", 1))
    if plain.replace("__", "/", 1) == name and len(plain) <= WIRE_LIMIT:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{plain[: WIRE_LIMIT - 11]}_{digest}"


def candidate_names(name: str) -> tuple[str, ...]:
    """Return the canonical names that `name` may mean, most likely first."""
    stripped = name.strip()
    return (
        stripped,
        SEED_NAMES.get(re.sub(r"__|/", ".", stripped, count=1), ""),
        stripped.replace("__", "/", 1),
        stripped.replace(".", "/", 1),
    )


def canonical_name(name: str) -> str:
    """Return `namespace/tool` for any accepted spelling: itself, a seed's name, `a.b`, `a__b`."""
    return next((each for each in candidate_names(name) if _CANONICAL.match(each)), name.strip())


def spell(name: str) -> str:
    """Return a tool's name as models call it; other words unchanged."""
    return wire_name(name) if _CANONICAL.match(name) else name


class NameMap:
    """Names of the offered tools in both directions. Unknown names are mapped too."""

    __slots__ = ("_names",)

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._names = {wire_name(spec.name): spec.name for spec in specs}

    def to_wire(self, name: str) -> str:
        """Return the function name for `name`: letters, digits, `_`, `-`; at most 64 characters."""
        return wire_name(name)

    def to_name(self, wire: str) -> str:
        """Return the canonical name of a called function."""
        return self._names.get(wire) or canonical_name(wire)


def nearest_names(name: str, known_names: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the known names most similar to `name`: by spelling, then by the last part."""
    import difflib  # when used

    names = list(known_names)
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.5)
    last = re.split(r"[/._]", name)[-1].lower()
    same_ending = [n for n in names if last and last in n.lower() and n not in close]
    return tuple((close + same_ending)[:limit])


def match_spelling(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that `name` means in any spelling; None if it means none or several."""
    names = list(known_names)
    match = next((each for each in candidate_names(name) if each in names), None)
    match = match or next((each for each in names if wire_name(each) == name.strip()), None)
    if match is not None:
        return match
    seed = next((to for old, to in SEED_NAMES.items() if old.partition(".")[2] == name.strip()), None)
    if seed is not None and "_" in name and seed in names:
        return seed
    plain = _normalize(name)
    same_letters = [each for each in names if plain and _normalize(each) == plain]
    return same_letters[0] if len(same_letters) == 1 else None


def foreign_name(name: str) -> str | None:
    """Return our tool for another program's tool `name`. `dialects` translates its arguments."""
    return _FOREIGN.get(_normalize(name))


def _normalize(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
