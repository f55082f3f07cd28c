"""The `compatible` provider: any server that speaks OpenAI's protocol at a given address, with or without a key."""

from __future__ import annotations

import httpx2

from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, UsageError
from daiku.llm.openai.provider import OpenAIProvider, base_address
from daiku.llm.transport.failures import Service


def compatible_provider(settings: ProviderSettings, http: httpx2.AsyncClient | None = None) -> OpenAIProvider:
    """The server at `settings.base_url`. Raises UsageError where that is not set."""
    if not settings.base_url.strip():
        raise UsageError(
            Failure(
                kind="usage",
                message="The provider “compatible” needs the address of its server.",
                hint="Set llm.compatible.base_url, for example http://127.0.0.1:8000/v1.",
            )
        )
    address = base_address(settings.base_url)
    service = Service(
        name="compatible",
        label=f"The server {httpx2.URL(address).host}",
        address=address,
        key_env=settings.api_key_env or "COMPATIBLE_API_KEY",
        start_hint="Start the server, or correct llm.compatible.base_url.",
        secrets=(settings.api_key.get_secret_value(),),
    )
    return OpenAIProvider(service, settings, http)
