"""The text for the person inside the JSON of a text protocol, decoded character by character as it streams."""

from __future__ import annotations

SPOKEN = ("comment", "reply", "message", "response")
"""Keys whose text is said to the person."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class PersonTextDecoder:
    """Walks through one JSON value and decodes the text that is meant for the person."""

    def __init__(self, *, needs_break: bool) -> None:
        self._needs_break = needs_break
        self._stack: list[str] = []
        self._path: list[str] = []
        self._quote = ""
        self._escape = ""
        self._high = ""
        self._is_key = False
        self._key = ""
        self._expect_key = False
        self._previous = ""
        self._target = ""
        self._spoken = False
        self._nested = ""

    def feed(self, text: str) -> tuple[str, int, bool]:
        """The spoken text, how many characters were used, whether the value ended."""
        out: list[str] = []
        for at, char in enumerate(text):
            if self._quote:
                self._in_string(char, out)
            elif self._structure(char):
                out.append(self.fallback_comment())
                return "".join(out), at + 1, True
        return "".join(out), len(text), False

    def fallback_comment(self) -> str:
        """Return the command's own comment if there was no outer comment (C2.2)."""
        text, self._nested = self._nested, ""
        return "" if self._spoken or not text else self._with_break(text)

    def _with_break(self, text: str) -> str:
        mended = "\n" + text if self._needs_break else text
        self._needs_break = False
        return mended

    def _structure(self, char: str) -> bool:
        match char:
            case "{" | "[":
                self._stack.append(char)
                self._path.append(self._key)
                self._expect_key = char == "{"
            case "}" | "]":
                if self._stack:
                    self._stack.pop()
                    self._path.pop()
                self._expect_key = False
                return not self._stack
            case ",":
                self._expect_key = bool(self._stack) and self._stack[-1] == "{"
            case ":":
                self._expect_key = False
            case '"':
                self._open_string(char)
            case "'" if self._previous in ("{", "[", ",", ":"):
                self._open_string(char)
            case _:
                pass
        if not char.isspace():
            self._previous = char
        return False

    def _open_string(self, quote: str) -> None:
        self._quote, self._is_key, self._target = quote, self._expect_key, ""
        if self._is_key:
            self._key = ""
        elif self._stack[-1:] == ["{"] and self._key in SPOKEN:
            if len(self._stack) == 1 and not self._spoken:
                self._target, self._spoken = "aloud", True
            elif self._path[1:] == ["command"] and not self._nested:
                self._target = "nested"

    def _in_string(self, char: str, out: list[str]) -> None:
        if self._escape:
            self._unescape(char, out)
        elif char == "\\":
            self._escape = char
        elif char == self._quote:
            self._quote, self._previous = "", '"'
            if self._is_key:
                self._expect_key = False
        else:
            self._put(char, out)

    def _unescape(self, char: str, out: list[str]) -> None:
        self._escape += char
        if self._escape[1] != "u":
            self._put(_ESCAPES.get(char, char), out)
            self._escape = ""
        elif len(self._escape) == 6:
            digits, self._escape = self._escape[2:], ""
            try:
                self._put(chr(int(digits, 16)), out)
            except ValueError:
                return

    def _put(self, char: str, out: list[str]) -> None:
        if "\ud800" <= char <= "\udbff":
            self._high = char
            return
        if "\udc00" <= char <= "\udfff":
            pair = self._high + char
            char = pair.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._high = ""
        if self._is_key:
            self._key += char
        elif self._target == "aloud":
            out.append(self._with_break(char))
        elif self._target == "nested":
            self._nested += char
