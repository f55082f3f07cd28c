"""Addresses are joined as URLs, and a prompt never goes to another origin than the one in the settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.config import ProviderSettings
from daiku.domain.errors import LLMError
from daiku.models.transport.addresses import (
    base_url_normalizer,
    join_url,
    normalize_anthropic_address,
    normalize_ollama_address,
    openai_url_normalizer,
    strip_credentials,
    strip_version,
)
from tests.cases import for_each
from tests.llm.server import Answer, ModelServer, document
from tests.llm.talk import hear, opened, settings

AZURE = "https://x.openai.azure.com/openai/deployments/m?api-version=2024-10-21"


@for_each(
    ("base", "path", "url"),
    [
        (
            AZURE,
            "/chat/completions",
            "https://x.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21",
        ),
        ("http://h/v1/", "/models", "http://h/v1/models"),
        ("http://h/v1#part", "/models", "http://h/v1/models"),
        ("http://h?a=1", "models?b=2", "http://h/models?b=2&a=1"),
        ("http://u:p@[::1]:8080/v1", "/models", "http://u:p@[::1]:8080/v1/models"),
        ("http://h", "/", "http://h/"),
    ],
)
def test_a_path_is_joined_to_an_address(base: str, path: str, url: str) -> None:
    assert join_url(base, path) == url


@for_each(
    ("given_address", "address"),
    [
        (f"{AZURE}", AZURE),
        ("https://h/v1/chat/completions?api-version=1", "https://h/v1?api-version=1"),
        ("[::1]:8080", "http://[::1]:8080/v1"),
        ("http://[::1]:8080/", "http://[::1]:8080/v1"),
        ("http://u:p@h/v1/", "http://u:p@h/v1"),
        ("http://h/v1/#x", "http://h/v1"),
        ("localhost:1234/v1", "http://localhost:1234/v1"),
        ("http://[::1", "http://[::1"),
        ("http://h:port/v1", "http://h:port/v1"),
    ],
)
def test_an_address_keeps_its_query_and_credentials(given_address: str, address: str) -> None:
    assert openai_url_normalizer("http://default/v1")(given_address) == address


def test_other_providers_addresses_are_understood_alike() -> None:
    assert normalize_anthropic_address("http://h/anthropic/v1/?key=1#x") == "http://h/anthropic?key=1"
    assert normalize_anthropic_address("") == "https://api.anthropic.com"
    assert base_url_normalizer("https://d")("h:1/x/?a=1") == "http://h:1/x?a=1"
    assert normalize_ollama_address("http://u:p@h:1/v1?token=1") == "http://u:p@h:1?token=1"
    assert normalize_ollama_address("[::1]") == "http://[::1]:11434"
    assert normalize_ollama_address("http://h:x") == "http://h:x"
    assert strip_version("http://h/v1?a=1") == "http://h?a=1"


def test_credentials_are_not_shown() -> None:
    assert strip_credentials("http://u:p@h:1/v1?key=secret#x") == "http://h:1/v1"
    assert strip_credentials("http://[::1") == ""


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_stays_as_it_is(text: str) -> None:
    for complete in (
        openai_url_normalizer(),
        base_url_normalizer(""),
        normalize_anthropic_address,
        normalize_ollama_address,
    ):
        assert isinstance(complete(text), str)


PROVIDERS = {
    "compatible": ("/v1", "/v1/chat/completions"),
    "openai": ("/v1", "/v1/chat/completions"),
    "lmstudio": ("/v1", "/v1/chat/completions"),
    "anthropic": ("", "/v1/messages"),
    "gemini": ("", "/v1beta/models/m:streamGenerateContent"),
    "ollama": ("", "/api/chat"),
}


@pytest.mark.parametrize("name", PROVIDERS)
async def test_every_provider_joins_its_paths_to_the_address(model_server: ModelServer, name: str) -> None:
    base, path = PROVIDERS[name]
    given_settings = settings(model_server).model_copy(
        update={"base_url": f"{model_server.url}/deep{base}/?api-version=1#part"}
    )
    provider = opened(name, given_settings)
    with pytest.raises(LLMError):  # there is no answer; what was asked is looked at
        await hear(provider)
    with pytest.raises(LLMError):
        await provider.models()
    for asked in model_server.asked:
        assert asked.path.startswith("/deep/")
        assert asked.path.endswith("api-version=1")
    assert any(asked.path.partition("?")[0] == f"/deep{path}" for asked in model_server.asked)
    await provider.aclose()


async def _ask(provider: str, server: ModelServer, **more: Any) -> LLMError:
    made = opened(provider, settings(server, **more) if provider != "compatible" else _v1(server))
    with pytest.raises(LLMError) as caught:
        await hear(made)
    await made.aclose()
    return caught.value


def _v1(server: ModelServer) -> ProviderSettings:
    return ProviderSettings(base_url=f"{server.url}/v1")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("name", ["compatible", "anthropic", "gemini", "ollama"])
async def test_a_redirect_to_another_origin_gets_no_prompt(
    model_server: ModelServer, name: str, status: int
) -> None:
    other = ModelServer()
    await other.start()
    path = PROVIDERS[name][1]
    model_server.answer("/api/show", document({}))
    model_server.answer(path, Answer([], status, {"location": f"{other.url}{path}"}))
    error = await _ask(name, model_server)
    assert error.status == status
    assert other.asked == []
    await other.stop()


@pytest.mark.parametrize(
    "location", ["//127.0.0.2/v1/x", "http://[", "https://127.0.0.1/v1/x", "http://127.0.0.1:1/"]
)
async def test_other_spellings_of_another_origin_are_not_followed(
    model_server: ModelServer, location: str
) -> None:
    model_server.answer(PROVIDERS["compatible"][1], Answer([], 307, {"location": location}))
    assert (await _ask("compatible", model_server)).status == 307


async def test_a_redirect_within_the_origin_is_followed(model_server: ModelServer) -> None:
    model_server.answer("/v1/chat/completions", Answer([], 308, {"location": "/v2/chat"}))
    await _ask("compatible", model_server)
    assert [asked.path for asked in model_server.asked] == ["/v1/chat/completions", "/v2/chat"]
    assert model_server.asked[1].json["messages"]
