"""Generator and its parts, named as in seed 3: `chat_model`, `prompt_builder`, `generator_agent`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.held import Lesson
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery
from daiku.guard.rules.redact import Redactor
from daiku.models.model import Models
from daiku.models.table import LLMSettings
from daiku.playbook.generate import (
    PROMPTS_DIR,
    GeneratorAgent,
    Invokes,
    LoadsPlaybook,
    PromptBuilder,
    Searches,
)
from daiku.playbook.playbooks import Playbooks
from daiku.prompts import Prompts
from daiku.run.services import RunServices
from daiku.settings import secrets_of
from daiku.settings.config import Config


@dataclass(frozen=True, slots=True)
class ChatModel:
    """The configured model. Each call has its own connection, so that any event loop can use it."""

    llm: LLMSettings
    name: str = ""

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
        """Return the reply to `prompt`. Raises LLMError, UsageError."""
        models = Models(self.llm)
        try:
            return await models.resolve(self.name).inference(prompt)
        finally:
            await models.aclose()


@dataclass(frozen=True, slots=True)
class GeneratorPlaybooks:
    """The playbooks of an app for a Generator; None if none is read."""

    playbooks: Playbooks | None

    def load(self) -> Playbook:
        return Playbook() if self.playbooks is None else self.playbooks.load()

    def search(self, query: SearchQuery, playbook: Playbook) -> Sequence[BulletHit]:
        """Return the best bullets, by the indexes of the stored playbooks."""
        return () if self.playbooks is None or not playbook.bullets else self.playbooks.hits(query)

    def lessons(self, retrieved: Sequence[Bullet]) -> tuple[Lesson, ...]:
        """Return these bullets as lessons of a run."""
        if self.playbooks is None:
            return ()
        versions = self.playbooks.versions([each.id for each in retrieved])
        return tuple(
            Lesson(id=each.id, version=versions.get(each.id, 1), text=each.content) for each in retrieved
        )


class GeneratorFactory:
    """Creates Generators (R3.23–R3.25): the model and the prompts once, the agent on each call.

    Settings are attributes: `config.llm.provider`. In the seed's container, of the library
    dependency_injector, this name is taken, and only `config.llm["provider"]` reaches the setting (R3.44).
    """

    def __init__(
        self,
        config: Config,
        playbook_store: LoadsPlaybook,
        hybrid_search: Searches,
        *,
        prompts_dir: str | Path = PROMPTS_DIR,
        prompts: Prompts | None = None,
        language: str = "en",
    ) -> None:
        self.config = config
        self._store = playbook_store
        self._search = hybrid_search
        self._prompts_dir = prompts_dir
        self._prompts = prompts
        self._language = language

    @cached_property
    def chat_model(self) -> Invokes:
        """The default model client."""
        return ChatModel(self.config.llm, self.config.agents.model_of("generator"))

    @cached_property
    def prompt_builder(self) -> PromptBuilder:
        return PromptBuilder(self._prompts_dir, self._own_template)

    def generator_agent(self, llm_client: Invokes | None = None) -> GeneratorAgent:
        """Return a new Generator; `llm_client` replaces `chat_model`."""
        return GeneratorAgent(
            playbook_store=self._store,
            hybrid_search=self._search,
            llm_client=self.chat_model if llm_client is None else llm_client,
            prompt_builder=self.prompt_builder,
            settings=self.config.playbook,
            language=self._language,
            redact=self._redact,
        )

    def _own_template(self, dataset: str) -> str | None:
        """Return the workspace's template, `.daiku/prompts/generator/<dataset>.txt`, if it may have some."""
        source = None if self._prompts is None else self._prompts.find_source(f"generator/{dataset}")
        return source.text if source is not None and source.literal else None

    def _redact(self, message: str) -> str:
        return Redactor(secrets_of(self.config, os.environ))(message)


def get_playbooks(services: RunServices) -> GeneratorPlaybooks:
    """Return the playbooks of the workspace and the user, as runs use them."""
    playbooks = services.playbooks
    return GeneratorPlaybooks(playbooks if isinstance(playbooks, Playbooks) else None)


def build_generators(services: RunServices, playbooks: GeneratorPlaybooks, language: str) -> GeneratorFactory:
    """Return a factory of Generators that read `playbooks`, and the templates of a trusted workspace."""
    return GeneratorFactory(
        services.config, playbooks, playbooks, prompts=services.prompts, language=language
    )
