"""Tokens that are recognized by their shape: rules of gitleaks, and our own where it has none or a narrower one."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from math import log2
from typing import NamedTuple, TypeAlias

from daiku.core.text.patterns import WordSearch, lazy

MARK = "[redacted]"
Mask: TypeAlias = Callable[[re.Match[str]], str]
_ESCAPED = (
    r"(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[0-7]{3})|(?<=%[0-9A-Fa-f]{2})"
    r"|(?<=\\U[0-9A-Fa-f]{8})|(?<=\^[@-_])|(?<==[0-9A-F]{2})"
)
_COLORED = r"(?<=\[[0-9]m)|(?<=\[[0-9]{2}m)|(?<=;[0-9]m)|(?<=;[0-9]{2}m)|(?<=;[0-9]{3}m)|(?<=\[m)|(?<=\[K)|(?<=\[[0-2][KJ])|(?<=\x1b[0-9A-Za-z])"
START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED}|{_COLORED})"
"""Where a token may begin: not after a letter or digit, unless it ends an escape sequence or a color code."""
_RANDOM = r"(?=[A-Za-z0-9]{12})(?=[A-Z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}[A-Z])(?=[A-Za-z]{0,40}[0-9])"
_INSIDE = rf"(?:{START}|(?=(?:[A-Za-z0-9]{{0,24}}[_.-]){{0,8}}?{_RANDOM}))"
"""Where a token with an unusual prefix may begin: behind a letter too if digits and letters of both cases follow."""
_END = r"(?![A-Za-z0-9])"
"""Where a token of a fixed length may end: not before a letter or digit. An underscore belongs to what follows."""
_NEAR = r"""[ \t\w.-]{0,20}[\s'"\\]{0,4}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=\\]{0,6}"""
"""Characters between the name of a service and its token."""

OWN = r"""
anthropic-openai	^< sk-	INSIDEsk-(?:ant|proj|svcacct|admin|or|lf)-[A-Za-z0-9_-]{16,}
model-provider	^< sk- sk_ gsk- gsk_ xai- xai_ pplx- pplx_ tvly- tvly_ rk- rk_ lsv2- lsv2_ nvapi- nvapi_ csk- csk_ fw- fw_ r8- r8_ tgp- tgp_	(?:START(?:sk|rk|fw|r8)|INSIDE(?:gsk|xai|pplx|tvly|lsv2|nvapi|csk|tgp))[-_](?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{24,}
stripe	^< sk_ rk_ pk_ whsec_	(?:START(?:sk|rk|pk|whsec)_(?:live|test)?_?|INSIDE(?:[srp]k_(?:live|test)|whsec)_)[A-Za-z0-9]{20,}
aws-access-key	^< akia asia abia acca	(?:START|(?<=[a-z]))(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Z])
aws-session-token	^ iqojb3jpz2lu fwogzxivyxdz	(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9/+=]{60,}
google-api-key	^ aiza	INSIDEAIza[A-Za-z0-9_-]{30,}
google-access-token	^< ya29.	INSIDEya29\.[A-Za-z0-9_-]{20,}
google-refresh-token	^ 1//0	INSIDE1//0[A-Za-z0-9_-]{30,}
google-client-secret	^< gocspx-	GOCSPX-[A-Za-z0-9_-]{20,}
slack	^< xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-	INSIDE(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,})
slack-hook	^ hooks.slack.com	hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})
hugging-face	^ hf_	INSIDEhf_[A-Za-z0-9]{30,}
npm	^ npm_	INSIDEnpm_[A-Za-z0-9]{30,}
pypi	^ pypi-	INSIDEpypi-[A-Za-z0-9_-]{40,}
digital-ocean	^ dop_v1_ doo_v1_ dor_v1_	STARTdo[opr]_v1_[a-f0-9]{40,}
sendgrid	^ sg.	INSIDESG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
age	^ age-secret-key-1	STARTAGE-SECRET-KEY-1[A-Z0-9]{40,}
brave	^< bsa	STARTBSA[A-Za-z0-9_-]{24,}
github	^< gho_ ghp_ ghr_ ghs_ ghu_	INSIDEgh[oprsu]_(?=[A-Za-z0-9_.-]{30})[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*
github-fine-grained	^ github_pat_	INSIDEgithub_pat_[A-Za-z0-9_]{22,}
gitlab	^< glpat- gldt- glft- glrt- glrtr- glsoat- gloas- glcbt- glptt- glagent- glimt- glffct- glwt-	INSIDEgl(?:pat|dt|ft|rt|rtr|soat|oas|cbt|ptt|agent|imt|ffct|wt)-[A-Za-z0-9_.-]{18,}
jwt	^ eyj	INSIDEeyJ[A-Za-z0-9_-]{8,600}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
azure-storage	~ accountkey sharedaccesskey	(?i:(?:AccountKey|SharedAccessKey)["']?\s{0,3}[:=]\s{0,3}["']?)([A-Za-z0-9+/]{40,}={0,2})
crates	^ cio	cio[A-Za-z0-9]{32}(?![A-Za-z0-9])
discord-bot	.	[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}
discord-hook	^ discord.com/api discordapp.com/api	discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,22}/([A-Za-z0-9_-]{40,})
docker	^< dckr_	INSIDEdckr_[a-z]{2,5}_[A-Za-z0-9_-]{20,}
docker-config	~ "auth"	"auth"\s{0,4}:\s{0,4}"([A-Za-z0-9+/]{12,}={0,2})"
ethereum	0x	(?i:(?:eth|ethereum|ether|wallet|priv|private|signer|deployer|secret)[\w .:"'=\\-]{0,30})((?:0x)[0-9a-fA-F]{64})(?![0-9a-fA-F])
linear	^ lin_api_ lin_oauth_	STARTlin_(?:api|oauth)_[A-Za-z0-9]{30,}
netlify	^ nfpp_ nfp_ nfc_ nfo_ nfu_ nfb_	INSIDEnf[pcoub]_[A-Za-z0-9]{30,}
netrc	~ password	(?i:\b(?:machine\s+\S{1,200}|default|login\s+\S{1,200})\s+password\s+)(\S{3,})
new-relic	^< nr	NR[A-Z]{2}-[A-Za-z0-9-]{19,}
new-relic-license	nral	[A-Za-z0-9]{36}NRAL(?![A-Za-z0-9])
nuget	^ oy2	STARToy2[a-z0-9]{43}(?![A-Za-z0-9])
rubygems	^ rubygems_	STARTrubygems_[a-f0-9]{40,}
sentry	^< sntrys_ sntryu_	STARTsntry[su]_[A-Za-z0-9+/=_-]{20,}
sentry-dsn	~ .ingest.	https?://([0-9a-f]{32})(?::[0-9a-f]{32})?@[\w.-]{1,100}\.ingest\.
shopify	^ shpat_ shpca_ shppa_ shpss_	STARTshp(?:at|ca|pa|ss)_[A-Za-z0-9]{32,}
square	^< sq0atp- sq0csp- sq0idp- eaaa	(?:sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|STARTEAAA[A-Za-z0-9_-]{56,})
tailscale	^< tskey-	INSIDEtskey-[A-Za-z0-9-]{16,}
terraform	.atlasv1.	START[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}
telegram	:aa	(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33,}
twilio	^ sk	SK[0-9a-f]{32}(?![0-9A-Za-z])
vault	^< hvs. hvb. hvr.	INSIDEhv[sbr]\.[A-Za-z0-9_-]{24,}
sourcegraph	^ sgp_	sgp_(?:[A-Za-z0-9]{5,16}_)?[a-fA-F0-9]{40}
pulumi	^ pul-	pul-[a-f0-9]{40}
supabase	^ sbp_	sbp_[a-f0-9]{40}
figma	^ figd_	INSIDEfigd_[A-Za-z0-9_-]{30,}
cloudflare	^ cfut_ cfat_	INSIDEcf[ua]t_[A-Za-z0-9_-]{30,}
atlassian	^ atatt3 atctt3 atbb	INSIDE(?:AT[AC]TT3[A-Za-z0-9_=.-]{40,}|ATBB[A-Za-z0-9]{28,})
buildkite	^ bkua_	STARTbkua_[a-f0-9]{40}
circleci	^ ccipat_ cciprj_	STARTCCI(?:PAT|PRJ)_[A-Za-z0-9]{10,30}_[a-f0-9]{40}
hubspot	^ pat-	pat-[a-z]{2}\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}
contentful	^ cfpat-	INSIDECFPAT-[A-Za-z0-9_-]{40,}
airtable	^ pat	pat[A-Za-z0-9]{14}\.[a-f0-9]{64}
databricks	^ dapi	dapi[a-f0-9]{32}
doppler	^ dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.	INSIDEdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}
mapbox	.eyj	INSIDE[ps]k\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}
dropbox	^ sl.	STARTsl\.(?:u\.)?[A-Za-z0-9_-]{100,}
paypal	^ access_token$	access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}
amazon-mws	^ amzn.mws.	amzn\.mws\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}
facebook	^ eaac eaam eaab	STARTEAA(?:C|M|B)[A-Za-z0-9]{60,}
render	^ rnd_	INSIDErnd_[A-Za-z0-9]{28,}
firebase	^ aaaa	STARTAAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{100,}
command-user	~ curl wget	(?:[ \t]-u|--user)[= \t]{1,3}["']?[A-Za-z0-9_.@+-]{1,100}:(?![$\{])([^\s"'$]{3,})
"""
_SURE = 5
"""Characters of the shortest keyword that ends no other word: its token may begin behind letters too."""
_OF_RUNS = (string.ascii_letters + string.digits + "._~+/=$:%-").encode()
_RUN_BYTES = bytes(ord("x") if byte in _OF_RUNS else 0 for byte in range(256))
_LONG_RUN = b"x" * 14
"""Characters of tokens in a row: no token is shorter."""
LONG = 30
"""Characters of most tokens, at least."""
_DIGIT = lazy(r"[0-9]")
_REACH = 80
"""Characters between the beginning of a service's name and that of its token, at most."""


class TokenRule:
    """A shape of tokens. Every token has one of `keywords` in it, in any case; signs before them say more.

    `^`: the token begins with the keyword. `~`: the keyword stands before the token. `<`: the token may have less than
    LONG characters."""

    def __init__(self, keywords: str, entropy: float, pattern: str) -> None:
        signs, *words = keywords.split() if keywords[0] in "^~<" else ("", *keywords.split())
        self.is_anchored = "^" in signs
        self.is_apart = "~" in signs
        self.is_short = "<" in signs
        self.keywords = tuple(words)
        self.entropy = entropy
        self.in_context = "NEAR" in pattern
        start = START if min(map(len, words)) < _SURE else ""
        pattern = pattern.replace("START", start).replace("INSIDE", _INSIDE)
        self._pattern = pattern.replace("NEAR", _NEAR).replace("END", _END)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self._pattern, re.ASCII)

    def redact(self, text: str) -> str:
        """Return `text` with every secret of this shape replaced."""
        lower = text.lower()
        if not self.is_anchored or len(lower) != len(text):
            return self.pattern.sub(self._mask, text)
        places = (place for keyword in self.keywords for place in find_all(lower, keyword))
        return substitute_at(places, self.pattern, self._mask, text)

    def _mask(self, found: re.Match[str]) -> str:
        group = next((each for each in range(1, len(found.groups()) + 1) if found[each]), 0)
        secret = found[group]
        if MARK in secret or (self.in_context and not self._is_random(secret)):
            return found[0]
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return found[0][:start] + MARK + found[0][end:]

    def _is_random(self, secret: str) -> bool:
        return _DIGIT.search(secret) is not None and (not self.entropy or entropy_of(secret) >= self.entropy)


def substitute_at(places: Iterable[int], pattern: re.Pattern[str], mask: Mask, text: str) -> str:
    """Return `text` with the matches of `pattern` that begin at one of `places` replaced."""
    parts: list[str] = []
    at = 0
    for place in sorted(places):
        if place >= at and (found := pattern.match(text, place)):
            parts += (text[at:place], mask(found))
            at = found.end()
    return "".join((*parts, text[at:]))


def find_all(text: str, word: str) -> Iterator[int]:
    """Yield every place of `word` in `text`."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


@cache
def token_rules() -> tuple[TokenRule, ...]:
    """Return all rules: ours first, as they take more of a token where both know it."""
    from daiku.core.guard.token_rules import RULES  # when used

    own = (TokenRule(keywords, 0, pattern) for _, keywords, pattern in read_rows(OWN))
    others = (TokenRule(words, float(entropy), pattern) for _, words, entropy, pattern in read_rows(RULES))
    return (*own, *others)


def read_rows(table: str) -> list[list[str]]:
    """Return the rows of a table whose columns are divided by tabs."""
    return [row.split("\t") for row in table.splitlines() if row]


class _Index(NamedTuple):
    """Rules by keyword: of short and long tokens, services, other words. `search` finds all of them."""

    search: WordSearch
    short: dict[str, list[int]]
    long: dict[str, list[int]]
    services: dict[str, list[int]]
    words: dict[str, list[int]]


@cache
def _index_rules() -> _Index:
    """Build the index of all rules."""
    keywords = sorted({keyword for rule in token_rules() for keyword in rule.keywords})
    index = _Index(WordSearch(map(str.encode, keywords)), {}, {}, {}, {})
    for place, rule in enumerate(token_rules()):
        of_tokens = index.short if rule.is_short else index.long
        part = index.services if rule.in_context else index.words if rule.is_apart else of_tokens
        for keyword in rule.keywords:
            part.setdefault(keyword, []).append(place)
    return index


def _find_keywords(data: bytes) -> list[str]:
    search = _index_rules().search
    return [search.words[place].decode() for place in search.find(data)]


def rules_for(text: str, *, announced: bool = True) -> list[TokenRule]:
    """Return the rules whose tokens may be in `text`; cheap, and it misses none.

    Without `announced`, rules whose keyword stands apart from the token are left out."""
    data = text.encode("utf-8", "surrogatepass")
    keywords = _find_keywords(data)
    if not keywords:
        return []
    index = _index_rules()
    places = {place for keyword in keywords if announced for place in index.words.get(keyword, ())}
    lower = data.lower().decode("latin-1")
    if runs := [(lower[start:end], start) for start, end in _find_long_runs(data)]:
        places |= _look_up(index.short, keywords, " ".join(run for run, _ in runs))
        places |= _look_up(index.long, keywords, " ".join(run for run, _ in runs if len(run) >= LONG))
        # The name of a service stands before its token, which has a digit.
        near = (lower[max(0, start - _REACH) : start] + run for run, start in runs if _DIGIT.search(run))
        places |= _look_up(index.services, keywords, "\n".join(near))
    rules = token_rules()
    return [rules[place] for place in sorted(places)]


def _find_long_runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of every run that is long enough for a token."""
    kinds = data.translate(_RUN_BYTES)
    start = kinds.find(_LONG_RUN)
    while start >= 0:
        end = kinds.find(b"\0", start)
        yield start, end if end >= 0 else len(data)
        start = kinds.find(_LONG_RUN, end) if end >= 0 else -1


def is_service(name: str) -> bool:
    """Return True if `name` names a service whose tokens have no shape of their own."""
    services = _index_rules().services
    return any(keyword in services for keyword in _find_keywords(name.encode("utf-8", "surrogatepass")))


def _look_up(index: dict[str, list[int]], keywords: list[str], text: str) -> set[int]:
    return {place for word in keywords if word in index and word in text for place in index[word]}


def has_long_run(text: str) -> bool:
    """Return True if `text` has as many characters of tokens in a row as the shortest token."""
    return text.encode("utf-8", "surrogatepass").translate(_RUN_BYTES).find(_LONG_RUN) >= 0  # `in` is slower


def redact_tokens(text: str, *, announced: bool = True) -> str:
    """Return `text` with everything that is shaped like a token replaced by a mark. `announced`: as for `rules_for`."""
    for rule in rules_for(text, announced=announced):
        text = rule.redact(text)
    return text


def entropy_of(text: str) -> float:
    """Return the Shannon entropy of `text` in bits per character."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values())
