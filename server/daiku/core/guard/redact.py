"""Secrets taken out of text: those known by value in every usual encoding, and those known by shape."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

from daiku.core.text.patterns import lazy

MARK = "[redacted]"
MIN_SECRET = 6
"""Shorter values are words that text has anyway."""
MOST_LEARNT = 64
"""So many of the secrets that were made while the program runs are known by value: older ones are not good any more."""

_ESCAPED = (
    r"(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[0-7]{3})|(?<=%[0-9A-Fa-f]{2})"
)
_COLORED = r"(?<=\[[0-9]m)|(?<=\[[0-9]{2}m)|(?<=;[0-9]m)|(?<=;[0-9]{2}m)|(?<=;[0-9]{3}m)|(?<=\[m)"
_START = rf"(?:(?<![A-Za-z0-9_])|{_ESCAPED}|{_COLORED})"
"""Where a token may begin: not within a word, unless the word's letter ends an escape sequence or a color code."""
_SHAPES = lazy(
    r"""
    (?P<key>START(?:
        sk-(?:ant|proj|svcacct|admin|or|lf)-[A-Za-z0-9_-]{16,}
      | (?:sk|gsk|xai|pplx|tvly|rk|lsv2|nvapi|csk|fw|r8|tgp)[-_][A-Za-z0-9_-]{24,}
      | (?:sk|rk|pk|whsec)_(?:live|test)?_?[A-Za-z0-9]{20,}
      | (?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Z])
      | AIza[A-Za-z0-9_-]{30,}
      | ya29\.[A-Za-z0-9_-]{20,}
      | xox[abeoprs]-[A-Za-z0-9-]{10,}
      | xapp-[A-Za-z0-9-]{20,}
      | hf_[A-Za-z0-9]{30,}
      | npm_[A-Za-z0-9]{30,}
      | pypi-[A-Za-z0-9_-]{40,}
      | dop_v1_[a-f0-9]{40,}
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
      | AGE-SECRET-KEY-1[A-Z0-9]{40,}
      | BSA[A-Za-z0-9_-]{24,}(?![A-Za-z0-9_-])
    ))
  | (?P<within>(?:(?<![A-Za-z0-9])|START)(?:
        gh[oprsu]_(?=[A-Za-z0-9_.-]{30})[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*
      | github_pat_[A-Za-z0-9_]{22,}
      | gl(?:pat|dt|ft|rt|rtr|soat|oas|cbt|ptt|agent|imt|ffct|wt)-[A-Za-z0-9_.-]{18,}
      | eyJ[A-Za-z0-9_-]{8,600}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
    ))
  | (?P<header>(?i:(?:proxy-)?authorization|x-api-key|api-key|x-goog-api-key|private-token|x-subscription-token)
        (?:\\?["'])?[ ]?[:=][ ]?(?:\\?["'])?(?i:(?:bearer|basic|token)[ ]+)?)(?P<credential>[A-Za-z0-9._~+/=-]{8,})
  | (?P<query>[?&](?i:private_token|access_token|refresh_token|job_token|auth_token|token|api_key|apikey|client_secret|sig|signature)=)
        (?P<given>(?![$\{<\[])[^\s&\#"'<>`|\\]{8,})
  | (?P<bearer>(?<![A-Za-z])(?i:bearer)[ ]+)(?P<token>(?=[A-Za-z._~+/-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{16,})
  | (?P<url>(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>]{0,400}:)(?P<password>(?![$\{])[^\s/@"'<>]{3,})(?=@)
    """.replace("START", _START),
    re.VERBOSE,
)
_ASSIGNED = lazy(
    r"(?P<name>(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{0,60}=[\"']?)(?P<value>[^\s\"'`$<>(){}\[\],;|&]{8,})(?![(\[{])"
)
_SECRET_NAME = lazy(r"(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|PAT|PWD)=[\"']?$")
# Looking closely costs a thousand times what `in` costs, and nearly no text has anything to find: what
# each kind of shape cannot be without. A property test holds them to the shapes above.
_KEY_MARKS = (
    "sk- sk_ xai- xai_ pplx- pplx_ tvly- tvly_ rk- rk_ pk_ whsec_ lsv2- lsv2_ nvapi- nvapi_ fw- fw_ r8- r8_"
    " tgp- tgp_ gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- gldt- glft- glrt- glsoat- glcbt- glptt- glagent-"
    " glimt- glrtr- gloas- glffct- glwt- AKIA ASIA ABIA ACCA AIza ya29. xox xapp- hf_ npm_ pypi- dop_v1_ SG. AGE-SECRET-KEY-1 eyJ BSA"
)
_KEYS = tuple(_KEY_MARKS.split())
_HEADERS = ("authorization", "api-key", "private-token", "x-subscription-token")
_QUERY = ("token=", "api_key=", "apikey=", "client_secret=", "sig=", "signature=")
_OF_KEYS = (string.ascii_letters + string.digits + "._~+/=-").encode()
_LONG = b"x" * 15
_BY_KIND = bytes(_LONG[0] if byte in _OF_KEYS else 0 for byte in range(256))
_ENDS = "-----END "
_BEGINS = lazy(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that replaces `secrets` (raw, base64, hex, URL-encoded, reversed, JSON-escaped) and
    whatever is shaped like a key by a mark. Linear in the text; applying it again changes nothing."""
    known = _pattern_of(secrets)

    def redact(text: str) -> str:
        if known is not None:
            text = known.sub(MARK, text)
        if "PRIVATE KEY" in text:
            text = _without_key_blocks(text)
        if may_contain_secret(text):
            text = _SHAPES.sub(_mask, text)
        return _ASSIGNED.sub(_mask_assigned, text) if "=" in text else text

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
    if len(text) < len(_LONG) or _LONG not in text.encode("utf-8", "surrogatepass").translate(_BY_KIND):
        return False  # no fifteen characters in a row that keys are made of
    return any(map(text.__contains__, _KEYS)) or "bearer" in text.lower()


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
        case "key" | "within":
            return MARK
        case _:
            return found[0]


def _mask_assigned(found: re.Match[str]) -> str:
    return found["name"] + MARK if _looks_secret(found["name"], found["value"]) else found[0]


def _looks_secret(name: str, value: str) -> bool:
    if not _SECRET_NAME.search(name) or MARK in value:
        return False
    varied = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return varied or len(value) >= 20  # long enough to be no word


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
