"""Translate tool arguments of other coding agents to ours if their meaning is certain."""

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
"""Keys that explain a call and do not affect it."""
MOST_SECONDS = 3600
"""Seconds above which a timeout can only mean milliseconds."""

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
_CONTEXT_KEYS = ("-a", "-b", "-c", "after", "before")
"""Lines after, before, and around a match; here a single number."""


class Translation(NamedTuple):
    """Arguments with our names, and short notes about what was changed."""

    args: JsonObject
    notes: tuple[str, ...] = ()


class _Draft:
    """Arguments during translation. Every change is noted; existing keys of ours are never overwritten."""

    def __init__(self, args: JsonObject) -> None:
        self.args: JsonObject = dict(args)
        self.notes: list[str] = []

    def rename(self, ours: str, *theirs: str) -> None:
        """Rename the one present key of `theirs` to `ours`; several present keys stay."""
        present = [key for key in self.args if key.lower() in theirs]
        if ours in self.args or len(present) != 1:
            return
        self.args[ours] = self.args.pop(present[0])
        self.notes.append(f"{present[0]} was read as {ours}")

    def take(self, *names: str) -> tuple[str, JsonValue] | None:
        """Remove the one present key of `names`; return its spelling and its value."""
        present = [key for key in self.args if key.lower() in names]
        return (present[0], self.args.pop(present[0])) if len(present) == 1 else None

    def take_opposite(self, ours: str, theirs: str) -> None:
        """Set `ours` to the opposite of `theirs`."""
        removed = self.take(theirs)
        if removed is None:
            return
        value = _to_bool(removed[1])
        if value is None or ours in self.args:
            self.args[removed[0]] = removed[1]
            return
        self.put(ours, not value, f"{removed[0]} was read as {ours}")

    def put(self, ours: str, value: JsonValue, note: str) -> None:
        self.args[ours] = value
        self.notes.append(note)


def _to_int(value: JsonValue) -> int | None:
    """Return an integer, also from its text; None for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.strip().lstrip("-").isdecimal() else None
    return value if isinstance(value, int) else None


def _to_bool(value: JsonValue) -> bool | None:
    """Return a Boolean, also from its text; None for other values."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def translate_dialect(tool: str, args: JsonObject, known: frozenset[str]) -> Translation:
    """Translate `args` of `tool` if their meaning is certain. Pure, total, and idempotent.

    `known`: the tool's own parameters, which stay unless their value has another form.
    """
    draft = _Draft(args)
    for key in [key for key in draft.args if key.lower() in REMARKS and key not in known]:
        del draft.args[key]  # does not affect the call
    for ours, theirs in _NAMES.get(tool, {}).items():
        draft.rename(ours, *theirs)
    convert = _CONVERSIONS.get(tool)
    if convert is not None:
        convert(draft)
    return Translation(draft.args, tuple(draft.notes))


def _convert_read(draft: _Draft) -> None:
    has_lines = bool({"start_line", "end_line"} & draft.args.keys())
    if not (has_lines and _to_bool(draft.args.get("should_read_entire_file"))):
        draft.args.pop("should_read_entire_file", None)
    if has_lines:
        return
    _convert_view_range(draft)
    _convert_offset(draft)


def _convert_view_range(draft: _Draft) -> None:
    value = draft.args.get("view_range")
    if not isinstance(value, list) or len(value) != 2:
        return
    first, last = _to_int(value[0]), _to_int(value[1])
    if first is None or last is None or first < 1 or not (last == -1 or last >= first):
        return
    del draft.args["view_range"]
    draft.put("start_line", first, "view_range was read as start_line and end_line")
    if last != -1:
        draft.args["end_line"] = last


def _convert_offset(draft: _Draft) -> None:
    offset, limit = _to_int(draft.args.get("offset")), _to_int(draft.args.get("limit"))
    keys = {"offset", "limit"} & draft.args.keys()
    if not keys or (offset is None and "offset" in keys) or (limit is None and "limit" in keys):
        return
    if (offset is not None and offset < 0) or (limit is not None and limit < 1):
        return
    for key in keys:
        del draft.args[key]
    first = max(1, offset or 1)
    draft.put("start_line", first, f"{' and '.join(sorted(keys))} was read as lines from {first}")
    if limit is not None:
        draft.args["end_line"] = first + limit - 1


def _convert_edit(draft: _Draft) -> None:
    original = draft.args.get("edits")
    edits = _parse_if_json(original)
    if isinstance(edits, list):
        edits = [_parse_if_json(one) for one in edits]
    if edits is None:
        _convert_flat_edit(draft)
        return
    entries: list[JsonValue] = (
        [edits] if isinstance(edits, dict) else edits if isinstance(edits, list) else []
    )
    drafts = [_Draft(one) for one in entries if isinstance(one, dict)]
    if not drafts or len(drafts) != len(entries):
        return
    for one in drafts:
        _rename_edit_keys(one)
    if edits != original or isinstance(edits, dict) or any(one.notes for one in drafts):
        first = next((one.notes for one in drafts if one.notes), ["edits was read as a list"])
        draft.put("edits", [one.args for one in drafts], "; ".join(first))


def _parse_if_json(value: JsonValue) -> JsonValue:
    """Return the object or list in a JSON string, else the value itself."""
    inner = parse_json_text(value) if isinstance(value, str) else None
    return value if inner is None else inner


def _rename_edit_keys(one: _Draft) -> None:
    one.rename("search", *_SEARCH)
    one.rename("replace", *_REPLACE)
    one.rename("replace_all", "replaceall")


def _convert_flat_edit(draft: _Draft) -> None:
    """Convert a single edit whose keys are next to the path."""
    one = _Draft({key: value for key, value in draft.args.items() if key != "path"})
    _rename_edit_keys(one)
    if _to_int(one.args.get("expected_replacements")) == 1:
        del one.args["expected_replacements"]
    if not {"search", "replace"} <= one.args.keys() <= {"search", "replace", "replace_all"}:
        return
    path = draft.args.get("path")
    draft.args = {} if path is None else {"path": path}
    draft.put("edits", [one.args], "; ".join([*one.notes, "the edit was put into edits"]))


def _convert_list(draft: _Draft) -> None:
    recursive = draft.take("recursive")
    if recursive is not None:
        is_deep = _to_bool(recursive[1])
        if is_deep is None:
            draft.args[recursive[0]] = recursive[1]
        elif "depth" not in draft.args:
            draft.put("depth", 50 if is_deep else 1, f"{recursive[0]} was read as depth")


def _convert_search(draft: _Draft) -> None:
    draft.take_opposite("ignore_case", "case_sensitive")
    draft.take_opposite("literal", "isregexp")
    if draft.args.get("mode") == "files_with_matches":
        draft.args["mode"] = "files"
    _convert_context(draft)
    limits = _NAMES["search/text"]["limit"]
    if draft.args.get("limit") in (0, "0") and not any(key.lower() in limits for key in draft.args):
        # other agents: no limit
        del draft.args["limit"]
        draft.notes.append("limit 0 was read as the usual limit")
    if draft.take("-n") is not None:
        draft.notes.append("-n has no effect here")


def _convert_context(draft: _Draft) -> None:
    """Convert lines before and after a match to one number for both sides."""
    counts: dict[str, int] = {}
    for key, value in draft.args.items():
        lines = _to_int(value)
        if key.lower() in _CONTEXT_KEYS and lines is not None:
            counts[key] = lines
    if not counts or "context" in draft.args:
        return
    for key in counts:
        del draft.args[key]
    draft.put(
        "context", max(counts.values()), f"{' and '.join(counts)} was read as context, before and after"
    )


def _convert_shell(draft: _Draft) -> None:
    _convert_argv(draft)
    _convert_timeout(draft)
    _convert_folder(draft)


def _convert_argv(draft: _Draft) -> None:
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


def _convert_timeout(draft: _Draft) -> None:
    removed = draft.take("timeout_ms") if "timeout" not in draft.args else None
    if removed is not None:
        milliseconds = _to_int(removed[1])
        if milliseconds is None or milliseconds < 1:
            draft.args[removed[0]] = removed[1]
        else:
            draft.put("timeout", max(1, milliseconds / 1000), f"{removed[0]} was read as timeout, in seconds")
        return
    seconds = _to_int(draft.args.get("timeout"))
    if seconds is not None and seconds > MOST_SECONDS and seconds / 1000 <= MOST_SECONDS:
        draft.put("timeout", seconds / 1000, f"timeout was read as {seconds} ms; it is in seconds here")


def _convert_folder(draft: _Draft) -> None:
    removed = draft.take("workdir", "cwd", "directory")
    if removed is None:
        return
    command = draft.args.get("command")
    if not isinstance(command, str) or not isinstance(removed[1], str):
        draft.args[removed[0]] = removed[1]
    elif removed[1] not in ("", "."):
        draft.put(
            "command",
            f"cd {shlex.quote(removed[1])} && {command}",
            f"{removed[0]} was put before the command",
        )


_CONVERSIONS: Mapping[str, Callable[[_Draft], None]] = {
    "files/read": _convert_read,
    "files/edit": _convert_edit,
    "files/list": _convert_list,
    "search/text": _convert_search,
    "shell/run": _convert_shell,
}
