"""Arguments of search/text as other tools that search take them: grep's flags, modes, limits."""

from __future__ import annotations

from daiku.core.calls.draft import Draft, number, opposite, truth

_MODES = {
    "content": "content", "lines": "content", "files_with_matches": "files", "files": "files", "paths": "files",
    "files_only": "files", "count": "count", "counts": "count",
}  # fmt: skip

_SWITCHES = {
    "files_with_matches": "files",
    "files_only": "files",
    "-l": "files",
    "-c": "count",
    "count": "count",
}


def translate_search(draft: Draft) -> None:
    """Put the arguments of other tools that search (grep's flags too) into those of search/text."""
    draft.rename("pattern", "query", "search", "search_term", "search_pattern")
    if isinstance(draft.args.get("regex"), str) and truth(draft.args["regex"]) is None:
        draft.rename("pattern", "regex")
    draft.rename(
        "glob", "include", "include_pattern", "includepattern", "file_pattern", "glob_pattern", "include_glob"
    )
    draft.rename(
        "path",
        "dir_path",
        "directory",
        "dir",
        "folder",
        "search_path",
        "search_directory",
        "target_directory",
    )
    opposite(draft, "ignore_case", "case_sensitive", "casesensitive")
    draft.rename("multiline", "-u", "multi_line")
    draft.rename("ignore_case", "-i", "case_insensitive", "caseinsensitive")
    opposite(draft, "literal", "regex", "isregexp", "is_regex", "is_regexp", "regexp", "use_regex")
    _mode(draft)
    _around(draft)
    draft.rename(
        "limit", "head_limit", "max_results", "maxresults", "max_matches", "max_count", "num_results"
    )
    if draft.args.get("limit") in (0, "0"):  # elsewhere: no limit
        del draft.args["limit"]
        draft.notes.append("limit 0 was read as the usual limit")
    for key in ("-n", "line_numbers", "-r", "-H"):
        if key in draft.args:
            del draft.args[key]
            draft.notes.append(f"{key} has no effect here")


def _around(draft: Draft) -> None:
    """Lines before and after a match: here there are as many on both sides."""
    draft.rename("context", "-c", "context_lines", "num_context_lines", "surrounding_lines")
    sides = ("-b", "-a", "before", "after", "lines_before", "lines_after", "before_context", "after_context")
    here: dict[str, int] = {}
    for key, value in draft.args.items():
        lines = number(value)
        if key.lower() in sides and lines is not None:
            here[key] = lines
    if not here or "context" in draft.args:
        return
    for key in here:
        del draft.args[key]
    draft.put("context", max(here.values()), f"{' and '.join(here)} was read as context, before and after")


def _mode(draft: Draft) -> None:
    """What is answered: the lines, the files alone, or how many there are."""
    for key, mode in _SWITCHES.items():
        if truth(draft.args.get(key)) is True and "mode" not in draft.args:
            del draft.args[key]
            draft.put("mode", mode, f"{key} was read as mode")
    draft.rename("mode", "output_mode", "outputmode", "output")
    wanted = draft.args.get("mode")
    if isinstance(wanted, str) and wanted in _MODES:
        draft.args["mode"] = _MODES[wanted]
