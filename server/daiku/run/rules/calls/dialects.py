"""Translate the arguments of other coding agents' tools to ours where the meaning is certain."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.run.rules.calls.jsonargs import parse_json_text

REMARKS = frozenset(
    {
        "description", "explanation", "reason", "reasoning", "rationale", "thought", "thoughts", "purpose", "comment",
        "justification", "instruction", "instructions", "task_progress", "toolcallid", "tool_call_id",
        "waitforprevioustools", "requires_approval", "safetoautorun", "safe_to_auto_run", "user_friendly_description",
    }
)  # fmt: skip
"""Keys that say why a call is made and change nothing of what it does."""
MOST_SECONDS = 3600
"""A timeout above this can only mean milliseconds."""

_PATH = ("file_path", "filepath", "filename", "file", "target_file", "absolute_path")
_SEARCH = ("old_string", "oldstring", "old_str", "old_text", "oldtext")
_REPLACE = ("new_string", "newstring", "new_str", "new_text", "newtext")
_NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "files/read": {
        "path": _PATH,
        "start_line": ("startline", "start_line_one_indexed"),
        "end_line": ("endline", "end_line_one_indexed_inclusive"),
    },
    "files/write": {"path": _PATH, "content": ("file_text", "contents")},
    "files/edit": {"path": _PATH},
    "files/patch": {"patch": ("input", "patchtext")},
    "files/move": {"path": ("source",), "to": ("destination",)},
    "files/delete": {"path": _PATH},
    "files/list": {"path": ("dir_path", "relative_workspace_path", "target_directory"), "glob": ("pattern",)},
    "search/text": {
        "pattern": ("query", "regex"),
        "glob": ("include", "include_pattern", "includepattern", "file_pattern"),
        "path": ("dir_path",),
        "ignore_case": ("-i",),
        "mode": ("output_mode",),
        "limit": ("head_limit", "max_results", "maxresults"),
    },
    "shell/run": {
        "command": ("cmd", "commandline"),
        "background": ("is_background", "isbackground", "run_in_background"),
    },
}
"""By tool and argument: the names that the argument has in other agents' published tools, in lower case."""
_AROUND = ("-a", "-b", "-c", "after", "before")
"""Lines after, before, and around a match, which is one number here."""


class Translated(NamedTuple):
    """Arguments in our words, and what was changed for that: a few words each."""

    args: JsonObject
    notes: tuple[str, ...] = ()


class _Draft:
    """Arguments while they are translated: every change is noted, and no key of ours is ever overwritten."""

    def __init__(self, args: JsonObject) -> None:
        self.args: JsonObject = dict(args)
        self.notes: list[str] = []

    def rename(self, ours: str, *theirs: str) -> None:
        """Take the value of the one of `theirs` that is there for `ours`; two of them are left as they are."""
        here = [key for key in self.args if key.lower() in theirs]
        if ours in self.args or len(here) != 1:
            return
        self.args[ours] = self.args.pop(here[0])
        self.notes.append(f"{here[0]} was read as {ours}")

    def take(self, *names: str) -> tuple[str, JsonValue] | None:
        """Remove the one key of `names` that is there; its spelling and its value."""
        here = [key for key in self.args if key.lower() in names]
        return (here[0], self.args.pop(here[0])) if len(here) == 1 else None

    def take_opposite(self, ours: str, theirs: str) -> None:
        """Take the opposite of `theirs` for `ours`."""
        taken = self.take(theirs)
        if taken is None:
            return
        value = _truth(taken[1])
        if value is None or ours in self.args:
            self.args[taken[0]] = taken[1]
            return
        self.put(ours, not value, f"{taken[0]} was read as {ours}")

    def put(self, ours: str, value: JsonValue, note: str) -> None:
        self.args[ours] = value
        self.notes.append(note)


def _number(value: JsonValue) -> int | None:
    """A whole number, also as its text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.strip().lstrip("-").isdecimal() else None
    return value if isinstance(value, int) else None


def _truth(value: JsonValue) -> bool | None:
    """A truth value, also as its text."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def translate_dialect(tool: str, args: JsonObject, known: frozenset[str]) -> Translated:
    """Translate `args` of `tool` if their meaning is certain. Pure, total, and idempotent.

    `known`: the tool's own parameters, which stay unless their value has another form.
    """
    draft = _Draft(args)
    for key in [key for key in draft.args if key.lower() in REMARKS and key not in known]:
        del draft.args[key]  # says why, not what
    for ours, theirs in _NAMES.get(tool, {}).items():
        draft.rename(ours, *theirs)
    convert = _CONVERSIONS.get(tool)
    if convert is not None:
        convert(draft)
    return Translated(draft.args, tuple(draft.notes))


def _read(draft: _Draft) -> None:
    has_lines = bool({"start_line", "end_line"} & draft.args.keys())
    if not (has_lines and _truth(draft.args.get("should_read_entire_file"))):
        draft.args.pop("should_read_entire_file", None)
    if has_lines:
        return
    _view_range(draft)
    _offset(draft)


def _view_range(draft: _Draft) -> None:
    value = draft.args.get("view_range")
    if not isinstance(value, list) or len(value) != 2:
        return
    first, last = _number(value[0]), _number(value[1])
    if first is None or last is None or first < 1 or not (last == -1 or last >= first):
        return
    del draft.args["view_range"]
    draft.put("start_line", first, "view_range was read as start_line and end_line")
    if last != -1:
        draft.args["end_line"] = last


def _offset(draft: _Draft) -> None:
    offset, limit = _number(draft.args.get("offset")), _number(draft.args.get("limit"))
    given = {"offset", "limit"} & draft.args.keys()
    if not given or (offset is None and "offset" in given) or (limit is None and "limit" in given):
        return
    if (offset is not None and offset < 0) or (limit is not None and limit < 1):
        return
    for key in given:
        del draft.args[key]
    first = max(1, offset or 1)
    draft.put("start_line", first, f"{' and '.join(sorted(given))} was read as lines from {first}")
    if limit is not None:
        draft.args["end_line"] = first + limit - 1


def _edit(draft: _Draft) -> None:
    given = draft.args.get("edits")
    edits = _parsed(given)
    if isinstance(edits, list):
        edits = [_parsed(one) for one in edits]
    if edits is None:
        _flat_edit(draft)
        return
    whole: list[JsonValue] = [edits] if isinstance(edits, dict) else edits if isinstance(edits, list) else []
    each = [_Draft(one) for one in whole if isinstance(one, dict)]
    if not each or len(each) != len(whole):
        return
    for one in each:
        _names_of_an_edit(one)
    if edits != given or isinstance(edits, dict) or any(one.notes for one in each):
        first = next((one.notes for one in each if one.notes), ["edits was read as a list"])
        draft.put("edits", [one.args for one in each], "; ".join(first))


def _parsed(value: JsonValue) -> JsonValue:
    """Return the object or list that a string is as JSON, else the value itself."""
    inner = parse_json_text(value) if isinstance(value, str) else None
    return value if inner is None else inner


def _names_of_an_edit(one: _Draft) -> None:
    one.rename("search", *_SEARCH)
    one.rename("replace", *_REPLACE)
    one.rename("replace_all", "replaceall")


def _flat_edit(draft: _Draft) -> None:
    """One edit whose parts stand beside the path."""
    one = _Draft({key: value for key, value in draft.args.items() if key != "path"})
    _names_of_an_edit(one)
    if _number(one.args.get("expected_replacements")) == 1:
        del one.args["expected_replacements"]
    if not {"search", "replace"} <= one.args.keys() <= {"search", "replace", "replace_all"}:
        return
    path = draft.args.get("path")
    draft.args = {} if path is None else {"path": path}
    draft.put("edits", [one.args], "; ".join([*one.notes, "the edit was put into edits"]))


def _list(draft: _Draft) -> None:
    recursive = draft.take("recursive")
    if recursive is not None:
        deep = _truth(recursive[1])
        if deep is None:
            draft.args[recursive[0]] = recursive[1]
        elif "depth" not in draft.args:
            draft.put("depth", 50 if deep else 1, f"{recursive[0]} was read as depth")


def _search(draft: _Draft) -> None:
    draft.take_opposite("ignore_case", "case_sensitive")
    draft.take_opposite("literal", "isregexp")
    if draft.args.get("mode") == "files_with_matches":
        draft.args["mode"] = "files"
    _context(draft)
    limits = _NAMES["search/text"]["limit"]
    if draft.args.get("limit") in (0, "0") and not any(key.lower() in limits for key in draft.args):
        # elsewhere: no limit
        del draft.args["limit"]
        draft.notes.append("limit 0 was read as the usual limit")
    if draft.take("-n") is not None:
        draft.notes.append("-n has no effect here")


def _context(draft: _Draft) -> None:
    """Lines before and after a match: here there are as many on both sides."""
    here: dict[str, int] = {}
    for key, value in draft.args.items():
        lines = _number(value)
        if key.lower() in _AROUND and lines is not None:
            here[key] = lines
    if not here or "context" in draft.args:
        return
    for key in here:
        del draft.args[key]
    draft.put("context", max(here.values()), f"{' and '.join(here)} was read as context, before and after")


def _shell(draft: _Draft) -> None:
    _argv(draft)
    _timeout(draft)
    _folder(draft)


def _argv(draft: _Draft) -> None:
    words = draft.args.get("command")
    if not isinstance(words, list) or not words:
        return
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) != len(words):
        return
    program = texts[0].rpartition("/")[2]
    if program in ("bash", "sh", "zsh") and len(texts) == 3 and texts[1] in ("-c", "-lc", "-l -c"):
        draft.put("command", texts[2], f"command was read as the line that {program} was to run")
    elif program not in ("bash", "sh", "zsh"):
        draft.put("command", shlex.join(texts), "command was read as one line")


def _timeout(draft: _Draft) -> None:
    taken = draft.take("timeout_ms") if "timeout" not in draft.args else None
    if taken is not None:
        milliseconds = _number(taken[1])
        if milliseconds is None or milliseconds < 1:
            draft.args[taken[0]] = taken[1]
        else:
            draft.put("timeout", max(1, milliseconds / 1000), f"{taken[0]} was read as timeout, in seconds")
        return
    seconds = _number(draft.args.get("timeout"))
    if seconds is not None and seconds > MOST_SECONDS and seconds / 1000 <= MOST_SECONDS:
        draft.put("timeout", seconds / 1000, f"timeout was read as {seconds} ms; it is in seconds here")


def _folder(draft: _Draft) -> None:
    taken = draft.take("workdir", "cwd", "directory")
    if taken is None:
        return
    command = draft.args.get("command")
    if not isinstance(command, str) or not isinstance(taken[1], str):
        draft.args[taken[0]] = taken[1]
    elif taken[1] not in ("", "."):
        draft.put(
            "command", f"cd {shlex.quote(taken[1])} && {command}", f"{taken[0]} was put before the command"
        )


_CONVERSIONS: Mapping[str, Callable[[_Draft], None]] = {
    "files/read": _read,
    "files/edit": _edit,
    "files/list": _list,
    "search/text": _search,
    "shell/run": _shell,
}
