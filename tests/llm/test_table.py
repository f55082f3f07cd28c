"""The table of providers is the truth: what an entry must hold, and a provider that is added by the table alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.base import JsonObject
from daiku.models import table
from daiku.models.catalogue import find_model
from daiku.models.provider import ProviderEntry
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.run.rules.outside import LanguageModelBridge
from daiku.texts.text import render
from tests.cases import for_each
from tests.conftest import ROOT
from tests.llm.conftest import Closing
from tests.llm.talk import opened

JAPANESE = re.compile(r"[\u3040-\u9fff]")


class Lender:
    async def list_models(self) -> tuple[JsonObject, ...]:
        return ()

    async def request(self, *_: Any, **__: Any) -> JsonObject:
        return {}


# -- what an entry must hold --------------------------------------------------------------


def test_every_entry_has_a_field_of_its_name_in_the_settings() -> None:
    """R1.14: each provider has an implementation of its own behind the one adapter."""
    entries = [value for value in vars(table).values() if isinstance(value, ProviderEntry)]
    without = [entry.name for entry in entries if PROVIDERS.get(entry.name) is not entry]
    assert not without, f"give these a field in LLMSettings: {without}"
    others = ("provider", "model", "fallback_model", "plugins")
    settings = [name for name in LLMSettings.model_fields if name not in others]
    assert settings == list(PROVIDERS), "each field but these carries an entry"


def _lacks(entry: ProviderEntry) -> list[str]:
    """What an entry must have by what it needs, and has not."""
    address = entry.address("")
    match entry.needs:
        case "key":
            wanted = {
                "key_env": entry.key_env,
                "address": address.startswith("https://"),
                "default_model in the catalogue": find_model(entry.default_model),
            }
        case "server":
            wanted = {
                "address": address.startswith("http://"),
                "how": entry.how,
                "first_model": entry.first_model,
            }
        case "address":
            wanted = {"how": entry.how, "first_model": entry.first_model}
        case "editor":
            wanted = {"how": entry.how}
        case "script":
            wanted = {"default_model": entry.default_model}
    return [name for name, there in wanted.items() if not there]


@for_each("entry", list(PROVIDERS.values()))
def test_an_entry_has_what_its_kind_needs(entry: ProviderEntry) -> None:
    assert not _lacks(entry), entry.name


@for_each("entry", list(PROVIDERS.values()))
def test_what_an_entry_tells_a_person_to_do_is_said_in_japanese(entry: ProviderEntry) -> None:
    assert not entry.how or JAPANESE.search(render(entry.how, "ja")), entry.name


@pytest.mark.parametrize("entry", PROVIDERS.values(), ids=lambda entry: entry.name)
async def test_an_entry_makes_a_provider_of_its_name(
    entry: ProviderEntry, closing_after: Closing, tmp_path: Path
) -> None:
    bridge: LanguageModelBridge = Lender()
    made = closing_after(opened(entry.name, entry.settings, bridge=bridge, script_folders=(tmp_path,)))
    assert made.name == entry.name


def test_no_variable_of_the_environment_means_two_providers() -> None:
    names = [name for entry in PROVIDERS.values() for name in (*entry.key_env, entry.address_env) if name]
    assert len(names) == len(set(names))


# -- a provider is added as the table's docstring says --------------------------------------

MODULE = '''"""Acme's models."""

from __future__ import annotations

from daiku.domain.messages import ModelInfo
from daiku.models.openai.provider import OpenAIProvider


class AcmeProvider(OpenAIProvider):
    """Acme speaks OpenAI's protocol, and has one model."""

    async def models(self) -> tuple[ModelInfo, ...]:
        return (ModelInfo(provider=self.name, name="acme-1"),)
'''
ENTRY = """def _acme(service: Service, settings: ProviderSettings, _: ProviderDeps) -> Provider:
    from daiku.models.acme import AcmeProvider  # lazy: see above

    return AcmeProvider(service, settings)


ACME = ProviderEntry(
    name="acme",
    label="Acme",
    needs="key",
    make=_acme,
    key_env=("ACME_API_KEY",),
    address_env="ACME_BASE_URL",
    address=openai_url_normalizer("https://acme.example/v1"),
    default_model="acme-1",
)


"""
FIELD = "    acme: Annotated[ProviderSettings, ACME] = ACME.settings\n"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the provider `acme`: one file, and its entry with its field in the table."""
    root = tmp_path_factory.mktemp("scratch")
    aside = shutil.ignore_patterns("node_modules", "dist", "test", "media")
    for folder in ("server", ".dev", "docs", "extension", "prompts"):
        shutil.copytree(ROOT / folder, root / folder, ignore=aside)
    shutil.copy(ROOT / "README.md", root)
    models = root / "server" / "daiku" / "models"
    (models / "acme.py").write_text(MODULE)
    text = (models / "table.py").read_text()
    before_names, between, after = re.split(r"(?=def _check_provider_name)|(?=    editor: Annotated)", text)
    (models / "table.py").write_text(before_names + ENTRY + between + FIELD + after)
    python("-c", "import gen, sys; sys.exit(gen.main([]))", root=root)
    return root


def python(*arguments: str, root: Path, **environ: str) -> str:
    """What the scratch copy's Python prints."""
    paths = os.pathsep.join(str(root / folder) for folder in ("server", ".dev"))
    home = {name: str(root / "home") for name in ("HOME", "DAIKU_HOME", "XDG_CONFIG_HOME")}
    nowhere = {"OLLAMA_HOST": "127.0.0.1:9", "LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths, **home, **nowhere, **environ},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_added_provider_is_listed_and_chosen_by_its_key(scratch: Path) -> None:
    listed = json.loads(python("-m", "daiku", "models", "--json", root=scratch, ACME_API_KEY="k" * 20))
    assert listed["chosen"] == "acme/acme-1"
    offers = {offer["provider"]: offer for offer in listed["providers"]}
    assert list(offers) == [*list(PROVIDERS)[:6], "acme", *list(PROVIDERS)[6:]]
    assert [model["name"] for model in offers["acme"]["models"]] == ["acme-1"]


@pytest.mark.slow
def test_an_added_provider_without_its_key_says_in_the_doctor_what_to_do(scratch: Path) -> None:
    told = python("-m", "daiku", "doctor", root=scratch, DAIKU_LLM__PROVIDER="scripted")
    assert "acme: Acme needs an API key, but none is set." in told
    assert "Set the environment variable ACME_API_KEY" in told


@pytest.mark.slow
def test_an_added_provider_has_settings_with_their_origins(scratch: Path) -> None:
    told = python("-m", "daiku", "config", "show", "--json", root=scratch, ACME_BASE_URL="http://acme:1/v1")
    rows = json.loads(told)
    assert rows["llm.acme.api_key_env"]["value"] == "ACME_API_KEY"
    assert rows["llm.acme.base_url"] == {"value": "http://acme:1/v1", "source": "environment ACME_BASE_URL"}


@pytest.mark.slow
def test_an_added_provider_is_in_the_editors_settings_in_both_languages(scratch: Path) -> None:
    manifest = json.loads((scratch / "extension" / "package.json").read_text(encoding="utf-8"))
    properties = manifest["contributes"]["configuration"][0]["properties"]
    assert properties["daiku.llm.acme.baseUrl"]["scope"] == "machine"
    assert "acme" in properties["daiku.llm.provider"]["enum"]
    for name in ("package.nls.json", "package.nls.ja.json"):
        texts = json.loads((scratch / "extension" / name).read_text(encoding="utf-8"))
        assert "Acme" in texts["config.llm.acme.baseUrl"]
    contract = (scratch / "extension" / "src" / "contract.gen.ts").read_text(encoding="utf-8")
    assert '"acme": "Acme"' in contract
    by_need = contract.partition("export const PROVIDERS_BY_NEED = ")[2].partition(";")[0]
    assert "Acme" in json.loads(by_need)["key"]


@pytest.mark.slow
def test_an_added_provider_is_in_the_readme_and_the_docs(scratch: Path) -> None:
    for page in ("README.md", "docs/guide/connect.md"):
        assert "| Acme | `ACME_API_KEY`, or " in (scratch / page).read_text(encoding="utf-8"), page
