"""The Generator and its parts, made as seed 3's container names them: `chat_model`, `prompt_builder`, `generator_agent`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from daiku.app import App
from daiku.dataclass import dataclass
from daiku.domain.held import Lesson
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery
from daiku.guard.rules.redact import Redactor
from daiku.models.model import Models
from daiku.models.table import LLMSettings
from daiku.playbook.generate import GeneratorAgent, Invokes, LoadsPlaybook, Searches
from daiku.playbook.playbooks import Playbooks
from daiku.playbook.templates import PROMPTS_DIR, PromptBuilder
from daiku.prompts import Prompts
from daiku.settings import secrets_of
from daiku.settings.config import Config


@dataclass(frozen=True, slots=True)
class ChatModel:
    """The model of the settings, asked one thing at a time. Each call has a connection of its own, so that it can be asked
    from any event loop."""

    llm: LLMSettings
    name: str = ""

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
        """The reply to `prompt`. Raises LLMError, UsageError."""
        models = Models(self.llm)
        try:
            return await models.resolve(self.name).inference(prompt)
        finally:
            await models.aclose()


@dataclass(frozen=True, slots=True)
class KeptPlaybooks:
    """The playbooks of an app as a Generator reads them; None where none is to be read."""

    playbooks: Playbooks | None

    def load(self) -> Playbook:
        return Playbook() if self.playbooks is None else self.playbooks.load()

    def search(self, query: SearchQuery, playbook: Playbook) -> Sequence[BulletHit]:
        """What fits best of what was just loaded, by the indexes of those that keep it: they are not made anew."""
        return () if self.playbooks is None or not playbook.bullets else self.playbooks.hits(query)

    def lessons(self, retrieved: Sequence[Bullet]) -> tuple[Lesson, ...]:
        """These bullets as a run is told them."""
        if self.playbooks is None:
            return ()
        versions = self.playbooks.versions([each.id for each in retrieved])
        return tuple(
            Lesson(id=each.id, version=versions.get(each.id, 1), text=each.content) for each in retrieved
        )


class GeneratorFactory:
    """Makes Generators (R3.23–R3.25): the model and the prompts once, an agent each time it is asked for one.

    Settings are attributes here: `config.llm.provider` is what it says. In the container of the seed, of the library
    dependency_injector, this name is taken, and only `config.llm["provider"]` reaches the setting (R3.44)."""

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
        """What is asked where nothing else is given."""
        return ChatModel(self.config.llm, self.config.agents.model_of("generator"))

    @cached_property
    def prompt_builder(self) -> PromptBuilder:
        return PromptBuilder(self._prompts_dir, self._own_template)

    def generator_agent(self, llm_client: Invokes | None = None) -> GeneratorAgent:
        """A new Generator of these parts; `llm_client` is asked in place of `chat_model`."""
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
        """The workspace's own template, `.daiku/prompts/generator/<dataset>.txt`, where it may have some."""
        found = None if self._prompts is None else self._prompts.source(f"generator/{dataset}")
        return found.text if found is not None and found.literal else None

    def _redact(self, said: str) -> str:
        return Redactor(secrets_of(self.config, os.environ))(said)


def kept_playbooks(app: App) -> KeptPlaybooks:
    """Those of the app's workspace and of its person, as its runs are told of them."""
    found = app.runs.services.playbooks
    return KeptPlaybooks(found if isinstance(found, Playbooks) else None)


def generators_of(app: App, kept: KeptPlaybooks, language: str) -> GeneratorFactory:
    """Generators that read `kept`, and the workspace's own templates where the person trusts it."""
    return GeneratorFactory(app.config, kept, kept, prompts=app.runs.services.prompts, language=language)
