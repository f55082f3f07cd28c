"""Streaming filter for the text of a reply that is for the user: prose, code blocks, and the protocol's comment."""

from __future__ import annotations

import json
import re

from daiku.models.rules.replies.parse import replace_lone_surrogates
from daiku.models.rules.textcalls.parsed_calls import PLAIN_TAGS, OfferedTools
from daiku.texts.rules.patterns import lazy

_KEYS = (
    "comment|reply|message|response|command|done|actions|action_list|ActionList|tool_calls|operation|id|action_id"
    "|reasoning|name|type|function|tool|tool_name|action|args|arguments|parameters"
)
"""Keys with which the JSON of a call may begin."""
_WORDS = ("Action:", "functools[", "previous_output", "previous_command")
_WORDS_SO_FAR = "|".join(re.escape(word[:end]) for word in _WORDS for end in range(1, len(word) + 1))
_VALUE = (
    rf"[{{\[][\s{{\[]{{0,200}}[\"'](?:{_KEYS})[\"']\s{{0,200}}:"
    r"|\[\s{0,200}(?:\]|[A-Za-z_][\w.]{0,59}\()|\[TOOL_CALLS\]"
)
_VALUE_SO_FAR = r"[{\[][\s{\[]{0,200}(?:[\"']?[\w.]{0,60}[\"']?\s{0,200})?\Z"
_MARKS = r"<(?:[|｜][A-Za-z/]|/?(?:tool_|TOOLCALL|function|invoke|minimax:|seed:|mm:))|\[TOOL_CALLS\]"
_MARKS_SO_FAR = r"<(?:[|｜]|[/\w:]{0,10})\Z|\[[A-Z_]{0,10}\Z"
_BEGINS = lazy(
    rf"(?<=\n)[ \t]{{0,200}}(?:{_MARKS}|(?P<fence>(?P<run>`{{3,200}}|~{{3,200}})(?P<info>[\w+-]*)\s{{0,200}})|{_VALUE}"
    r"|Action:[ \t]{0,9}(?:`{3}|`?[\w./-]{1,90}`?[ \t]{0,9}\n)|functools\[|previous_(?:output|command)\W"
    rf"|<(?P<tag>[a-z][\w./-]{{0,89}})>)|(?<!`)(?:{_MARKS})"
)
"""Possible starts of a call, and opening fences of code blocks."""
_UNDECIDED = lazy(
    rf"(?<=\n)[ \t]{{0,200}}(?:`{{1,2}}\Z|~{{1,2}}\Z|(?:{_WORDS_SO_FAR})\Z|<[\w./-]{{0,90}}\Z|{_VALUE_SO_FAR}|\Z"
    rf"|Action:[ \t]{{0,9}}[`\w./-]{{0,92}}[ \t]{{0,9}}\Z)|{_MARKS_SO_FAR}"
)
"""Ends of a text that may continue as one of these."""
_BLOCK_OF_CALLS = lazy(_VALUE)
_BLOCK_SO_FAR = lazy(rf"{_VALUE_SO_FAR}|\Z")
_COMMENT = lazy(r"\s*\{\s*\"(?:comment|reply|message|response)\"\s*:\s*(?P<quote>\")")
_COMMENT_SO_FAR = lazy(r"\s*\{\s*\"(?:comment|reply|message|response)\"\s*:\s*\Z")
_STRING = lazy(
    r"(?:[^\"\\]|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*"
)
"""JSON string as far as it can be decoded; both halves of a surrogate pair together."""
_SPECIAL = lazy(r"[<\[\n](?:(?<!\[)|(?=[A-Z_]|$))")
"""Characters that may end a line of prose or start a call within it; all other starts are at the start of a line."""
_CALL_BLOCKS = ("tool_code", "tool_call", "tool_calls", "tool_output")


class HumanText:
    """Streaming filter; the output does not depend on how the reply is split into pieces.

    From the first possible call on, only the comment of a text protocol (`text_protocol`) is shown, if it comes
    first. `unshown_text` returns the rest of the complete reply.
    """

    def __init__(self, offered: OfferedTools | None = None, *, text_protocol: bool = True) -> None:
        self._offered = offered or OfferedTools()
        self._text_protocol = text_protocol
        self._shown: list[str] = []
        self._last = "\n"
        self._held = ""
        self._fence = ""
        self._in_comment = False
        self._is_muted = False

    @property
    def can_pass_through(self) -> bool:
        """True if text without marks and line breaks can be shown unprocessed."""
        return not (self._held or self._in_comment or self._is_muted or self._last == "\n")

    def feed(self, piece: str) -> str:
        """Return the text that can be shown now."""
        if self.can_pass_through and not _SPECIAL.search(piece):
            self._show(piece)
            return piece
        self._held += "" if self._is_muted else piece
        shown_count = len(self._shown)
        while self._held and self._process_held():
            pass
        return "".join(self._shown[shown_count:])

    def unshown_text(self, text: str) -> str:
        """Return the part of `text`, the final reply, that is not shown yet; empty if other text was shown."""
        shown = "".join(self._shown)
        if text.startswith(shown):
            return text[len(shown) :]
        position = 0
        for char in "".join(shown.split()):  # blanks around calls are not part of the final text
            while text[position : position + 1].isspace():
                position += 1
            if text[position : position + 1] != char:
                return ""
            position += 1
        return text[position:]

    def _show(self, text: str) -> None:
        if text:
            self._shown.append(text)
            self._last = text[-1]

    def _show_held(self, count: int) -> None:
        self._show(self._held[:count])
        self._held = self._held[count:]

    def _process_held(self) -> bool:
        """Decide on the start of the held text; return False if that needs more text."""
        if self._in_comment:
            return self._continue_comment()
        return self._continue_block() if self._fence else self._continue_prose()

    def _continue_prose(self) -> bool:
        text = self._last + self._held
        begins = _BEGINS.search(text, 1)
        if begins is None:
            undecided = _UNDECIDED.search(text, 1)
            self._show_held((undecided.start() if undecided else len(text)) - 1)
            return False
        self._show_held(begins.start() - 1)
        length = begins.end() - begins.start()
        if begins["fence"]:
            return self._open_block(begins, self._held[length:])
        if begins["tag"] and not self._is_call_tag(begins["tag"]):
            self._show_held(length)
            return True
        return self._mute_from(self._held)

    def _open_block(self, fence: re.Match[str], body: str) -> bool:
        if _BLOCK_OF_CALLS.match(body):
            return self._mute_from(body)
        if _BLOCK_SO_FAR.match(body):
            return False
        if fence["info"] in _CALL_BLOCKS:
            return self._mute_from("")
        self._fence = fence["run"]
        self._show_held(len(self._held) - len(body))
        return True

    def _mute_from(self, body: str) -> bool:
        """Mute the text from `body` on, except for a comment at its start."""
        comment = _COMMENT.match(body) if self._text_protocol else None
        if self._text_protocol and _COMMENT_SO_FAR.match(body):
            return False
        if comment and not self._last.isspace():
            self._show("\n")
        self._in_comment, self._is_muted = comment is not None, comment is None
        self._held = body[comment.end() :] if comment else ""
        return True

    def _continue_comment(self) -> bool:
        string = _STRING.match(self._held)
        end = string.end() if string else 0
        closed = self._held.startswith('"', end)
        try:
            text = replace_lone_surrogates(json.loads(f'"{self._held[:end]}"', strict=False))
        except ValueError:
            text, closed = "", True
        self._show(str(text))
        self._held = self._held[end:]
        if closed:
            self._in_comment, self._is_muted, self._held = False, True, ""
        return False

    def _continue_block(self) -> bool:
        """Show a line of code; only a line with nothing but the closing fence ends the block."""
        line, newline, _ = self._held.partition("\n")
        if self._last == "\n":
            if re.match(rf"[ \t]{{0,99}}{self._fence[0]}{{0,99}}[ \t\r]{{0,99}}\Z", self._held):
                return False
            run = line.strip()
            if newline and run.startswith(self._fence) and not run.strip(self._fence[0]):
                self._fence = ""
        self._show_held(len(line) + len(newline))
        return True

    def _is_call_tag(self, tag: str) -> bool:
        return tag in PLAIN_TAGS or bool(self._offered.specs and self._offered.resolve(tag))
