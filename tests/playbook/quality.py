"""How well a search finds what it should, on labelled pairs, and what are near duplicates.

`python -m tests.playbook.quality [PROVIDER/MODEL …]` prints the tables; a named model is sent the pairs. `DAIKU_TEST_EMBEDDER`
names one for the tests too. A server of one's own is reached as its provider's settings say, for example by
`LMSTUDIO_BASE_URL=http://127.0.0.1:8080/v1` and `lmstudio/all-minilm-l6-v2`."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from daiku.domain.playbook import Bullet, Playbook, SearchQuery
from daiku.memory.rules.hashed import hash_vector
from daiku.memory.rules.terms import split_terms
from daiku.memory.rules.vectors import Vector, cosine, to_integers
from daiku.models.embed import Embedder, HashedWords, open_embedder
from daiku.playbook.rules.similar import LIMIT, have_different_words
from daiku.playbook.search import PlaybookSearch
from daiku.settings import from_mapping
from daiku.texts.text import Text, text

FIXTURES = Path(__file__).parents[1] / "fixtures" / "playbook"
LESSONS, DUPLICATES = FIXTURES / "lessons.json", FIXTURES / "duplicates.json"
STRANGERS = FIXTURES / "strangers.json"
HALVES: Mapping[str, float] = {"words": 0.0, "vectors": 1.0, "hybrid": 0.5}
ROUGHLY = 48
_MEANINGS = """
test tests spec specs jest pytest vitest テスト 試験
run execute command start 走ら 実行 命令
file files source ファイル
short abbreviations length size maximum lines 略語 短く 行数 三百五
exception exceptions errors raised failures
time date zone utc stored timestamps 日付 時刻 現地 時間
money price prices rounding decimal cents floats 金額 お金 端数 誤差 計算
lock package-lock step manifest json ロッ ック
saved save write drops data commit 書き 保存 消え 変更
column field database schema drop remove release 列を 消す
review reviewers refused reject patch pull pr 査読
format formatting whitespace 整形
network offline install dependencies packages vendored 通信 ネッ ット 依存 入れ
port address use listens ポー ート
case macos mac ignores insensitive
secrets credentials vault local 鍵は 金庫
cores workers parallel oversubscribes
html escape escapes sanitizing
large big payloads socket websocketgateway mb
flaky order 不安 安定 時々 落ち
name names identifiers variable 識別 名前 変数
utf 文字 化け コー ード
types type checking checker static 型検 検査
duplicate abstraction inline helper helpers copy
job enqueue background handlers
interpreter python packages uv
bundle built build extension
input keys waiting hangs tty
"""
"""Words and pairs of characters that mean something alike, a line for each meaning."""


class Judged(NamedTuple):
    """A question, what kind it is, and the lessons that answer it."""

    kind: str
    query: str
    relevant: frozenset[str]


class Stranger(NamedTuple):
    """A question that no lesson has to do with. `held_out`: written after the floor was set."""

    kind: str
    query: str
    held_out: bool


class Floor(NamedTuple):
    """What a floor does to questions of one kind: labelled lessons among the first ten without and with it, of how many;
    strangers' questions that are told nothing, of how many; and the pairs of them that are dropped."""

    found: int
    kept: int
    relevant: int
    silent: int
    strangers: int
    dropped: float


class Meanings:
    """Stands in for a model of a provider: it knows what words mean, and what is only a name it knows roughly, for its
    vectors have few places for that."""

    name = "test/meanings"
    unrelated = 0.3

    def __init__(self) -> None:
        lines = _MEANINGS.strip().splitlines()
        self._known = {word: at for at, line in enumerate(lines) for word in line.split()}
        self._size = len(lines)

    @property
    def describe(self) -> Text:
        return text("memory.matches_words")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(said) for said in texts]

    async def aclose(self) -> None:
        """Nothing is open."""

    def _vector(self, said: str) -> Vector:
        meant = [0.0] * self._size
        for place in {self._known[term] for term in split_terms(said) if term in self._known}:
            meant[place] = 1500.0
        spelt = hash_vector(said)
        rough = [float(sum(spelt[at::ROUGHLY])) for at in range(ROUGHLY)]
        return to_integers([*meant, *rough])


def judged() -> tuple[Playbook, list[Judged]]:
    """The lessons and the questions."""
    kept = json.loads(LESSONS.read_text(encoding="utf-8"))
    playbook = Playbook(bullets=tuple(Bullet.model_validate(each) for each in kept["lessons"]))
    return playbook, [Judged(q["kind"], q["query"], frozenset(q["relevant"])) for q in kept["queries"]]


def ndcg(found: Sequence[str], relevant: frozenset[str], most: int = 10) -> float:
    """How high the relevant ones stand among the first `most`: 1 where all are on top."""
    gained = sum(1 / math.log2(at + 2) for at, each in enumerate(found[:most]) if each in relevant)
    return gained / sum(1 / math.log2(at + 2) for at in range(min(len(relevant), most)))


def qualities(embedder: Embedder) -> dict[str, dict[str, float]]:
    """The mean nDCG@10 of words, vectors and both, for all questions and for each kind."""
    playbook, questions = judged()
    found: dict[str, dict[str, float]] = {}
    for half, alpha in HALVES.items():
        search, by_kind = PlaybookSearch(embedder, alpha=alpha), defaultdict[str, list[float]](list)
        for each in questions:
            hits = search.search(SearchQuery(query_text=each.query), playbook)
            worth = ndcg([hit.bullet.id for hit in hits], each.relevant)
            by_kind["all"].append(worth)
            by_kind[each.kind].append(worth)
        found[half] = {kind: mean(worths) for kind, worths in by_kind.items()}
    return found


def strangers() -> list[Stranger]:
    """Questions that have nothing to do with any lesson."""
    listed = json.loads(STRANGERS.read_text(encoding="utf-8"))
    return [Stranger(each["kind"], each["query"], each.get("held_out", False)) for each in listed]


def floors(embedder: Embedder) -> dict[str, Floor]:
    """What the floor keeps and drops, by kind of question."""
    playbook, questions = judged()
    search, unknown, most = PlaybookSearch(embedder), strangers(), len(playbook.bullets)
    counts = defaultdict[str, list[tuple[int, int, int]]](list)
    for each in questions:
        asked = SearchQuery(query_text=each.query)
        first = [
            {hit.bullet.id for hit in search.search(asked, playbook, related=on) if hit.combined_score > 0}
            for on in (False, True)
        ]  # a score of 0: it only fills the list
        without, within = (len(each.relevant & found) for found in first)
        counts[each.kind].append((without, within, len(each.relevant)))
    told = defaultdict[str, list[int]](list)
    for one in unknown:
        asked = SearchQuery(query_text=one.query, top_k=most)
        told[one.kind].append(len(search.search(asked, playbook, related=True)))
    return {
        kind: Floor(
            sum(found for found, _, _ in counts[kind]),
            sum(kept for _, kept, _ in counts[kind]),
            sum(relevant for _, _, relevant in counts[kind]),
            sum(not each for each in told[kind]),
            len(told[kind]),
            1 - sum(told[kind]) / (most * len(told[kind])) if told[kind] else 1.0,
        )
        for kind in counts
    }


def floor_table(embedder: Embedder) -> str:
    """What the floor of an embedder keeps and drops, as lines."""
    lines = [f"floor, {embedder.name}: labelled lessons in the first ten without and with it; strangers"]
    for kind, each in floors(embedder).items():
        lines.append(
            f"{kind:>10}  {each.found:3} {each.kept:3} of {each.relevant:3}"
            f"   told nothing {each.silent:2} of {each.strangers:2}, pairs dropped {each.dropped:.3f}"
        )
    return "\n".join(lines)


def ndcg_with_floor(embedder: Embedder) -> tuple[float, float]:
    """The mean nDCG@10 without and with the floor."""
    playbook, questions = judged()
    search = PlaybookSearch(embedder)
    without, within = (
        mean(
            ndcg([hit.bullet.id for hit in search.search(asked(each), playbook, related=on)], each.relevant)
            for each in questions
        )
        for on in (False, True)
    )
    return without, within


def asked(question: Judged) -> SearchQuery:
    return SearchQuery(query_text=question.query)


def table(embedder: Embedder) -> str:
    """The qualities of an embedder as lines."""
    found = qualities(embedder)
    kinds = list(found["hybrid"])
    lines = [f"nDCG@10, {embedder.name}: {'  '.join(f'{kind:>10}' for kind in kinds)}"]
    margin = len(lines[0].partition(":")[0]) + 1
    lines += [
        half.ljust(margin)
        + "  ".join(f" {each[kind]:9.3f}" if kind == "all" else f"{each[kind]:10.3f}" for kind in kinds)
        for half, each in found.items()
    ]
    return "\n".join(lines)


def likeness_table(embedder: Embedder) -> str:
    """What limits of an embedder's cosine take for near duplicates: of pairs that say the same, and of others."""
    pairs = json.loads(DUPLICATES.read_text(encoding="utf-8"))
    said = [pair[side] for pair in pairs for side in ("one", "other")]
    vectors = asyncio.run(_vectors(embedder, said))
    alike = [
        (
            pair["same"],
            cosine(vectors[2 * at], vectors[2 * at + 1]),
            have_different_words(pair["one"], pair["other"]),
        )
        for at, pair in enumerate(pairs)
    ]
    lines = [f"near duplicates, {embedder.name}, limit {LIMIT:.2f}", "from  same  others"]
    same = sum(is_same for is_same, _, _ in alike)
    for limit in (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95):
        taken = Counter(is_same for is_same, score, other in alike if score >= limit and not other)
        lines.append(f"{limit:.2f}  {taken[True]:2}/{same}  {taken[False]:3}/{len(alike) - same}")
    return "\n".join(lines)


async def _vectors(embedder: Embedder, said: Sequence[str]) -> list[Vector]:
    try:
        return await embedder.embed(said)
    finally:
        await embedder.aclose()


def named_embedder(name: str, environ: Mapping[str, str] = os.environ) -> Embedder:
    """The embedder of a provider as the product opens it, reached as the environment says. Raises DaikuError."""
    return open_embedder(name, from_mapping({}, environ).llm)


if __name__ == "__main__":
    for one in [named_embedder(name) for name in sys.argv[1:]] or (HashedWords(), Meanings()):
        sys.stdout.write(f"{table(one)}\n\n{floor_table(one)}\n\n{likeness_table(one)}\n\n")
