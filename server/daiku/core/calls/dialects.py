"""Arguments as models that were trained on other tools write them, turned into ours where the meaning is certain."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from daiku.core.calls.draft import Draft as _Draft
from daiku.core.calls.draft import number as _number
from daiku.core.calls.draft import truth as _truth
from daiku.core.calls.jsonargs import parse_json_text
from daiku.core.calls.searchdialect import translate_search
from daiku.domain.base import JsonObject

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

_PATH = (
    "file_path",
    "filepath",
    "filename",
    "file_name",
    "file",
    "target_file",
    "absolute_path",
    "relative_path",
)
_FOLDER = ("dir_path", "directory", "dir", "folder", "file_path", "relative_workspace_path", "directory_path")
_SEARCH = ("old_string", "old_str", "old_text", "oldstring", "oldtext", "find", "original")
_REPLACE = ("new_string", "new_str", "new_text", "newstring", "newtext", "replacement", "updated")
_EVERY = ("replace_all", "replaceall")


class Translated(NamedTuple):
    """Arguments in our words, and what was changed for that: a few words each."""

    args: JsonObject
    notes: tuple[str, ...] = ()


def translate_dialect(tool: str, args: JsonObject, known: frozenset[str]) -> Translated:
    """`args` of `tool` in our words; unchanged where the meaning is not certain. `known` are the tool's own
    parameters, which are never touched unless their value has another tool's form. Pure, total, and idempotent."""
    draft = _Draft(args)
    for key in [key for key in draft.args if key.lower() in REMARKS and key not in known]:
        del draft.args[key]  # says why, not what
    translate = _TOOLS.get(tool)
    if translate is not None:
        translate(draft)
    return Translated(draft.args, tuple(draft.notes))


def _one(draft: _Draft, plural: str, ours: str) -> None:
    """A list with one element where we take one value."""
    value = draft.args.get(plural)
    if ours not in draft.args and isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        del draft.args[plural]
        draft.put(ours, value[0], f"{plural} was read as {ours}")


def _read(draft: _Draft) -> None:
    draft.rename("path", *_PATH)
    _one(draft, "paths", "path")
    draft.rename("start_line", "start", "line_start", "startline", "start_line_one_indexed")
    draft.rename("end_line", "end", "line_end", "endline", "end_line_one_indexed_inclusive")
    if draft.args.get("should_read_entire_file") is False or _whole(draft):
        draft.args.pop("should_read_entire_file", None)
    if {"start_line", "end_line"} & draft.args.keys():
        return
    _view_range(draft)
    _offset(draft)


def _whole(draft: _Draft) -> bool:
    """Whether the whole file is asked for and no part of it."""
    return _truth(draft.args.get("should_read_entire_file")) is True and not (
        {"start_line", "end_line"} & draft.args.keys()
    )


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


def _write(draft: _Draft) -> None:
    draft.rename("path", *_PATH)
    draft.rename("content", "text", "contents", "file_text", "code", "file_content", "code_content")


def _edit(draft: _Draft) -> None:
    draft.rename("path", *_PATH)
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
    one.rename("replace_all", *_EVERY)


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


def _patch(draft: _Draft) -> None:
    draft.rename("patch", "input", "diff", "patch_text", "patchtext", "patch_content")


def _move(draft: _Draft) -> None:
    draft.rename("path", "source", "src", "from", "old_path", "source_path")
    draft.rename("to", "destination", "dest", "new_path", "destination_path", "target")


def _delete(draft: _Draft) -> None:
    draft.rename("path", *_PATH)
    _one(draft, "paths", "path")


def _list(draft: _Draft) -> None:
    draft.rename("path", *_FOLDER)
    draft.rename("glob", "pattern", "include", "file_pattern")
    recursive = draft.take("recursive")
    if recursive is not None:
        deep = _truth(recursive[1])
        if deep is None:
            draft.args[recursive[0]] = recursive[1]
        elif "depth" not in draft.args:
            draft.put("depth", 50 if deep else 1, f"{recursive[0]} was read as depth")


def _shell(draft: _Draft) -> None:
    draft.rename("command", "cmd", "script", "command_line", "commandline")
    _argv(draft)
    draft.rename("background", "is_background", "run_in_background", "isbackground", "blocking_background")
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
    taken = draft.take("timeout_ms", "timeoutms", "timeout_millis") if "timeout" not in draft.args else None
    if taken is not None:
        milliseconds = _number(taken[1])
        if milliseconds is None or milliseconds < 1:
            draft.args[taken[0]] = taken[1]
        else:
            draft.put("timeout", max(1, milliseconds / 1000), f"{taken[0]} was read as timeout, in seconds")
        return
    draft.rename("timeout", "timeout_seconds", "timeout_secs", "timeout_sec", "max_seconds")
    seconds = _number(draft.args.get("timeout"))
    if seconds is not None and seconds > MOST_SECONDS and seconds / 1000 <= MOST_SECONDS:
        draft.put("timeout", seconds / 1000, f"timeout was read as {seconds} ms; it is in seconds here")


def _folder(draft: _Draft) -> None:
    taken = draft.take("workdir", "cwd", "working_directory", "work_dir", "working_dir", "directory")
    if taken is None:
        return
    command = draft.args.get("command")
    if not isinstance(command, str) or not isinstance(taken[1], str):
        draft.args[taken[0]] = taken[1]
    elif taken[1] not in ("", "."):
        draft.put(
            "command", f"cd {shlex.quote(taken[1])} && {command}", f"{taken[0]} was put before the command"
        )


def _find(draft: _Draft) -> None:
    draft.rename("query", "q", "search", "keyword", "keywords", "name", "tool", "pattern")
    words = draft.args.get("query")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        draft.put("query", " ".join(map(str, words)), "query was read as one text")


_TOOLS: Mapping[str, Callable[[_Draft], None]] = {
    "files/read": _read,
    "files/write": _write,
    "files/edit": _edit,
    "files/patch": _patch,
    "files/move": _move,
    "files/delete": _delete,
    "files/list": _list,
    "search/text": translate_search,
    "shell/run": _shell,
    "tools/find": _find,
}
