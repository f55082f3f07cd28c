"""Secrets that are known by value: what ordinary tools print of them is redacted, and nothing else is."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.guard.rules.known_values import KnownValues
from daiku.guard.rules.redact import MARK, Redactor
from tests.cases import examples, for_each
from tests.timing import cpu_seconds

SECRETS = [
    "zq81-known-value-0042/plus",
    "sk-zz9Xw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0",
    "pa$$ w0rd!with(signs)&more",
    "日本語-secret-0042-値",
]
FILLED = "first line of the file\nkey={}\nlast line\n"


def _dump(data: bytes, columns: bool = True, width: int = 16) -> str:
    lines: list[str] = []
    for at in range(0, len(data), width):
        part = data[at : at + width]
        pairs = " ".join(part[place : place + 2].hex() for place in range(0, len(part), 2))
        drawn = "".join(chr(code) if 32 <= code < 127 else "." for code in part)
        lines.append(f"{at:08x}: {pairs:<39}" + (f"  {drawn}" if columns else ""))
    return "\n".join(lines)


def _canonical(data: bytes) -> str:
    lines: list[str] = []
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        drawn = "".join(chr(code) if 32 <= code < 127 else "." for code in part)
        lines.append(f"{at:08x}  {part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}  |{drawn}|")
    return "\n".join(lines)


def _characters(data: bytes) -> str:
    signs = [chr(code) if 32 <= code < 127 else f"{code:03o}" for code in data]
    return "\n".join(
        f"{at:07o} " + " ".join(f"{sign:>3}" for sign in signs[at : at + 16])
        for at in range(0, len(data), 16)
    )


def _wrapped(text: str, width: int = 76) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def _numbered(text: str, form: str) -> str:
    return "\n".join(form.format(number, line) for number, line in enumerate(text.split("\n"), 1))


PRINTED: dict[str, Callable[[bytes], str]] = {
    "xxd": _dump, "xxd -p": lambda data: _wrapped(data.hex(), 60), "xxd -u": lambda data: _dump(data, columns=False).upper(), "hexdump -C": _canonical,
    "od -c": _characters, "od -tx1": lambda data: "\n".join(f"{at:07o} {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16)),
    "od -x": lambda data: "\n".join(
        f"{at:07o} " + " ".join(data[place : place + 2][::-1].hex() for place in range(at, min(at + 16, len(data)), 2)) for at in range(0, len(data), 16)),
    "od -b": lambda data: "\n".join(f"{at:07o} " + " ".join(f"{code:03o}" for code in data[at : at + 16]) for at in range(0, len(data), 16)),
    "base64": lambda data: _wrapped(base64.b64encode(data).decode()), "base64 -w 20": lambda data: _wrapped(base64.b64encode(data).decode(), 20),
    "base64 | cat -n": lambda data: _numbered(_wrapped(base64.b64encode(data).decode(), 20), "{:6}\t{}"),
    "base64 | grep -n": lambda data: _numbered(_wrapped(base64.b64encode(data).decode(), 20), "{}:{}"),
    "bash %q": lambda data: "".join("\\" + sign if not sign.isalnum() and sign != "\n" else sign for sign in data.decode()),
    "UTF-16": lambda data: data.decode().encode("utf-16-le").decode("latin-1") if data.isascii() else "\0".join(data.decode()),
    "UTF-16 cat -v": lambda data: "^@".join(data.decode()), "UTF-16 escapes": lambda data: "\\u0000".join(data.decode()), "NUL escapes": lambda data: "\\x00".join(data.decode()),
    "UTF-16 base64": lambda data: base64.b64encode(data.decode().encode("utf-16-le")).decode(), "UTF-16 xxd": lambda data: _dump(data.decode().encode("utf-16-le")),
    "spaced": lambda data: " ".join(data.decode()), "fold": lambda data: _wrapped(data.decode(), 9), "dotted": lambda data: ".".join(data.decode()),
    "hex colons": lambda data: data.hex(":"), "C array": lambda data: ", ".join(f"0x{code:02x}" for code in data).replace("0x", ""), "reversed": lambda data: data.decode()[::-1],
}  # fmt: skip


def _rest(secret: str, printed: str) -> list[str]:
    """Pieces of a secret that are still readable: as it is, and as hexadecimal."""
    hexed = secret.encode().hex()
    pieces = {secret[at : at + 9] for at in range(len(secret) - 8)} | {
        hexed[at : at + 20] for at in range(len(hexed) - 19)
    }
    flat = printed.replace(" ", "").replace("\0", "")
    return [piece for piece in pieces if piece in flat]


@for_each("tool", PRINTED)
@for_each("secret", SECRETS)
@for_each("before", ["", "a", "ab", "some words before\n"])
def test_what_tools_print_of_a_secret_is_redacted(tool: str, secret: str, before: str) -> None:
    """A23.1"""
    if not secret.isascii() and tool == "od -c":
        return  # its octal bytes are redacted as `od -b`
    printed = PRINTED[tool]((before + FILLED.format(secret)).encode())
    clean = Redactor([secret])(printed)
    assert MARK in clean
    assert not _rest(secret, clean)
    assert Redactor([secret])(clean) == clean


@pytest.mark.slow
@for_each(
    "tool", [("xxd",), ("od", "-c"), ("od", "-x"), ("hexdump", "-C"), ("base64",), ("cat", "-A"), ("nl",)]
)
def test_the_tools_of_this_machine_print_no_secret(tool: tuple[str, ...]) -> None:
    if shutil.which(tool[0]) is None:
        return
    out = subprocess.run(
        tool, input=FILLED.format(SECRETS[1]).encode(), capture_output=True, check=True
    ).stdout.decode()
    clean = Redactor([SECRETS[1]])(out)
    assert MARK in clean
    assert not _rest(SECRETS[1], clean)


@given(st.text(max_size=300))
@settings(max_examples=examples(200))
def test_text_without_the_secret_stays(text: str) -> None:
    assert KnownValues(SECRETS).redact(text) == text


@for_each("secret", ["correct-horse", "hunter2", "my secret"])
def test_a_value_of_plain_words_is_not_looked_for_between_separators(secret: str) -> None:
    text = "the correct horse, hunter 2 and my_secret"
    assert Redactor([secret])(text) == text
    assert Redactor([secret])(f"<{secret}>") == f"<{MARK}>"


@for_each("unit", ["00000000: 7a71 3831  zq", "zq81 ", "z\0", "1\t", "7a ", "\n", "  ", "ab  "])
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    values = KnownValues(SECRETS)
    text = unit * (100_000 // len(unit))
    assert cpu_seconds(lambda: values.redact(text)) < 0.6
