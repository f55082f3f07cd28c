"""A model that cannot be used: the error repeats its name, says the form of a name, and which providers there are."""

from __future__ import annotations

from typing import Any

import pytest

from daiku.domain.config import ProviderSettings
from daiku.domain.errors import DaikuError
from daiku.models.model import Probe, resolve_model
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.texts.text import render
from tests.cases import for_each
from tests.llm.test_model import keyed

NOTHING = Probe(first_model=lambda _: None)
FORM = ("provider/name", *PROVIDERS)
KEYS = ("OPENAI_API_KEY", "Ollama", "daiku doctor")


def error_of(name: str, **llm: Any) -> DaikuError:
    with pytest.raises(DaikuError) as caught:
        resolve_model(LLMSettings(**llm), name, NOTHING)
    return caught.value


NAMES: dict[str, tuple[str, dict[str, Any], str, tuple[str, ...]]] = {
    "no provider": ("gpt-9", {}, "no_provider", ("“gpt-9” cannot be used", *FORM, *KEYS)),
    "known model without a key": ("gpt-4o", {}, "no_provider", ("“gpt-4o”", *FORM, *KEYS)),
    "name with spaces around it": ("  gpt-9 ", {}, "no_provider", ("“gpt-9”", *FORM)),
    "name of the settings": ("", {"model": "gpt-9"}, "no_provider", ("“gpt-9”", *FORM, *KEYS)),
    "the command line wins": ("gpt-8", {"model": "gpt-9"}, "no_provider", ("“gpt-8”",)),
    "misspelled provider": ("opnai/gpt-9", {}, "usage", ("“opnai/gpt-9”", "Did you mean openai", *FORM)),
    "misspelled provider in the settings": ("", {"model": "opnai/gpt-9"}, "usage", ("“opnai/gpt-9”", "openai")),
    "unknown provider": ("acme/gpt-9", {}, "usage", ("“acme/gpt-9”", "“acme”", *FORM)),
    "no provider before the slash": ("/gpt-9", {}, "usage", ("“/gpt-9”", *FORM)),
    "nothing after the slash": ("openai/", {}, "usage", ("“openai/”", "only “openai”", *FORM)),
    "a space after the slash": ("openai/ ", {}, "usage", ("“openai/”", *FORM)),
    "nothing after the slash, with a key": ("openai/", {"openai": keyed()}, "usage", ("“openai/”", *FORM)),
    "nothing after the slash of the provider": ("ollama/", {"provider": "ollama"}, "usage", ("“ollama/”", *FORM)),
    "provider in capitals": ("OpenAI/gpt-9", {}, "usage", ("“OpenAI/gpt-9”", "openai", *FORM)),
    "provider without a key": ("openai/gpt-9", {}, "auth", ("“openai/gpt-9” cannot be used", "OpenAI needs an API key")),
    "provider of the settings without a key": ("gpt-9", {"provider": "openai"}, "auth", ("“gpt-9”", "OpenAI needs an API key")),
    "provider without an address": ("compatible/x", {}, "usage", ("“compatible/x”", "base_url")),
    "no editor": ("editor/x", {}, "no_provider", ("“editor/x”", "VS Code")),
}  # fmt: skip


@for_each("case", NAMES)
def test_the_error_repeats_the_name_and_says_its_form(case: str) -> None:
    """A23.5"""
    name, llm, kind, expected = NAMES[case]
    failure = error_of(name, **llm).failure
    told = f"{failure.message} {failure.hint}"
    assert (failure.kind, [part for part in expected if part not in told]) == (kind, []), told


def test_without_a_name_no_name_is_told() -> None:
    """A23.5"""
    assert error_of("").failure.message.startswith("No model is available")
    assert error_of("openai").failure.message == "OpenAI needs an API key, but none is set."


def test_a_slash_is_part_of_the_name_where_the_settings_name_the_provider() -> None:
    """A23.5"""
    llm = LLMSettings(provider="openai", openai=keyed())
    assert str(resolve_model(llm, "meta/llama", NOTHING)) == "openai/meta/llama"


def test_the_errors_are_in_japanese() -> None:
    """A23.5"""
    failure = error_of("gpt-9").failure
    assert render(failure.message, "ja").startswith("モデル「gpt-9」は使えません。使えるモデルがありません")
    assert "provider/name の形" in render(failure.hint, "ja")
    assert "「openai/」" in render(error_of("openai/").failure.message, "ja")


def test_a_service_that_lacks_the_model_is_told_with_its_name() -> None:
    """A23.5: whatever words the service has for it."""
    from daiku.domain.messages import ModelRequest
    from daiku.models.cures import describe_final_error
    from daiku.models.transport.failures import from_status

    service = PROVIDERS["openai"].service(ProviderSettings())
    request = ModelRequest("gpt-9", "", ())
    ended = describe_final_error(from_status(service, 404, ""), request, 1, None).failure
    assert "“gpt-9”" in ended.hint
    assert "daiku models" in ended.hint
    assert "「gpt-9」" in render(ended.hint, "ja")
