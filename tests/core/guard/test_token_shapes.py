"""Tokens by their shape: every service that people use, whatever stands next to the token; code and prose stay readable."""

from __future__ import annotations

import random
import re
import string
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from daiku.guard.rules import known_values
from daiku.guard.rules.known_values import LONG, TokenRule, entropy_of, read_rows, rules_for, token_rules
from daiku.guard.rules.redact import MARK, Redactor
from tests.cases import examples, for_each
from tests.timing import cpu_seconds

HEX, ALNUM = "0123456789abcdef", string.ascii_letters + string.digits
URL = ALNUM + "-_"
NEIGHBORS = ["", "\n", "\t", "\r\n", " ", "(", ")", '"', "'", "`", "=", ":", ",", ";", "日本語", "、", "<", ">", "[", "]", "{", "}", "|", "\\n", "\\t",
             "\x1b[0m", "\0"]  # fmt: skip


def _of(alphabet: str, count: int, seed: str = "") -> str:
    return "".join(random.Random(f"{alphabet}{count}{seed}").choices(alphabet, k=count))


def _uuid() -> str:
    return "-".join(_of(HEX, count) for count in (8, 4, 4, 4, 12))


TOKENS = {
    "artifactory": "AKCp" + _of(ALNUM, 69), "artifactory reference": "cmVmd" + _of(ALNUM, 59), "crates": "cio" + _of(ALNUM, 32),
    "AWS session": "IQoJb3JpZ2luX2Vj" + _of(ALNUM, 300), "discord bot": "MTA" + _of(ALNUM, 21) + "." + _of(URL, 6) + "." + _of(URL, 38),
    "discord hook": "https://discord.com/api/webhooks/123456789012345678/" + _of(URL, 68), "docker": "dckr_pat_" + _of(URL, 27),
    "google secret": "GOCSPX-" + _of(URL, 28), "google refresh": "1//0" + _of(URL, 60), "linear": "lin_api_" + _of(ALNUM, 40),
    "mailgun": "key-" + _of(HEX, 32), "netlify": "nfp_" + _of(ALNUM, 36), "new relic": "NRAK-" + _of(string.ascii_uppercase + string.digits, 27),
    "new relic license": _of(HEX, 36) + "NRAL", "nuget": "oy2" + _of(string.ascii_lowercase + string.digits, 43), "pulumi": "pul-" + _of(HEX, 40),
    "rubygems": "rubygems_" + _of(HEX, 48), "sentry": "sntryu_" + _of(HEX, 64), "sentry org": "sntrys_" + _of(ALNUM, 80), "shopify": "shpat_" + _of(HEX, 32),
    "square": "sq0atp-" + _of(URL, 22), "square secret": "sq0csp-" + _of(URL, 43), "tailscale": "tskey-auth-" + _of(ALNUM, 12) + "-" + _of(ALNUM, 32),
    "terraform": _of(ALNUM, 14) + ".atlasv1." + _of(URL, 67), "github": "ghp_" + _of(ALNUM, 36), "github app": "ghs_" + _of(ALNUM, 36), "npm": "npm_" + _of(ALNUM, 36),
    "gitlab": "glpat-" + _of(URL, 20), "slack": "xoxb-123456789012-1234567890123-" + _of(ALNUM, 24), "slack hook": "https://hooks.slack.com/services/T00000000/B00000000/" + _of(ALNUM, 24),
    "stripe": "sk_live_" + _of(ALNUM, 24), "openai": "sk-proj-" + _of(URL, 120), "anthropic": "sk-ant-api03-" + _of(URL, 95), "hugging face": "hf_" + _of(ALNUM, 34),
    "aws": "AKIA" + _of(string.ascii_uppercase + "234567", 16), "google": "AIza" + _of(URL, 35), "digital ocean": "dop_v1_" + _of(HEX, 64),
    "sendgrid": "SG." + _of(URL, 22) + "." + _of(URL, 43), "pypi": "pypi-AgEIcHlwaS5vcmc" + _of(URL, 80), "telegram": "123456789:AA" + _of(URL, 33),
    "twilio": "SK" + _of(HEX, 32), "vault": "hvs." + _of(URL, 95), "databricks": "dapi" + _of(HEX, 32), "planetscale": "pscale_tkn_" + _of(ALNUM, 43),
    "postman": "PMAK-" + _of(HEX, 24) + "-" + _of(HEX, 34), "grafana": "glsa_" + _of(ALNUM, 32) + "_" + _of(HEX, 8), "doppler": "dp.pt." + _of(ALNUM, 43),
    "dynatrace": "dt0c01." + _of(string.ascii_uppercase, 24) + "." + _of(ALNUM, 64), "1password": "ops_eyJ" + _of(ALNUM, 260), "clojars": "CLOJARS_" + _of(HEX, 60),
    "fly": "fo1_" + _of(URL, 43), "heroku": "HRKU-AA" + _of(ALNUM, 58), "hubspot": "pat-na1-" + _uuid(), "airtable": "pat" + _of(ALNUM, 14) + "." + _of(HEX, 64),
    "atlassian": "ATATT3" + _of(URL, 186), "notion": "ntn_" + _of("0123456789", 11) + _of(ALNUM, 35), "readme": "rdme_" + _of(HEX, 70), "shippo": "shippo_live_" + _of(HEX, 40),
    "supabase": "sbp_" + _of(HEX, 40), "figma": "figd_" + _of(URL, 43), "age": "AGE-SECRET-KEY-1" + _of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "sourcegraph": "sgp_" + _of(HEX, 40), "square old": "EAAA" + _of(URL, 60), "easypost": "EZAK" + _of(ALNUM, 54), "prefect": "pnu_" + _of(ALNUM, 36),
    "teams hook": f"https://acme.webhook.office.com/webhookb2/{_uuid()}@{_uuid()}/IncomingWebhook/{_of(HEX, 32)}/{_uuid()}",
}  # fmt: skip
"""A token of each service."""

TEXTS = {
    "azure storage": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net", "netrc": "machine h.example\n  login me\n  password {}\n",
    "netrc line": "machine h login me password {}", "npmrc": "//npm.example/:_authToken={}", "npmrc auth": "//r.example/:_auth={}", "small": "db_password={}",
    "JSON": '{{"user": "a", "password": "{}"}}', "JSON in a string": '"{{\\"password\\": \\"{}\\"}}"', "YAML": "db:\n  password: {}\n", "ini": "secret_key = {}",
    "code": 'client_secret = "{}"', "camel": "const accessToken = '{}'", "hash": '"api_key" => "{}"', "go": 'token := "{}"', "environment": "export PGPASSWORD={}",
    "cookie": "< Set-Cookie: session={}; Path=/; HttpOnly", "cookies": "Cookie: a=1; sid={}", "header": "X-Vault-Token: {}", "curl": "curl -u me:{} https://h/",
    "docker config": '{{"auths": {{"h": {{"auth": "{}"}}}}}}', "nuget config": '<add key="ClearTextPassword" value="{}" />', "linear": "LINEAR_KEY_SECRET={}",
    "url": "postgres://me:{}@db/x", "query": "GET /x?access_token={}&y=1", "bearer": "Authorization: Bearer {}", "aws file": "aws_session_token = {}",
}  # fmt: skip
"""Where a secret without a shape of its own is known by what stands before it."""

PLAIN = [
    "token = get_token()", 'password: str = Field(default="")', "secret: Sha256Digest", "d9360bc0a303f6ee13d5705521b70eb443411943", "sha512-" + _of(ALNUM + "+/", 86) + "==",
    _uuid(), f'"password": "{"Please enter your password again"}"', "token_count = 12345678", "tokens: 128000 used of 200000", "key = f'{name}-{index}'", "password = os.environ['DB_PASSWORD']",
    "secret = self.vault2.read(path)", "api_key: ${{ secrets.API_KEY_2 }}", 'private_key = "/run/secrets/key1.pem"', "api_key=<your-api-key-123>", "cl100k_base tokenizer",
    'tokenizer = "o200k_base"', '"token": "{{token1}}"', "Cookie: the biscuit that a browser keeps", "the password is wrong 3 times", "monkey: banana12345", "hotkey = 'ctrl+shift+p1'",
    "risk-free desk-organising-and-more-of-that-long-thing", "def test_fw_rules_are_applied_in_order(): pass", "0x" + _of(HEX, 64), "linear = 'gradient-of-many-colors-in-a-row'", "data:image/png;base64," + _of(ALNUM + "+/", 200),
    "task-createUserPermissions12AndMore1", "disk_" + _of(HEX, 32), "pnpm_" + _of(HEX, 32), "hotkey-" + _of(HEX, 32), "highp_position_of_some_long_variable_name_2",
    "webhook_glpatterns-of-many-names-1", "risk-admin-create-user-permission-123-and-more",
    "key-" + "a1" * 20 + "_x", "API-" + "A1" * 20 + "_X", "shippo_live_" + _of(HEX, 39) + "_x", "notion_ntn_user_settings_of_2024_and_more_of_that_kind", "EZAKTEST_and_a_longer_name_of_a_constant_1",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "a4b1d" + _of(HEX, 38), "deploy2" + _of(HEX, 43),
    "info1_of_the_many_names_of_a_user_in_the_year_2024_and_more", "http1//0-of-the-many-names-of-a-user-in-2024",
    "twitch_clip_view_count = twitch_api.get_clip_views_2024(channel_of_the_stream)", "travis: build_of_the_branch_main_on_linux_22_04_x86", "from linkedin_api import search_people_2_degrees_away",
    "facebook = load_settings_of_the_page_2(which_one_it_is)", "SK" + _of(HEX, 31) + "_x", "AKIA_IS_A_PREFIX_OF_KEYS_1", "def test_rdme_1_of_many_names_that_are_long_enough_to_look_random_x(): pass",
]  # fmt: skip
"""Code, prose, ids and sums that a developer has to read."""


@for_each("name", TOKENS)
@for_each("around", NEIGHBORS)
def test_every_token_is_redacted_next_to_any_character(name: str, around: str) -> None:
    token = TOKENS[name]
    clean = Redactor(())(f"see{around or ' '}{token}{around}")
    assert token[-12:] not in clean
    assert MARK in clean
    assert Redactor(())(token) != token
    assert token[-12:] not in Redactor(())(f"see_{token}{around}")  # as in `name_TOKEN`


BOUNDED = {
    "mailgun": ALNUM,  # `hotkey-` and a checksum
    "nuget": ALNUM,  # three letters of a base32 id
    "square old": ALNUM,  # zero bytes in base64
    "aws": string.ascii_uppercase + string.digits,  # `ACCA` in a hexadecimal checksum
}
"""Characters after which a token stays readable, because it may be part of another text."""


@for_each("name", TOKENS)
@for_each("before", ["x", "token", "Z", "7", "é", "キー"])
def test_a_token_is_redacted_behind_letters(name: str, before: str) -> None:
    """A23.1: two commands print without a line end between them."""
    is_readable = TOKENS[name][-12:] in Redactor(())(before + TOKENS[name])
    assert is_readable == (before[-1] in BOUNDED.get(name, ""))


BEHIND = ["_", "_x", "_2", "__", "_backup.txt", "_é", "-", "-old", ".bak", "é", "日"]


@for_each("name", TOKENS)
@for_each("behind", BEHIND)
def test_a_token_ends_before_an_underscore_or_a_sign(name: str, behind: str) -> None:
    """A23.1: as in `TOKEN_old`, where the shape has a fixed length too."""
    token = TOKENS[name]
    clean = Redactor(())(f"see {token}{behind} and {token}{behind}/x")
    assert token[-12:] not in clean
    assert clean.count(MARK) == 2


NAMED = {
    "twitch": _of("abc123", 30), "travis": _of("abc123", 22), "etsy": _of("abcdefgh12345678", 24), "linkedin": _of("abcdefgh12345678", 16),
    "facebook": _of(HEX, 32), "kucoin": _of(HEX, 24), "mattermost": _of(HEX, 26),
}  # fmt: skip
"""Services whose tokens only their names tell, with a token of each."""


@for_each("name", NAMED)
@for_each("behind", BEHIND)
def test_a_token_of_a_named_service_ends_before_an_underscore(name: str, behind: str) -> None:
    """A23.1"""
    assert NAMED[name] not in Redactor(())(f"{name}_value: {NAMED[name]}{behind}")


@for_each("name", TEXTS)
@for_each("secret", ["hunter22xyz", _of(ALNUM, 40), _of(ALNUM + "+/", 86) + "=="])
def test_a_secret_without_a_shape_is_known_by_its_name(name: str, secret: str) -> None:
    if len(secret) < {"azure storage": 80, "docker config": 40}.get(name, 0):
        return
    text = TEXTS[name].format(secret)
    clean = Redactor(())(text)
    assert secret.rstrip("=") not in clean
    assert Redactor(())(clean) == clean


def test_a_rule_with_several_groups_masks_the_secret() -> None:
    """A23.1"""
    assert Redactor(())(f"sonar.login={_of(HEX, 40)}") == f"sonar.login={MARK}"


@for_each("text", PLAIN)
def test_code_prose_ids_and_sums_stay_readable(text: str) -> None:
    """A23.1"""
    assert Redactor(())(text) == text


@cache
def _rows() -> dict[str, TokenRule]:
    names = [row[0] for row in (*read_rows("own_token_rules.tsv"), *read_rows("token_rules.tsv"))]
    return dict(zip(names, token_rules(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, rule in _rows().items() if not rule.is_apart])
def test_the_keywords_of_a_rule_miss_none_of_its_tokens(name: str) -> None:
    rule = _rows()[name]

    @given(
        st.from_regex(
            rule.pattern, fullmatch=True, alphabet=st.characters(min_codepoint=32, max_codepoint=126)
        )
    )
    @settings(
        max_examples=examples(3),
        deadline=None,
        suppress_health_check=(HealthCheck.filter_too_much, HealthCheck.too_slow),
        phases=[Phase.generate],
    )
    def check(text: str) -> None:
        masked = rule.pattern.sub(rule._mask, text)
        if masked != text:
            assert any(each.pattern.pattern == rule.pattern.pattern for each in rules_for(text))
            assert rule.redact(text) == masked

    check()


def test_every_rule_whose_tokens_may_be_short_says_so() -> None:
    import re._parser as parser

    for name, rule in _rows().items():
        if not (rule.is_short or rule.in_context or rule.is_apart):
            assert parser.parse(rule._pattern, re.ASCII).getwidth()[0] >= LONG, name


def test_the_rules_have_their_license_beside_them() -> None:
    rules = Path(known_values.__file__).with_name("token_rules.tsv")
    assert "MIT License" in rules.with_suffix(".LICENSE").read_text("utf-8")
    assert re.search(r"gitleaks v\d+\.\d+", rules.read_text("utf-8").partition("\n")[0])
    assert len(token_rules()) > 200


@pytest.mark.slow
def test_no_rule_takes_longer_than_the_text_is_long() -> None:
    for name, rule in _rows().items():
        for keyword in rule.keywords:
            for unit in (
                keyword,
                keyword.upper(),
                f"{keyword}-",
                f"{keyword} = ",
                f"{keyword}aA1" * 4,
                f"{keyword}=" + "a1" * 30 + "_",
            ):
                text = unit * (12_000 // len(unit))
                assert cpu_seconds(lambda text=text, rule=rule: rule.redact(text)) < 0.3, (name, unit)


def test_entropy_is_in_bits_per_character() -> None:
    assert entropy_of("aaaa") == 0
    assert entropy_of("abcd") == 2
