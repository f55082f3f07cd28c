"""Settings and keys from environment variables: the usual names and `DAIKU_SECTION__KEY`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import get_origin
from urllib.parse import unquote

from pydantic import JsonValue, SecretStr

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.guard.rules.redact import Redactor
from daiku.models.table import PROVIDERS
from daiku.settings.check import Key, dotted, field_at, model_of, nearest_key, unknown_setting
from daiku.settings.config import Config
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text
from daiku.trace.telemetry.endpoint import OTLP_HEADERS, parse_headers

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
