"""The part of a reply that is for a person, as it streams: prose and comments, no calls."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy
from daiku.core.textcalls.parsed_calls import PLAIN_TAGS, OfferedTools
from daiku.core.textcalls.persontext import SPOKEN, PersonTextDecoder

_KEYS = (*SPOKEN, "command", "done", "actions", "action_list", "ActionList", "tool_calls", "operation")
_CALL_KEYS = (
    "name",
    "type",
    "function",
    "tool_calls",
    "tool",
    "tool_name",
    "action",
    "parameters",
    "arguments",
)
"""The first keys of calls that the text protocols do not know."""
_ITEM_KEYS = ("operation", "tool", "name", "tool_name", "id", "action_id", "reasoning", "args", "arguments")
_WORDS = ("Action:", "functools[", "previous_output", "previous_command")
_SO_FAR = "|".join(re.escape(word[:end]) for word in _WORDS for end in range(1, len(word) + 1))
_LINES = r"(?P<action>Action:)|functools\[|previous_(?:output|command)(?=\W)|<(?P<tag>[a-z][\w./-]*)>"
_ACTION = lazy(r"[ \t]*Action:[ \t]*(?:`{3}|`?[\w./-]+`?[ \t]*\n)")
_ACTION_SO_FAR = lazy(r"[ \t]*Action:[ \t]*(?:`{0,2}|`?[\w./-]+`?[ \t]*)$")
_MARKS = r"<(?:[|｜][A-Za-z/]|/?(?:tool_|TOOLCALL|function|invoke|minimax:|seed:|mm:))|\[TOOL_CALLS\]"
_MARK = lazy(_MARKS)
_PLACE = lazy(
    rf"(?:(?<=\n)|^)[ \t]*(?:(?P<json>[\[{{]|`{{3,}}|~{{3,}})|{_LINES}|{_MARKS})|(?<!`)(?:{_MARKS})"
)
_MARKS_SO_FAR = r"<(?:[|｜]|[/\w:]{0,10})|\[[A-Z_]{0,10}"
_UNDECIDED_END = lazy(
    rf"(?:(?<=\n)|^)[ \t]*(?:`{{1,2}}|~{{1,2}}|{_SO_FAR}|<[\w./-]{{0,40}}|{_MARKS_SO_FAR})?$|(?:{_MARKS_SO_FAR})$"
)
_SPECIAL = lazy(r"[<\[\n](?:(?<!\[)|(?=[A-Z_]|$))")
"""What may end a line of prose or begin a call within it; all else that does begins a line."""
_FENCE = lazy(r"[ \t]*(`{3,}|~{3,})([A-Za-z0-9_+-]*)\s*")
_CALL_BLOCKS = ("tool_code", "tool_call", "tool_calls", "tool_output")
_OBJECT = lazy(r"\{\s*[\"'](\w+)[\"']\s*:")
_OBJECT_SO_FAR = lazy(r"\{\s*(?:[\"']\w{0,20}(?:[\"']\s*)?)?$")
_PYTHON = lazy(r"\[\s*[A-Za-z_][\w.]*\(")
_PYTHON_SO_FAR = lazy(r"\[\s*(?:[A-Za-z_][\w.]{0,60})?$")
_LIST = lazy(r"\[\s*(?:\]|\{\s*[\"'](\w+)[\"']\s*:)")
_LIST_SO_FAR = lazy(r"\[\s*(?:\{\s*(?:[\"']\w{0,20}(?:[\"']\s*)?)?)?$")


class HumanText:
    """Feed it a reply in any pieces; what comes out together is the same however it was cut.

    `own`: the reply may be in a text protocol, whose comments are said. From what begins like a call of
    another form on nothing is shown: how the reply was read tells what of it was text (`unshown_text`).
    """

    def __init__(self, offered: OfferedTools | None = None, *, own: bool = True) -> None:
        self._offered = offered or OfferedTools()
        self._own = own
        self._mute = False
        self._spoke = False  # something but blanks was shown
        self._plain = False
        self._shown: list[str] = []
        self._held: str = ""
        self._line_start = True
        self._mark: str = ""
        self._line = ""
        self._opened = False
        self._json: PersonTextDecoder | None = None
        self._after_json = False
        self._said = ""

    def feed(self, piece: str) -> str:
        """What of the text can be shown now."""
        if not self._plain or _SPECIAL.search(piece):
            return self._look_at(piece)
        if piece:  # nearly every one: words within a line of prose
            self._shown.append(piece)
            self._said, self._spoke = piece[-1], True
            if self._mark:
                self._line += piece
        return piece

    @property
    def can_pass_through(self) -> bool:
        """Return whether text without markers or line breaks can be shown unprocessed."""
        return self._plain

    def _look_at(self, piece: str) -> str:
        if self._mute:
            return ""
        self._held += piece
        out: list[str] = []
        while self._held and self._step(out, last=False):
            pass
        return self._note_shown(out)

    def close(self) -> str:
        """What was still undecided when the reply ended."""
        out: list[str] = []
        while self._held and self._step(out, last=True):
            pass
        if self._json is not None:
            out.append(self._json.fallback_comment())
        return self._note_shown(out)

    def unshown_text(self, text: str) -> str:
        """Return the part of `text`, the final reply, that is not shown yet; empty if other text was shown."""
        shown = "".join(self._shown)
        shown = shown if text.startswith(shown) else shown.strip()
        return text[len(shown) :] if text.startswith(shown) else ""

    def _note_shown(self, out: list[str]) -> str:
        text = "".join(out)
        self._shown.append(text)
        within = self._mark or not self._line_start  # of a block of code, or of a line of prose
        self._plain = bool(within) and not (self._held or self._json or self._after_json or self._mute)
        self._said = (self._said + text)[-1:]
        return text

    def _step(self, out: list[str], *, last: bool) -> bool:
        """Move on in the held text; False when more is needed to decide."""
        if self._json is not None:
            return self._in_json(out)
        if self._after_json:
            return self._past_json(last=last)
        if self._mark:
            return self._in_code(out)
        return self._in_prose(out, last=last)

    def _in_prose(self, out: list[str], *, last: bool) -> bool:
        shift = 0 if self._line_start else 1
        before = "".join(out)[-1:] or self._said
        text = self._held if self._line_start else ("`" if before == "`" else "x") + self._held
        place = _PLACE.search(text)
        if place is None:
            end = None if last else _UNDECIDED_END.search(text)
            upto = end.start() if end and end.start() >= shift else len(text)
            self._emit(out, upto - shift)
            return False
        self._emit(out, place.start() - shift)
        match self._decide(last=last) if place["json"] else self._at_mark(place, last=last):
            case "wait":
                return False
            case "hold":
                self._mute, self._held = True, ""
                return False
            case "json":
                spoken_before = "".join(out)[-1:] or self._said
                self._json = PersonTextDecoder(needs_break=bool(spoken_before.strip()))
            case "code":
                pass
            case _:
                self._emit(out, max(1, place.end() - place.start()))
        return True

    def _emit(self, out: list[str], count: int) -> None:
        if count > 0:
            out.append(self._held[:count])
            self._held = self._held[count:]
            self._line_start = out[-1].endswith("\n")
            self._spoke = self._spoke or not out[-1].isspace()

    def _at_mark(self, place: re.Match[str], *, last: bool) -> str:
        """A mark of calls or results holds the rest; a tag only where a tool has its name."""
        if place["action"]:
            if _ACTION_SO_FAR.match(self._held) and not last:
                return "wait"
            return "hold" if _ACTION.match(self._held) else "prose"
        if _MARK.match(self._held.lstrip(" \t")):
            return "hold"
        tag = place["tag"]
        return (
            "hold"
            if tag is None or tag in PLAIN_TAGS or (self._offered.specs and self._offered.resolve(tag))
            else "prose"
        )

    def _decide(self, *, last: bool) -> str:
        """What begins at the held text: `json` of a protocol, `code` in a fence, `prose`, or `wait`; `hold`
        for calls of another form, which count in a block or where nothing was said before."""
        fence = _FENCE.match(self._held)
        body = self._held[fence.end() :] if fence else self._held.lstrip(" \t")
        if fence and not body:
            return "prose" if last else "wait"
        if body.startswith("[TOOL_CALLS]"):
            return "hold"
        if _OBJECT_SO_FAR.match(body) or _LIST_SO_FAR.match(body) or "[TOOL_CALLS]".startswith(body):
            return "prose" if last else "wait"
        first = bool(fence) or not self._spoke
        if first and _PYTHON_SO_FAR.match(body) and not last:
            return "wait"
        found, listed = _OBJECT.match(body), _LIST.match(body)
        key = (found[1] or "") if found else (listed[1] or "") if listed else ""
        if first and (key in _CALL_KEYS or _PYTHON.match(body) or (fence and fence[2] in _CALL_BLOCKS)):
            return "hold"
        wanted = key in _KEYS if found else bool(listed and (not key or key in _ITEM_KEYS))
        if self._own and wanted:
            self._held = body
            self._mark = fence[1] if fence else ""
            return "json"
        if fence:
            self._mark, self._line = fence[1], ""
            return "code"
        return "prose"

    def _in_code(self, out: list[str]) -> bool:
        """A block of code goes through as it is; braces in it mean nothing."""
        line, newline, _ = self._held.partition("\n")
        self._emit(out, len(line) + len(newline))
        self._line += line
        if newline:
            text = self._line.strip()
            opening = text.startswith(self._mark) and not text.strip(self._mark[0])
            self._line = ""
            if opening and self._opened:
                self._mark, self._opened = "", False
            else:
                self._opened = True
        return True

    def _in_json(self, out: list[str]) -> bool:
        assert self._json is not None
        text, used, ended = self._json.feed(self._held)
        out.append(text)
        self._spoke = self._spoke or bool(text.strip())
        self._held = self._held[used:]
        if ended:
            self._json, self._after_json = None, True
        return bool(self._held)

    def _past_json(self, *, last: bool) -> bool:
        """Blanks and the closing fence after a protocol's JSON say nothing."""
        text = self._held.lstrip()
        if self._mark and not last and len(text) < len(self._mark) and self._mark.startswith(text):
            return False
        if not text:
            self._held = text
            return False
        if self._mark and text.startswith(self._mark):
            text = text[len(self._mark) :]
        self._held, self._mark, self._after_json, self._line_start = text, "", False, True
        return True
