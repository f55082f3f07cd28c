"""Redaction of secrets, known by value or by shape, in texts and in every string of a JSON value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import cast

from daiku.guard.rules.known_values import (
    MARK,
    KnownValues,
    find_all,
    has_long_run,
    is_service,
    redact_tokens,
    rules_for,
    substitute_at,
)
from daiku.texts.rules.patterns import WordSearch, lazy

MOST_LEARNT = 64
"""Number of secrets learned at run time that are kept; older ones are no longer valid."""

_SHORTEST = 14
"""Characters of the shortest text with a secret that no sign of assignment announces."""
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
_LOUD_NAMES = ("KEY", "SECRET", "TOKEN", "PASSW", "CREDENTIAL", "PAT", "PWD")
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
    for kind in (
        "api", "access", "account", "private", "priv", "secret", "shared", "auth", "signing", "encryption", "master", "storage", "license",
    )
    for sign in ("", "_", "-")
)  # fmt: skip
"""Beginnings of names that end with `key` and whose value is secret."""
_PATH = lazy(
    r"(?:~|\.{0,2})/|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://|[$<{%*]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$"
)
"""Values that are the place of a secret, or a template."""
_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_WIDTHS = lazy(r"8|16|32|64|128|256|512")
"""Numbers that names of types and algorithms have."""
_HEADERS = (
    "authorization", "api-key", "private-token", "x-subscription-token", "x-vault-token", "x-auth-token", "cookie",
)  # fmt: skip
_QUERY = ("token=", "api_key=", "apikey=", "client_secret=", "sig=", "signature=")
_ANNOUNCED = WordSearch(
    b"auth token key secret passw passp pwd credential cookie sig= signature= pat= private-lines curl wget bearer".split()
)
"""Words one of which is in every secret's pattern that has no long run of characters."""
_ESCAPES = (("\\n", "\n"), ('\\"', '"'), ("\\t", "\t"), ("\\r", "\r"))
"""The most frequent one first: a text has often no other."""
_SEQUENCE = lazy(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,4}[@-~]|\x1b[()*+#%][0-9A-Za-z]"
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control sequences and characters. They divide secrets, and sequences end with letters."""
_GAP = "\n" * 12
"""Separator between joined strings: more white space than any secret's pattern matches."""
_LONGEST_NAMED = 400
"""Characters of a value that is judged by its key, at most: a longer one is a text, not a password."""
_KEY_NAMES = ("pass", "pwd", "secret", "token", "auth", "credential", "key", "cookie")
_ENDS = "-----END "
_BEGINS = lazy(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY = lazy(r"(?<=Private-Lines: )\d{1,3}\r?\n(?:[A-Za-z0-9+/=]{1,100}\r?\n?)*")


Redact = Callable[[str], str]


class Redactor:
    """Function that replaces known secrets, in any encoding, and everything that is shaped like a secret by a mark.

    It can learn more secrets while it is in use. Linear in the text; applying it again changes nothing.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._values = KnownValues(secrets)
        self._learnt: dict[str, KnownValues] = {}

    def __call__(self, text: str) -> str:
        return self.redact_controlled(text) if _has_controls(text) else self._redact(text)

    def redact_controlled(self, text: str) -> str:
        """Return `text` redacted, without controls if it has a secret: they may divide it or stand before it."""
        plain, spaced = _SEQUENCE.sub("", text), _SEQUENCE.sub(_GAP, text)
        clean = self._redact(plain)
        if self._redact(spaced) != spaced:
            for part in _SEQUENCE.split(text):
                if (redacted := self._redact(part)) != part:
                    clean = clean.replace(part, redacted)
        return text if clean == plain else clean

    def _redact(self, text: str) -> str:
        text = self._redact_known(text)
        if len(text) < _SHORTEST and "=" not in text and ":" not in text:
            return text
        if _is_announced(text):
            return _redact_announced(text)
        return redact_tokens(text, announced=False) if has_long_run(text) else text

    def learn(self, secret: str) -> None:
        """Redact `secret` too from now on."""
        values = KnownValues((secret,))
        if values:
            others = [(each, known) for each, known in self._learnt.items() if each != secret]
            self._learnt = dict([*others[1 - MOST_LEARNT :], (secret, values)])

    def is_clean(self, text: str) -> bool:
        """Check cheaply whether neither `text` nor any part of it has a secret; True only if so."""
        return not (_has_controls(text) or may_contain_secret(text) or self._redact_known(text) != text)

    def _redact_known(self, text: str) -> str:
        for known in self._learnt.values():
            text = known.redact(text)
        return self._values.redact(text)


def _has_controls(text: str) -> bool:
    return "\x1b" in text or "\x9b" in text


def _redact_announced(text: str) -> str:
    if "PRIVATE KEY" in text:
        text = _without_key_blocks(text)
    if "Private-Lines: " in text:
        text = _PUTTY.sub(MARK + "\n", text)
    text = redact_tokens(text)
    if _has_shape(text):
        text = _SHAPES.sub(_mask, text)
    if "=" in text and any(map(text.__contains__, _LOUD_NAMES)):
        text = _ASSIGNED.sub(_mask_assigned, text)
    return _redact_named(text) if "=" in text or ":" in text else text


def may_contain_secret(text: str) -> bool:
    """Check cheaply whether a secret's shape may be in `text`; False only if none certainly is."""
    if _is_announced(text):
        return True
    if not has_long_run(text):
        return False
    rules = rules_for(text, announced=False)
    return any(rule.in_context or rule.pattern.search(text) for rule in rules)


def _is_announced(text: str) -> bool:
    """Return True if a word or a sign in `text` may say that a secret follows. Cheap, and it misses none."""
    if "=" in text or ":" in text:
        data = text.encode("utf-8", "surrogatepass")
        return bool(_ANNOUNCED.find(data)) or ("://" in text and "@" in text)
    lower = text.lower()
    return "passw" in lower or "bearer" in lower or "PRIVATE KEY" in text


def _has_shape(text: str) -> bool:
    """Check cheaply whether `text` may have a header, a query, or an address with a secret."""
    if "://" in text and "@" in text:
        return True
    lower = text.lower()
    if ("?" in text or "&" in text) and "=" in text and any(map(lower.__contains__, _QUERY)):
        return True
    return "earer " in lower or ((":" in text or "=" in text) and any(map(lower.__contains__, _HEADERS)))


def _redact_named(text: str) -> str:
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_SMALL)
    places = [place for name in _NAMES for place in find_all(lower, name)]
    places += (place for place in find_all(lower, "key") if lower.endswith(_KEYS, 0, place))
    return substitute_at(places, _NAMED, _mask_named, text) if places else text


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


def redact_json(value: object, redact: Redact) -> object:
    """Return the decoded JSON `value` with every string and key redacted; `value` itself if nothing changed."""
    joined = _GAP.join(_collect(value))
    return value if redact(joined) == joined else _walk(value, redact)


def redact_encoded(data: str, redact: Redact) -> str:
    """Return the JSON text `data` with every string in it redacted as decoded text; `data` if nothing changed."""
    plain = data
    for escape, sign in _ESCAPES:
        if "\\" in plain:
            plain = plain.replace(escape, sign)
    # Without escapes every string is a part of the text, which may be judged as a whole if it is clean.
    if "\\" not in plain and isinstance(redact, Redactor) and redact.is_clean(plain):
        return data
    value: object = json.loads(data)
    clean = redact_json(value, redact)
    return data if clean is value else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))


def _collect(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, item in cast("Mapping[str, object]", value).items():
                if isinstance(item, str) and len(item) <= _LONGEST_NAMED and _may_name_secret(key):
                    yield _write_pair(key, item)
                yield key
                yield from _collect(item)
        case list():
            for item in cast("Sequence[object]", value):
                yield from _collect(item)
        case _:
            pass


def _walk(value: object, redact: Redact) -> object:
    match value:
        case str():
            return redact(value)
        case dict():
            items = cast("Mapping[str, object]", value).items()
            return {redact(key): _redact_item(key, item, redact) for key, item in items}
        case list():
            return [_walk(item, redact) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _redact_item(key: str, item: object, redact: Redact) -> object:
    clean = _walk(item, redact)
    if not isinstance(item, str) or clean != item or len(item) > _LONGEST_NAMED or not _may_name_secret(key):
        return clean
    pair = _write_pair(key, item)
    return MARK if redact(key) == key and redact(pair) != pair else item


@lru_cache(maxsize=1024)
def _may_name_secret(key: str) -> bool:
    lower = key.lower()
    return any(word in lower for word in _KEY_NAMES) or is_service(lower)


def _write_pair(key: str, value: str) -> str:
    """Return a key and its value as one text, as a file of settings has them."""
    return f'"{key}": {json.dumps(value, ensure_ascii=False)}'
