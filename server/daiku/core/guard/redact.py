"""Secrets taken out of text: those known by value in every usual encoding, and those known by shape."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

from daiku.core.guard.token_shapes import MARK, find_all, redact_tokens, substitute_at
from daiku.core.text.patterns import lazy

MIN_SECRET = 6
"""Shorter values are words that text has anyway."""
MOST_LEARNT = 64
"""So many of the secrets that were made while the program runs are known by value: older ones are not good any more."""

_SHAPES = lazy(
    r"""
    (?P<header>(?i:(?:proxy-)?authorization|x-api-key|api-key|x-goog-api-key|private-token|x-subscription-token|x-vault-token|x-auth-token)
        (?:\\?["'])?[ ]?[:=][ ]?(?:\\?["'])?(?i:(?:bearer|basic|token)[ ]+)?)(?P<credential>[A-Za-z0-9._~+/=-]{8,})
  | (?P<query>[?&](?i:private_token|access_token|refresh_token|job_token|auth_token|token|api_key|apikey|client_secret|sig|signature)=)
        (?P<given>(?![$\{<\[])[^\s&\#"'<>`|\\]{8,})
  | (?P<bearer>(?<![A-Za-z])(?i:bearer)[ ]+)(?P<token>(?=[A-Za-z._~+/-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{16,})
  | (?P<url>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>]{0,400}:)(?P<password>(?![$\{]|(?:PASSWORD|password)@)[^\s/@"'<>]{3,})(?=@)
  | (?P<cookie>(?i:(?:set-)?cookie)(?:\\?["'])?[ ]?:[ ]?(?:\\?["'])?)(?P<cookies>(?=[\w.=; -]{1,300}=[^\s;"'\\]{8,})[^\r\n"'\\]+)
    """,
    re.VERBOSE,
)
_ASSIGNED = lazy(
    r"(?P<name>(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{0,60}=[\"']?)(?P<value>[^\s\"'`$<>(){}\[\],;|&]{8,})(?![(\[{])"
)
_SECRET_NAME = lazy(r"(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|PAT|PWD)=[\"']?$")
_NAMED = lazy(
    r"""
    (?:(?i:passw(?:or)?d|passphrase|pwd|secret|token|_auth|credential|key(?:[_-]?base)?)\d{0,2}(?:\\?["'])?
        [ \t]{0,4}(?::=|=>|=|:)[ \t]{0,4})
    (?: (?P<quote>\\?["'])(?P<quoted>[^\s"'\\]{6,400}+)(?P=quote)
      | (?P<plain>[^\s"'`$<>(){}\[\],;|&\\]{8,400}+)(?![(\[{.$"'`]) )
    """,
    re.VERBOSE,
)
"""Values assigned to a name that says that they are secret, as code and files of settings write them."""
_NAMES = ("passw", "passphrase", "pwd", "secret", "token", "_auth", "credential")
_KEYS = tuple(
    kind + sign
    for kind in [
        "api",
        "access",
        "account",
        "private",
        "priv",
        "secret",
        "shared",
        "auth",
        "signing",
        "encryption",
        "master",
        "storage",
        "license",
    ]
    for sign in ("", "_", "-")
)
"""What makes a key a secret one: a word before it."""
_PATH = lazy(
    r"(?:~|\.{0,2})/|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://|[$<{%*]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$"
)
"""Values that say where a secret is, or that something else fills them in."""
_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_WIDTHS = lazy(r"8|16|32|64|128|256|512")
"""Numbers that names of types and algorithms have."""
_HEADERS = (
    "authorization",
    "api-key",
    "private-token",
    "x-subscription-token",
    "x-vault-token",
    "x-auth-token",
    "cookie",
)
_QUERY = ("token=", "api_key=", "apikey=", "client_secret=", "sig=", "signature=")
_ENDS = "-----END "
_BEGINS = lazy(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY = lazy(r"(?<=Private-Lines: )\d{1,3}\r?\n(?:[A-Za-z0-9+/=]{1,100}\r?\n?)*")


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that replaces `secrets` (raw, base64, hex, URL-encoded, reversed, JSON-escaped) and
    whatever is shaped like a key by a mark. Linear in the text; applying it again changes nothing."""
    known = _pattern_of(secrets)

    def redact(text: str) -> str:
        if known is not None:
            text = known.sub(MARK, text)
        if "PRIVATE KEY" in text:
            text = _without_key_blocks(text)
        if "Private-Lines: " in text:
            text = _PUTTY.sub(MARK + "\n", text)
        text = redact_tokens(text)
        if may_contain_secret(text):
            text = _SHAPES.sub(_mask, text)
        if "=" in text:
            text = _ASSIGNED.sub(_mask_assigned, text)
        return _redact_named(text) if "=" in text or ":" in text else text

    return redact


class Redactor:
    """A redactor that is told of more secrets while it is in use."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._redact = redactor(secrets)
        self._learnt: dict[str, re.Pattern[str]] = {}

    def __call__(self, text: str) -> str:
        for known in self._learnt.values():
            text = known.sub(MARK, text)
        return self._redact(text)

    def learn(self, secret: str) -> None:
        """From now on `secret` is taken out too."""
        pattern = _pattern_of((secret,))
        if pattern is not None:
            others = [(each, known) for each, known in self._learnt.items() if each != secret]
            self._learnt = dict([*others[1 - MOST_LEARNT :], (secret, pattern)])


def may_contain_secret(text: str) -> bool:
    """Check cheaply whether `text` may contain a secret's pattern; False only if it certainly does not."""
    if "://" in text and "@" in text:
        return True
    if ("?" in text or "&" in text) and "=" in text and any(map(text.lower().__contains__, _QUERY)):
        return True
    if (":" in text or "=" in text) and any(map(text.lower().__contains__, _HEADERS)):
        return True
    return "earer " in text.lower()


def _redact_named(text: str) -> str:
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_SMALL)
    places = [place for name in _NAMES for place in find_all(lower, name)]
    places += (place for place in find_all(lower, "key") if lower.endswith(_KEYS, 0, place))
    return substitute_at(places, _NAMED, _mask_named, text) if places else text


def _pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """What finds `secrets` in each of their encodings; None where there is nothing to be found."""
    forms: set[str] = set()
    for secret in secrets:
        value = secret.strip()
        if len(value) >= MIN_SECRET:
            forms.update(f for f in _forms(value) if len(f) >= MIN_SECRET)
    forms = {f for f in forms if f not in MARK}
    return re.compile(_alternatives(sorted(forms))) if forms else None


def _mask(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "credential" if MARK not in found["credential"]:
            return found["header"] + MARK
        case "given" if MARK not in found["given"]:
            return found["query"] + MARK
        case "token":
            return found["bearer"] + MARK
        case "password":
            return found["url"] + MARK
        case "cookies" if MARK not in found["cookies"]:
            return found["cookie"] + MARK
        case _:
            return found[0]


def _mask_assigned(found: re.Match[str]) -> str:
    return found["name"] + MARK if _looks_secret(found["name"], found["value"]) else found[0]


def _mask_named(found: re.Match[str]) -> str:
    kind = "quoted" if found["quoted"] else "plain"
    value = found[kind]
    if MARK in value or _PATH.match(value) or not _is_varied(_WIDTHS.sub("", value)):
        return found[0]
    start, end = found.start(kind) - found.start(), found.end(kind) - found.start()
    return found[0][:start] + MARK + found[0][end:]


def _is_varied(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _looks_secret(name: str, value: str) -> bool:
    if not _SECRET_NAME.search(name) or MARK in value:
        return False
    return _is_varied(value) or len(value) >= 20  # long enough to be no word


def _without_key_blocks(text: str) -> str:
    kept: list[str] = []
    at = 0
    while found := _BEGINS.search(text, at):
        kept += [text[at : found.start()], MARK]
        end = text.find(_ENDS, found.end())
        if end < 0:
            return "".join(kept)
        close = text.find("-----", end + len(_ENDS))
        at = close + 5 if close >= 0 else len(text)
    return "".join([*kept, text[at:]])


def _forms(secret: str) -> Iterator[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield secret[::-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    hexed = raw.hex()
    yield hexed
    yield hexed.upper()
    for encoded in (_quoted(secret, quote), _quoted(secret, quote_plus)):
        yield encoded
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), encoded)
    yield "".join(f"%{byte:02X}" for byte in raw)
    yield "".join(f"%{byte:02x}" for byte in raw)
    for text in (raw, raw[::-1]):
        for offset in range(3):
            plain = _inner_base64(text, offset)
            yield plain
            yield plain.replace("+", "-").replace("/", "_")


def _quoted(secret: str, how: Callable[..., str]) -> str:
    return how(secret, safe="", errors="surrogatepass")


def _inner_base64(raw: bytes, offset: int) -> str:
    """The characters of base64 that depend on `raw` alone, when `offset` bytes (mod 3) stand before it."""
    encoded = base64.b64encode(b"\0" * offset + raw).decode()
    return encoded[(0, 2, 3)[offset] : (offset + len(raw)) * 8 // 6]


def _alternatives(words: list[str]) -> str:
    """A regular expression of sorted `words` that shares their beginnings; the longest match first."""
    if len(words) == 1:
        return re.escape(words[0])
    prefix = _common(words[0], words[-1])
    rest = [w[len(prefix) :] for w in words]
    groups: dict[str, list[str]] = {}
    for word in rest:
        if word:
            groups.setdefault(word[0], []).append(word)
    body = "|".join(_alternatives(group) for group in groups.values())
    return re.escape(prefix) + f"(?:{body})" + ("?" if "" in rest else "")


def _common(first: str, last: str) -> str:
    length = 0
    for a, b in zip(first, last, strict=False):
        if a != b:
            break
        length += 1
    return first[:length]
