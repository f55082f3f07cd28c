"""The settings in the editor's manifest: types and defaults as the server has them, and those of each provider."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeAlias

from pydantic.alias_generators import to_camel, to_snake

from daiku.models.provider import Needs
from daiku.models.table import PROVIDERS
from daiku.settings import every_key
from daiku.settings.config import Config

Json: TypeAlias = dict[str, Any]

EXTENSION = Path(__file__).resolve().parent.parent / "extension"
OF_THE_EDITOR = ("server", "panel", "codeLens", "review")
"""Settings of the extension alone; `extension/src/pure/settings.ts` does not send them."""
SHOWN: dict[str, tuple[Needs, ...]] = {
    "base_url": ("key", "server", "address"),
    "context_length": ("server", "address"),
}
"""The settings of a provider that the editor shows, by what the provider needs."""
SCOPES = {"base_url": "machine", "context_length": "window"}
_BEFORE_PROVIDERS = "llm.fallbackModel"


def manifest() -> str:
    """The text of extension/package.json. Raises KeyError that names a setting which the server does not have."""
    whole: Json = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    for group in whole["contributes"]["configuration"]:
        settings: Json = group["properties"]
        if f"daiku.{_BEFORE_PROVIDERS}" in settings:
            settings = _with_providers(settings)
        group["properties"] = {
            key: _setting(key.removeprefix("daiku."), setting) | {"order": order}
            for order, (key, setting) in enumerate(settings.items(), 1)
        }
    trust: Json = whole["capabilities"]["untrustedWorkspaces"]
    keys = [f"daiku.{key}" for key, name, _ in _of_providers() if SCOPES[name] == "window"]
    trust["restrictedConfigurations"] = _spliced(
        trust["restrictedConfigurations"], keys, f"daiku.{_BEFORE_PROVIDERS}"
    )
    return _text(whole)


def provided() -> list[tuple[str, str, str]]:
    """The editor's key, the entry of its words, and the provider's label of each setting of a provider."""
    return [(key, f"config.llm.{{provider}}.{to_camel(name)}", label) for key, name, label in _of_providers()]


def _of_providers() -> list[tuple[str, str, str]]:
    """The editor's key, the server's name and the provider's label of each setting of a provider."""
    return [
        (f"llm.{entry.name}.{to_camel(name)}", name, entry.label)
        for name, needs in SHOWN.items()
        for entry in PROVIDERS.values()
        if entry.needs in needs
    ]


def _with_providers(settings: Json) -> Json:
    of_providers = {
        f"daiku.{key}": {"markdownDescription": f"%config.{key}%", "scope": SCOPES[name]}
        for key, name, _ in _of_providers()
    }
    keys = _spliced(list(settings), list(of_providers), f"daiku.{_BEFORE_PROVIDERS}")
    return {key: of_providers.get(key) or settings[key] for key in keys}


def _spliced(keys: list[str], made: list[str], after: str) -> list[str]:
    """`keys` with those of providers replaced by `made`, which stand behind `after`."""
    of_providers = re.compile(rf"^\w+\.llm\.\w+\.({'|'.join(map(to_camel, SHOWN))})$")
    kept = [key for key in keys if not of_providers.match(key)]
    place = kept.index(after) + 1
    return [*kept[:place], *made, *kept[place:]]


def _setting(key: str, setting: Json) -> Json:
    """A setting of the manifest, its type, bounds and default from the server's where it is one of the server's."""
    name = ".".join(map(to_snake, key.split(".")))
    if key.split(".", maxsplit=1)[0] in OF_THE_EDITOR:
        return setting
    if name not in every_key():
        raise KeyError(f"daiku.{key} in extension/package.json is no setting of the server")
    found = schema_of(name)
    told = {key: found[key] for key in ("type", "minimum", "enum", "default") if key in found}
    if name == "llm.provider":
        told["enum"] = ["", *PROVIDERS]
    if "items" in found:
        told["items"] = {"type": found["items"]["type"]}
    by_hand = {
        k: v for k, v in setting.items() if k not in ("type", "minimum", "enum", "items", "default", "order")
    }
    return {**by_hand, **told}


def schema_of(name: str) -> Json:
    """The JSON schema of one setting of the server."""
    here = _SCHEMA
    for part in name.split("."):
        here = here["properties"][part]
        reference = here.get("$ref", "")
        here = _SCHEMA["$defs"][reference.rpartition("/")[2]] if reference else here
    return here


_SCHEMA: Json = Config.model_json_schema(by_alias=False)


def _text(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
