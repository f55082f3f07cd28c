"""What is asked of a family of models by default, and that a service which may not know it is asked for nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from daiku.domain.config import ProviderSettings
from daiku.domain.messages import ModelRequest
from daiku.models.adapter import LLMAdapter
from daiku.models.anthropic.provider import INTERLEAVED, AnthropicProvider
from daiku.models.catalogue import KNOWN
from daiku.models.families import find_traits
from daiku.models.openai.provider import OpenAIProvider
from daiku.models.provider import ModelChoice
from daiku.models.table import PROVIDERS
from tests.cases import for_each
from tests.llm.talk import READ, request, user

ELSEWHERE = "https://models.example.com/v1"

FAMILY = [
    ("gpt-6.1-sol", "gpt", "apply_patch"),
    ("openai/gpt-5.4-mini", "gpt", "apply_patch"),
    ("gpt-oss:20b", "gpt", "apply_patch"),
    ("gpt-4.1", "gpt", "apply_patch"),
    ("o4-mini", "gpt", "apply_patch"),
    ("o3-mini", "gpt", "search_replace"),
    ("gpt-4o", "gpt", "search_replace"),
    ("claude-sonnet-5-5", "claude", "search_replace"),
    ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude", "search_replace"),
    ("models/gemini-3.8-flash", "gemini", "search_replace"),
    ("zai-org/GLM-4.6", "glm", "search_replace"),
    ("qwen3-coder:30b", "qwen", "search_replace"),
    ("moonshotai/Kimi-K2-Instruct", "kimi", "search_replace"),
    ("deepseek-r1:8b", "deepseek", "search_replace"),
    ("llama3.3:70b", "llama", "search_replace"),
    ("devstral-small", "mistral", "search_replace"),
    ("carpenter-1", "other", "search_replace"),
    ("", "other", "search_replace"),
]


@for_each(("model", "family", "edits"), FAMILY)
def test_a_name_tells_the_family_and_how_it_edits(model: str, family: str, edits: str) -> None:
    traits = find_traits(model)
    assert (traits.family, traits.edits) == (family, edits)


def test_every_known_model_is_of_its_maker_s_family() -> None:
    makers = {"anthropic": "claude", "openai": "gpt", "gemini": "gemini"}
    assert [k.name for k in KNOWN if find_traits(k.name).family != makers[k.provider]] == []


def test_only_what_is_known_to_think_is_asked_to() -> None:
    asked = {known.name: find_traits(known.name).effort for known in KNOWN}
    assert asked["claude-sonnet-4-5"] == asked["gpt-5.2"] == "medium"
    assert asked["claude-sonnet-5-5"] == asked["gpt-4o"] == asked["claude-3-5-haiku"] == ""
    assert find_traits("gpt-7-new").effort == find_traits("claude-newer-9").effort == ""


def settings(address: str = "", **more: Any) -> ProviderSettings:
    return ProviderSettings(base_url=address, api_key=SecretStr("sk-secret-secret-secret"), **more)


def asked_effort(provider: str, model: str, asked: ModelRequest, chosen: ProviderSettings) -> str:
    entry = PROVIDERS[provider]
    opened = OpenAIProvider(entry.service(chosen), chosen)  # it is not asked: only the effort is looked at
    adapter = LLMAdapter(ModelChoice(provider, model), entry, opened, chosen)
    return adapter._choose_effort(asked)


EFFORTS = [
    ("anthropic", "claude-sonnet-4-5", "", "", "medium"),
    ("openai", "gpt-5.2", "", "", "medium"),
    ("openai", "gpt-5.2", "", "low", "low"),
    ("openai", "gpt-5.2", ELSEWHERE, "", ""),
    ("openai", "gpt-5.2", ELSEWHERE, "high", "high"),
    ("compatible", "gpt-5.2", ELSEWHERE, "", ""),
    ("openai", "gpt-4o", "", "", ""),
    ("gemini", "gemini-3.8-flash", "", "", ""),
]


@for_each(("provider", "model", "address", "chosen", "effort"), EFFORTS)
def test_the_settings_go_before_the_family_and_only_the_maker_is_asked(
    provider: str, model: str, address: str, chosen: Any, effort: str
) -> None:
    asked = request(user(), model=model, tools=(READ,))
    assert asked_effort(provider, model, asked, settings(address, effort=chosen)) == effort
    bare = replace(asked, tools=())
    assert asked_effort(provider, model, bare, settings(address, effort=chosen)) == chosen


def body(model: str, api: Any, address: str = "") -> dict[str, Any]:
    chosen = settings(address, api=api)
    entry = PROVIDERS["openai"]
    return json.loads(
        OpenAIProvider(entry.service(chosen), chosen)._encode_body(
            request(user(), model=model, session="ses_1")
        )
    )


def test_gpt_is_asked_to_say_little_and_told_which_cache_by_its_maker_alone() -> None:
    assert body("gpt-5.2", "responses")["text"] == {"verbosity": "low"}
    assert body("gpt-5.2", "chat")["verbosity"] == "low"
    assert body("gpt-5.2", "responses")["prompt_cache_key"] == "ses_1"
    assert body("gpt-5.2", "chat")["prompt_cache_key"] == "ses_1"
    for api in ("chat", "responses"):
        for model, address in (("gpt-4.1", ""), ("o3", ""), ("gpt-7-new", ""), ("gpt-5.2", ELSEWHERE)):
            assert not {"text", "verbosity"} & set(body(model, api, address))
        assert "prompt_cache_key" not in body("gpt-5.2", api, ELSEWHERE)


def beta(model: str, effort: Any, address: str = "", **headers: str) -> str:
    chosen = settings(address, headers=headers)
    asked = request(user(), model=model, tools=(READ,), effort=effort)
    return AnthropicProvider(PROVIDERS["anthropic"].service(chosen), chosen)._list_betas(asked)


def test_thinking_between_calls_is_asked_for_where_a_model_needs_that() -> None:
    assert beta("claude-sonnet-4-5", "medium") == INTERLEAVED
    assert beta("claude-sonnet-4-5", "medium", **{"Anthropic-Beta": "own-1"}) == f"own-1,{INTERLEAVED}"
    assert beta("claude-sonnet-4-5", "none") == ""
    assert beta("claude-sonnet-5-5", "medium") == ""
    assert beta("claude-3-7-sonnet", "medium") == ""
    assert beta("claude-sonnet-4-5", "medium", "https://models.example.com") == ""
