"""Adapter that adds retries, fallback, text tool protocols, prices, and token counts to a model provider."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, overload

from pydantic import JsonValue

from daiku.dataclass import dataclass, field, replace
from daiku.domain.config import Price, ProviderSettings, ToolProtocol
from daiku.domain.errors import DaikuError, LLMError
from daiku.domain.messages import (
    AssistantMessage,
    Effort,
    Message,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    Restarted,
    Usage,
    UserMessage,
)
from daiku.domain.tools import ToolSpec
from daiku.models.catalogue import compute_cost, find_model, find_price_step, normalize_model_name
from daiku.models.cures import Cures
from daiku.models.families import ModelTraits, find_traits
from daiku.models.provider import ModelChoice, Provider, ProviderEntry
from daiku.models.reply_filter import filter_reply
from daiku.models.retries.policy import RetryPolicy, compute_retry_delay, is_transient
from daiku.models.rules.textcalls.codecs import add_dropped_notes
from daiku.models.tokens import estimate, estimate_message, estimate_messages, estimate_request
from daiku.run.rules.budget import Quote, worst_quote
from daiku.texts.text import text

if TYPE_CHECKING:
    from daiku.models.cures import Trial


@dataclass(frozen=True, slots=True)
class Clock:
    """Sleep and random functions that tests can replace."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(slots=True)
class LLMAdapter:
    """Port to one model. `fallback` returns the adapter to use after temporary errors, or None."""

    choice: ModelChoice
    entry: ProviderEntry
    provider: Provider
    settings: ProviderSettings
    fallback: Callable[[], LLMAdapter | None] = lambda: None
    policy: RetryPolicy = RetryPolicy()
    clock: Clock = field(default_factory=Clock)
    learned: Callable[[], ModelInfo | None] = lambda: None
    """Returns what the service listed about the model; None before it was asked."""
    used: Callable[[str, Usage], None] = lambda _project, _usage: None
    """Called with the project name and the usage of each `inference` call."""
    cures: Cures = field(default_factory=Cures)

    @property
    def name(self) -> str:
        """`provider/model`, as shown to the user."""
        return str(self.choice)

    @property
    def context(self) -> int:
        """Context window in tokens; 0 if unknown."""
        listed = self.learned()
        if self.settings.context_length or (listed is not None and listed.context):
            return self.settings.context_length or (listed.context if listed is not None else 0)
        entry = find_model(self.choice.model)
        return self.entry.default_context or (entry.context if entry is not None else 0)

    @property
    def traits(self) -> ModelTraits:
        """Traits of the model's family."""
        return find_traits(self.choice.model)

    @property
    def price_step(self) -> int:
        """Prompt tokens above which the price rises; 0 if it does not, or if the settings set the price."""
        return find_price_step(self.choice.model, self.settings.price)

    @property
    def tool_protocol(self) -> ToolProtocol:
        """How tools are offered to the model: natively or in text."""
        return self.cures.protocol(self.settings.tool_protocol)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Stream the pieces of a reply, then the Reply with its price. `Restarted` voids the earlier pieces.

        Raises LLMError when the retries of this model and of the fallback are used up, at once for a permanent error;
        UsageError for a bad script.
        """
        adapter: LLMAdapter = self
        while True:
            pieces = adapter.stream_with_retries(request)
            try:
                async for event in pieces:
                    yield event
                return
            except LLMError as error:
                fallback = adapter.fallback_after(self, error)
                if fallback is None:
                    raise
                reason = text("llm.going_on", message=error.failure.message, model=fallback.name)
                yield Restarted(reason, adapter.policy.retries + 1, 0.0)
            finally:
                await pieces.aclose()
            adapter = fallback

    def quote(self, request: ModelRequest) -> Quote:
        """Return the worst-case cost of a call, including the fallback, which may answer it too."""
        quotes = [quote_call(replace(request, model=self.choice.model), self.settings.price, self.context)]
        try:
            fallback = self.fallback()
        except DaikuError:
            fallback = None
        return worst_quote(quotes if fallback is None else [*quotes, fallback.quote(request)])

    def fallback_after(self, first: LLMAdapter, error: LLMError) -> LLMAdapter | None:
        """Return the fallback to use after a temporary `error`; None if there is none or it was used already."""
        if self is not first or not is_transient(error):
            return None
        try:
            fallback = self.fallback()
        except DaikuError:
            return None  # the failure that led here says more
        return None if fallback is None or fallback.choice == self.choice else fallback

    async def stream_with_retries(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Stream the reply of this model, with the retries of the policy."""
        request = replace(request, model=self.choice.model, effort=self._choose_effort(request))
        if any(not isinstance(message, AssistantMessage) and message.images for message in request.messages):
            from daiku.models.history.pictures import fit_message_pictures  # when used

            request = replace(request, messages=await fit_message_pictures(request.messages))
        if request.schema is not None:
            from daiku.models.textcalls import apply_schema  # when used

            request = apply_schema(request, self.entry.needs in ("server", "address"))
        attempt = 1
        trial: Trial | None = None
        while True:
            wait: float | None = 0.0
            pieces = self._stream_once(
                trial.apply(self.cures, request) if trial else self.cures.apply(request)
            )
            try:
                async for event in pieces:
                    if trial is not None and not isinstance(event, Restarted):
                        trial.accept(self.cures, request)
                        trial = None
                    if isinstance(event, Reply) and await self._lacks_tools(event, request):
                        yield Restarted(self.cures.learn_dropped_tools(), attempt, 0.0)
                        break
                    yield self._with_price(event, request) if isinstance(event, Reply) else event
                else:
                    return
            except LLMError as error:
                from daiku.models.cures import Trial, describe_final_error  # when used

                trial = trial or Trial()
                notice = trial.next_cure(error, self.cures, request, may_move=self.entry.versioned)
                wait = (
                    0.0 if notice else compute_retry_delay(attempt, error, self.policy, self.clock.chance())
                )
                if wait is None:
                    window = self.context if self.entry.needs in ("server", "address") else None
                    raise describe_final_error(
                        trial.refusal or error, request, attempt, window
                    ) from error.__cause__
                yield Restarted(notice or self.policy.describe_retry(error, attempt), attempt, wait)
                attempt += notice is None
            finally:
                await pieces.aclose()
            if wait:
                await self.clock.sleep(wait)

    @property
    def _reads_text_calls(self) -> bool:
        """True if the service may write tool calls into the reply text although tools are native."""
        return self.entry.writes_calls(self.settings.base_url)

    async def _lacks_tools(self, reply: Reply, request: ModelRequest) -> bool:
        """Return True if the server left the tools out of the prompt because its chat template has none."""
        if not (
            self.entry.versioned and self._reads_text_calls and self.cures.may_lack_tools(reply, request)
        ):
            return False
        from daiku.models.transport.local import has_no_tools  # when used

        address, headers = self.entry.address(self.settings.base_url), self.settings.bearer_headers()
        return await asyncio.to_thread(has_no_tools, address, headers)

    def _choose_effort(self, request: ModelRequest) -> Effort:
        """Return the effort to request.

        The default is that of the model family. It applies to requests with tools at the maker's own service: other
        services may refuse an unknown field.
        """
        effort = request.effort or self.settings.effort
        if effort or not request.tools or not self.entry.is_own_service(self.settings.base_url):
            return effort
        return self.traits.effort

    def _stream_once(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        protocol = self.tool_protocol
        if protocol == "native":
            messages = add_dropped_notes(request.messages)
            request = request if messages is request.messages else replace(request, messages=messages)
        if not request.tools or (protocol == "native" and not self._reads_text_calls):
            return filter_reply(self.provider.stream(request))
        from daiku.models.textcalls import TextCallStream  # when used

        policy = self.policy
        return TextCallStream(self.provider, protocol, policy.format_retries, policy.strict).stream(request)

    def _with_price(self, reply: Reply, request: ModelRequest) -> Reply:
        usage = reply.usage
        if not usage.prompt_tokens and not usage.completion_tokens:  # the service reported no usage
            prompt_tokens = estimate_request(request)
            usage = usage.model_copy(
                update={
                    "prompt_tokens": prompt_tokens,
                    "completion_tokens": estimate_message(reply.message, request.model),
                }
            )
        price = usage.cost
        if price is None:
            price = compute_cost(usage, self.choice.model, self.settings.price)
        name = self.name if self.choice.model else f"{self.choice.provider}/{usage.model}".rstrip("/")
        return replace(reply, usage=usage.model_copy(update={"model": name, "cost": price}))

    @overload
    def chat(
        self,
        messages: Sequence[Message],
        stream: Literal[True],
        *,
        system: str = "",
        tools: tuple[ToolSpec, ...] = (),
        **options: JsonValue,
    ) -> AsyncIterator[ModelEvent]: ...
    @overload
    def chat(
        self,
        messages: Sequence[Message],
        stream: Literal[False] = False,
        *,
        system: str = "",
        tools: tuple[ToolSpec, ...] = (),
        **options: JsonValue,
    ) -> Awaitable[Reply]: ...
    def chat(
        self,
        messages: Sequence[Message],
        stream: bool = False,  # the seed's signature (R1.40)
        *,
        system: str = "",
        tools: tuple[ToolSpec, ...] = (),
        **options: JsonValue,
    ) -> AsyncIterator[ModelEvent] | Awaitable[Reply]:
        """Return the reply to `messages`: its pieces if `stream`, else the complete reply.

        The reply is a mapping too: `reply["text"]` (R1.40, R1.41).
        """
        sent_options = self._translate_options(options)
        request = ModelRequest(self.choice.model, system, tuple(messages), tools, options=sent_options)
        return self.stream(request) if stream else self._collect_reply(request)

    def _translate_options(self, options: Mapping[str, JsonValue]) -> tuple[tuple[str, JsonValue], ...]:
        supported = self.entry.options
        unknown = next((name for name in options if name not in supported), None)
        if unknown is not None:
            names = ", ".join(supported) or "none"
            raise TypeError(f"chat: {self.entry.label} does not take `{unknown}`; what it takes: {names}.")
        return tuple((supported[name], value) for name, value in options.items())

    async def _collect_reply(self, request: ModelRequest) -> Reply:
        reply: Reply | None = None
        async for event in self.stream(request):
            reply = event if isinstance(event, Reply) else reply
        assert reply is not None, "a stream ends with a Reply or raises"
        return reply

    async def inference(self, prompt: str, project_name: str = "") -> str:
        """Return the reply text for a single prompt (R0.4).

        Usage is summed by `project_name`, which also groups the calls of a project (C0.18).
        """
        message = UserMessage(text=prompt)
        request = ModelRequest(
            model=self.choice.model,
            system="",
            messages=(message,),
            session=project_name and f"project:{project_name}",
        )
        reply = await self._collect_reply(request)
        self.used(project_name, reply.usage)
        return reply.message.text

    async def count_tokens(self, what: str | Sequence[Message] | ModelRequest) -> int:
        """Return the tokens of a text, of messages, or of a request (R1.42).

        The service counts them if it has an endpoint for that; otherwise they are estimated.
        """
        if isinstance(what, str):
            return estimate(what, self.choice.model)
        if isinstance(what, ModelRequest):
            request = replace(what, model=self.choice.model)
        else:
            request = ModelRequest(model=self.choice.model, system="", messages=tuple(what))
        try:
            counted = await self.provider.count_tokens(request) if request.messages else None
        except LLMError:
            counted = None
        if counted is not None:
            return counted
        return estimate_request(request) if isinstance(what, ModelRequest) else estimate_messages(what)

    @staticmethod
    def normalize_model_name(name: str) -> str:
        """Return the maker's spelling of a model name (R1.43)."""
        return normalize_model_name(name)


DEFAULT_OUTPUT_TOKENS = 16_384
"""Output tokens to assume if neither the model's limit nor its context window is known."""
ESTIMATE_MARGIN = 1.1
"""Safety factor for estimated prompt tokens."""


def quote_call(request: ModelRequest, prices: dict[str, Price], context: int) -> Quote:
    """Return the worst-case quote of `request` for its model.

    `prices` come from the settings; `context` is the context window in tokens.
    """
    prompt = int(estimate_request(request) * ESTIMATE_MARGIN) + 1
    entry = find_model(request.model)
    max_output = entry.max_output if entry is not None else 0
    room = max(context - prompt, 0) if context else 0
    output = request.max_output or min((n for n in (max_output, room) if n), default=DEFAULT_OUTPUT_TOKENS)
    return Quote(prompt, output, *_price_call(request.model, prompt, prices))


def _price_call(model: str, prompt: int, prices: dict[str, Price]) -> tuple[float | None, float | None]:
    """Return the USD of the prompt and the USD of one output token; None for both if unknown."""
    entry = find_model(model)
    cache_writes = prompt if entry is not None and entry.provider == "anthropic" else 0
    prompt_cost = compute_cost(Usage(prompt_tokens=prompt), model, prices, cache_writes=cache_writes)
    total_cost = compute_cost(
        Usage(prompt_tokens=prompt, completion_tokens=1_000_000), model, prices, cache_writes=cache_writes
    )
    if prompt_cost is None or total_cost is None:
        return None, None
    return prompt_cost, (total_cost - prompt_cost) / 1_000_000
