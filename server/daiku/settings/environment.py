"""Layers of settings, checked for names and types; settings and keys from environment variables."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, JsonValue, SecretStr, ValidationError
from pydantic.alias_generators import to_snake
from pydantic_core import ErrorDetails

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.guard.rules.redact import Redactor
from daiku.models.table import PROVIDERS
from daiku.settings.config import Config
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text
from daiku.trace.telemetry.endpoint import OTLP_HEADERS, endpoint_problem, parse_headers

Key = tuple[str, ...]
SECRET = lazy(r"api_key$|token$|headers|\benv\b|database_url|password|secret")
PATTERNS = ("guardrails.regex_blocks", "router.rules")
"""Lists of regular expressions, or of lists that begin with one."""
URLS = lazy(r"\.(base_url|api_url|url)$")


def model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the settings table behind a field's type, None if it is a plain value."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def field_at(key: Key) -> Any:
    """Return the type of the setting at `key`, None if there is none."""
    here: Any = Config
    for part in key:
        table = model_of(here)
        if table is None or part not in table.model_fields:
            return None
        here = table.model_fields[part].annotation
    return here


def known_keys(table: type[BaseModel] = Config, at: Key = ()) -> Iterator[Key]:
    """Every setting that is a value, as a path."""
    for name, info in table.model_fields.items():
        inner = model_of(info.annotation)
        if inner is None:
            yield (*at, name)
        else:
            yield from known_keys(inner, (*at, name))


def leaves(data: JsonObject, at: Key = ()) -> Iterator[tuple[Key, JsonValue]]:
    """Yield the values of a layer with their paths; a list or a free table counts as one value."""
    for name, value in data.items():
        if isinstance(value, dict) and model_of(field_at((*at, name))) is not None:
            yield from leaves(value, (*at, name))
        else:
            yield (*at, name), value


def normalize_keys(data: JsonObject, problems: list[Text], where: str, at: Key = ()) -> JsonObject:
    """Return the layer with every key in snake_case; add unknown keys to `problems` with the nearest known one."""
    table = model_of(field_at(at)) if at else Config
    assert table is not None
    done: JsonObject = {}
    for raw, value in data.items():
        name = raw if raw in table.model_fields else to_snake(raw)
        if name not in table.model_fields:
            problems.append(_unknown((*at, raw), where))
            continue
        inner = model_of(table.model_fields[name].annotation)
        if inner is not None and isinstance(value, dict):
            done[name] = normalize_keys(value, problems, where, (*at, name))
        else:
            done[name] = value
    return done


def check_values(data: JsonObject, problems: list[Text], where: str) -> None:
    """Every value that does not fit goes to `problems`: where, which key, what would be right."""
    try:
        Config.model_validate(data)
    except ValidationError as wrong:
        problems.extend(dict.fromkeys(_describe(error, where) for error in wrong.errors(include_url=False)))
    for key, value in leaves(data):
        name = dotted(key)
        if name == "trace.otlp_endpoint" and isinstance(value, str) and value:
            if problem := endpoint_problem(value):
                problems.append(text("settings.problem", where=where, name=name, problem=problem))
        elif isinstance(value, str) and value and URLS.search(name) and not _is_url(value):
            problems.append(_must(where, name, text("settings.address"), value))
        if name in PATTERNS and isinstance(value, list):
            first = (each[0] if isinstance(each, list) and each else each for each in value)
            problems.extend(
                text("settings.regex", where=where, name=name, pattern=repr(pattern), what=reason)
                for pattern in first
                if isinstance(pattern, str) and (reason := _regex_problem(pattern))
            )


def dotted(key: tuple[str | int, ...]) -> str:
    """`llm.openai.base_url`; list places as `mcp_servers[0].url`."""
    name = ""
    for part in key:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def display_value(name: str, value: object) -> Text:
    """Return a value as a message shows it: short, never a secret."""
    if SECRET.search(name):
        return text("settings.hidden")
    shown = repr(value) if not isinstance(value, bool) else str(value).lower()
    return Text(shown if len(shown) <= 60 else shown[:57] + "…")


def unknown_setting(where: str, name: str, near: str) -> Text:
    """Return the message for an unknown setting; `near` is the closest known name, or empty."""
    if not near:
        return text("settings.unknown", where=where, name=name)
    return text("settings.unknown_near", where=where, name=name, near=near)


def nearest_key(key: Key) -> Key | None:
    """Return the setting that a wrong name may mean: siblings first, then that name elsewhere, then what looks alike."""
    import difflib  # when used

    every = list(known_keys())
    names = {dotted(k): k for k in every} | {k[-1]: k for k in reversed(every)}
    alike = (
        [(*key[:-1], near) for near in difflib.get_close_matches(key[-1], _siblings(key), 1)]
        or [k for k in every if k[-1] == key[-1]]
        or [names[near] for near in difflib.get_close_matches(key[-1], names, 1)]
    )
    return alike[0] if alike else None


def _siblings(key: tuple[str | int, ...]) -> list[str]:
    table = _inner_table(key[:-1])
    return list(table.model_fields) if table else []


def _unknown(key: Key, where: str) -> Text:
    if near := nearest_key(key):
        return unknown_setting(where, dotted(key), dotted(near))
    return text("settings.unknown_here", where=where, name=dotted(key), names=", ".join(_siblings(key)))


_RIGHT = {
    "int": text("settings.whole_number"),
    "float": text("settings.number"),
    "bool": text("settings.true_or_false"),
    "string": text("settings.string"),
    "tuple": text("settings.list"),
    "list": text("settings.list"),
    "dict": text("settings.table"),
    "model": text("settings.table"),
    "finite": text("settings.finite_number"),
}


def _describe(error: ErrorDetails, where: str) -> Text:
    loc = tuple(to_snake(p) if isinstance(p, str) and p.isidentifier() else p for p in error["loc"])
    name, kind, ctx = dotted(loc), error["type"], error.get("ctx", {})
    match kind:
        case "extra_forbidden":
            import difflib  # when used

            near = difflib.get_close_matches(str(loc[-1]), _siblings(loc), 1)
            return unknown_setting(where, name, near[0] if near else "")
        case "literal_error":
            right = text("settings.one_of", names=ctx.get("expected", ""))
        case "greater_than_equal":
            right = text("settings.at_least", low=ctx.get("ge", ""))
        case "less_than_equal":
            right = text("settings.at_most", high=ctx.get("le", ""))
        case _:
            right = _RIGHT.get(kind.partition("_")[0]) or Text(error["msg"])
    return _must(where, name, right, error.get("input"))


def _must(where: str, name: str, right: Text, value: object) -> Text:
    return text("settings.must", where=where, name=name, right=right, value=display_value(name, value))


def _inner_table(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    """Return the table at a place inside lists and free tables, which `field_at` does not reach."""
    here: Any = Config
    for part in loc:
        table = model_of(here)
        if table is not None and isinstance(part, str) and part in table.model_fields:
            here = table.model_fields[part].annotation
        elif get_origin(here) in (tuple, dict, types.UnionType):
            here = next((a for a in reversed(get_args(here)) if model_of(a)), None)
        else:
            return None
    return model_of(here)


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _regex_problem(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as wrong:
        return str(wrong)
    return ""


_OTHER_NAMES: dict[str, Key] = {
    "GITHUB_API_URL": ("github", "api_url"),
    "GITLAB_API_URL": ("gitlab", "api_url"),
    "TRACE_OTLP_ENDPOINT": ("trace", "otlp_endpoint"),
}
MODELS = "llm"
"""The table of the settings that only commands that use a model need."""
FROM_ENVIRONMENT = text("settings.from_environment")
_LOGIN = lazy(r"://[^/\s:@]*:(?P<password>[^/\s@]+)@")
SECRET_NAME = lazy(
    r"(?:^|[_-])(?:API|ACCESS|PRIVATE|SECRET|AUTH|SIGNING)?[_-]?"
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(?:[_-]|$)",
    re.IGNORECASE,
)


def set_value(data: JsonObject, key: Key, value: JsonValue) -> None:
    """Set the value at a path, making the tables on the way."""
    for part in key[:-1]:
        inner = data.setdefault(part, {})
        assert isinstance(inner, dict)
        data = inner
    data[key[-1]] = value


def from_environment(
    environ: Mapping[str, str], problems: list[Text], of_models: list[Text]
) -> tuple[JsonObject, dict[str, str]]:
    """Return the settings layer from environment variables, and the variable each key came from.

    An empty variable counts as not set. `DAIKU_…` overrides the usual names. Mistakes in `llm` go to `of_models`.
    """
    data: JsonObject = {}
    origin: dict[str, str] = {}
    addresses = {e.address_env: (("llm", e.name, "base_url"), e.read_address) for e in PROVIDERS.values()}
    for name, (key, read) in (addresses | {name: (key, str) for name, key in _OTHER_NAMES.items()}).items():
        if value := environ.get(name, "").strip():
            set_value(data, key, read(value))
            origin[dotted(key)] = name
    for name, value in sorted(environ.items()):
        key = _key_of(name)
        if key is None or not value.strip():
            continue
        found = of_models if key[0] == MODELS else problems
        field = field_at(key)
        if field is None or model_of(field) is not None:
            near = nearest_key(key)
            shown = "DAIKU_" + "__".join(near).upper() if near else ""
            found.append(unknown_setting(FROM_ENVIRONMENT, name, shown))
            continue
        set_value(data, key, _value_of(field, value, name, found))
        origin[dotted(key)] = name
    return data, origin


def with_keys(config: Config, environ: Mapping[str, str]) -> tuple[Config, dict[str, str]]:
    """Return the settings with each provider's key from the variable that `api_key_env` names, and the sources."""
    found: dict[str, ProviderSettings] = {}
    origin: dict[str, str] = {}
    for name, entry in PROVIDERS.items():
        provider = config.llm.of(name)
        usual = provider.api_key_env == entry.settings.api_key_env
        for variable in entry.key_env if usual else (provider.api_key_env,):
            if value := environ.get(variable, "").strip():
                found[name] = provider.model_copy(update={"api_key": SecretStr(value)})
                origin[f"llm.{name}.api_key"] = variable
                break
    return config.model_copy(update={"llm": config.llm.model_copy(update=found)}), origin


def secrets_of(config: Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every text that must never be stored or shown: keys, and variables named like secrets."""
    keys = [config.llm.of(name).api_key.get_secret_value() for name in config.llm.entries]
    names = [config.github.token_env, config.gitlab.token_env, config.research.api_key_env]
    tokens = [environ.get(n, "") for n in names if n]
    others = [v for n, v in environ.items() if SECRET_NAME.search(n)]
    others += _secret_parts(config.storage.database_url)
    if config.storage.database_url:
        from daiku.store.postgres import find_passwords  # when used

        others += find_passwords(config.storage.database_url)
    for value in (environ.get(name, "") for name in (*config.sandbox.environment, config.github.app_key_env)):
        others += _secret_parts(value)
    headers = [
        value
        for name in config.llm.entries
        for header, value in config.llm.of(name).headers.items()
        if SECRET_NAME.search(header) or header.lower() == "authorization"
    ]
    others += _secret_parts(config.trace.otlp_endpoint)
    others += parse_headers(environ.get(OTLP_HEADERS, "")).values()
    found = (*keys, *tokens, *others, *headers, *_secrets_of_servers(config))
    return tuple(sorted({s.strip() for s in found if len(s.strip()) >= 8}))


def _secret_parts(value: str) -> list[str]:
    """Return the secret parts of a variable that commands get by name: all of it, and a password in an address."""
    if Redactor(())(value) == value:
        return []
    login = _LOGIN.search(value)
    return [value, unquote(login["password"])] if login else [value]


def _secrets_of_servers(config: Config) -> list[str]:
    """Return the secrets that MCP server settings contain literally, not as `${NAME}`."""
    found: list[str] = []
    for server in config.mcp_servers:
        named = (*server.env.items(), *server.headers.items())
        found += [
            value.removeprefix("Bearer ")
            for name, value in named
            if "${" not in value and (SECRET_NAME.search(name) or name.lower() == "authorization")
        ]
        found.append(server.oauth.client_secret)
    return [value for value in found if "${" not in value]


def _key_of(name: str) -> Key | None:
    """`DAIKU_A__B` is a.b; `DAIKU_MCP_SERVERS` a whole list; other DAIKU_ names are not settings."""
    if not name.startswith("DAIKU_"):
        return None
    parts = name.removeprefix("DAIKU_").lower().split("__")
    return tuple(parts) if len(parts) > 1 or parts == ["mcp_servers"] else None


def _value_of(field: object, value: str, name: str, problems: list[Text]) -> JsonValue:
    """Parse a variable: lists and tables are JSON; a list of strings may also be separated by commas."""
    if get_origin(field) not in (tuple, dict):
        return value
    if value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError as wrong:
            problems.append(text("settings.json", where=FROM_ENVIRONMENT, name=name, what=str(wrong)))
            return [] if get_origin(field) is tuple else {}
    return [part.strip() for part in value.split(",") if part.strip()]
