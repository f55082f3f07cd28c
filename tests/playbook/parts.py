"""Small real parts of a Generator that need no database: a kept playbook, a search by shared words, a scripted model."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.dataclass import dataclass, field
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery, confidence
from daiku.playbook.generate import GeneratorAgent, PromptBuilder


def bullet(number: int, content: str, *, slug: str = "pc", helpful: int = 0, harmful: int = 0) -> Bullet:
    return Bullet(
        id=f"{slug}-{number:05}",
        section="project_conventions",
        content=content,
        helpful=helpful,
        harmful=harmful,
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """A playbook that is in memory."""

    bullets: Sequence[Bullet] = ()

    def load(self) -> Playbook:
        return Playbook(bullets=tuple(self.bullets))


@dataclass(slots=True)
class WordSearch:
    """Finds bullets by the share of the query's words that they hold; `asked` is what it was asked."""

    asked: list[tuple[SearchQuery, Playbook]] = field(default_factory=list[tuple[SearchQuery, Playbook]])

    def search(self, query: SearchQuery, playbook: Playbook) -> list[BulletHit]:
        self.asked.append((query, playbook))
        words = set(query.query_text.lower().split())
        hits = [
            BulletHit(
                bullet=each,
                vector_score=score,
                bm25_score=score,
                combined_score=score,
                resting=confidence(each) < query.min_confidence,
            )
            for each in playbook.bullets
            if (score := len(words & set(each.content.lower().split())) / max(len(words), 1))
        ]
        return sorted(hits, key=lambda hit: -hit.combined_score)[: query.top_k]


@dataclass(slots=True)
class ScriptedClient:
    """A model that says `reply`; `prompts` is what it was asked, `retrieved` the ids that came along."""

    reply: str = "Done."
    prompts: list[str] = field(default_factory=list[str])
    retrieved: list[list[str]] = field(default_factory=list[list[str]])

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str:
        self.prompts.append(prompt)
        self.retrieved.append([each.id for each in retrieved])
        return self.reply


def generator(bullets: Sequence[Bullet] = (), reply: str = "Done.") -> tuple[GeneratorAgent, ScriptedClient]:
    """A Generator of small parts, and the model that it asks."""
    client = ScriptedClient(reply)
    return GeneratorAgent(Kept(bullets), WordSearch(), client, PromptBuilder()), client
