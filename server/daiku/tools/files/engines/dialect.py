"""ripgrep's regular expressions for Python: what both know stays, what is written otherwise is rewritten, the rest is said."""

from __future__ import annotations

import re

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s",
    "upper": "A-Z", "word": r"\w", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_PIECES = re.compile(
    r"\[:(?P<posix>\w+):\]|\\x\{(?P<hex>[0-9A-Fa-f]{1,6})\}|\\(?P<escape>.)|\(\?<(?P<named>[A-Za-z_]\w*)>"
    r"|(?P<look>\(\?<?[=!])|\(\?(?P<flags>[imsxuU]+)\)",
    re.DOTALL,
)
_ENDS = {"z": r"\Z"}
_NESTED = re.compile(r"[+*}]\)[+*{]|\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)[+*{]")
_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "x": re.VERBOSE, "m": re.MULTILINE}
LOOK = "look-around, including look-ahead and look-behind, is not supported"
BACK = "backreferences are not supported"


def compiled(pattern: str, *, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    """ripgrep's expression as one of Python. Raises ValueError, with the reason, for what cannot be one."""
    flags = re.MULTILINE | (re.DOTALL if multiline else 0) | (re.IGNORECASE if ignore_case else 0)
    parts: list[str] = []
    at = 0
    for found in _PIECES.finditer(pattern):
        parts.append(pattern[at : found.start()])
        at = found.end()
        if found["flags"]:
            if found.start():
                raise ValueError(f"flags such as {found[0]} are only understood at the beginning")
            for flag in found["flags"]:
                flags |= _FLAGS.get(flag, 0)
        else:
            parts.append(_piece(found))
    parts.append(pattern[at:])
    if _NESTED.search(pattern):
        raise ValueError("a repetition inside a repetition may never end; write it without")
    try:
        return re.compile("".join(parts), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _piece(found: re.Match[str]) -> str:
    if found["look"]:
        raise ValueError(LOOK)
    if found["posix"]:
        return _CLASSES.get(found["posix"], found[0])
    if found["hex"]:
        return re.escape(chr(min(int(found["hex"], 16), 0x10FFFF)))
    if found["named"]:
        return f"(?P<{found['named']}>"
    escape = found["escape"]
    if escape in "123456789":
        raise ValueError(BACK)
    if escape in "pP":
        raise ValueError(f"classes such as \\{escape}{{…}} need ripgrep, which is not installed here")
    return _ENDS.get(escape, found[0])
