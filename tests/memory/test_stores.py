"""One suite for every store of memories: SQLite, PostgreSQL with pgvector and without."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from daiku.memory.postgres_store import PostgresMemories
from daiku.memory.rules.hashed import hash_vector
from daiku.memory.rules.nearest import Ranked, take_best
from daiku.memory.rules.vectors import Vector, cosine, to_integers
from daiku.memory.sqlite_store import SqliteMemories
from daiku.memory.store import Embedded, MemoryEntry, MemoryStore, Scope, search_hybrid

MINE = Scope("kenji", "/project")


def words(said: str) -> Embedded:
    return Embedded("words", hash_vector(said))


async def keep(store: MemoryStore, *texts: str, scope: Scope = MINE) -> list[str]:
    return [
        await store.add(scope, MemoryEntry(f"mem_{scope.user}_{at}_{len(said)}", said, time="t"), words(said))
        for at, said in enumerate(texts)
    ]


async def found(store: MemoryStore, ranked: list[Ranked]) -> list[str]:
    entries = await store.read([each.number for each in ranked])
    return [entries[each.number].text for each in ranked]


async def test_what_was_added_is_read_listed_and_forgotten(store: MemoryStore) -> None:
    ids = await keep(store, "tabs, not spaces", "deploy on Fridays")
    assert [each.text for each in await store.list(MINE, 10)] == ["deploy on Fridays", "tabs, not spaces"]
    assert await store.forget(MINE, ids[0])
    assert not await store.forget(MINE, ids[0])
    assert [each.id for each in await store.list(MINE, 10)] == [ids[1]]
    assert await store.forget_all(MINE) == 1
    assert await store.list(MINE, 10) == []
    assert await store.by_words(MINE, "deploy", 5) == []


async def test_the_same_text_is_kept_once(store: MemoryStore) -> None:
    first, second = await keep(store, "use uv"), await keep(store, "use uv")
    assert first == second
    assert len(await store.list(MINE, 10)) == 1


async def test_nobody_finds_lists_or_forgets_what_is_anothers(store: MemoryStore) -> None:
    """R1.93: memories are kept by user and workspace."""
    (kept,) = await keep(store, "the code of the door is 1234")
    for other in (Scope("yuki", "/project"), Scope("kenji", "/elsewhere"), Scope()):
        question = "code of the door"
        assert await store.nearest(other, words(question), 5) == []
        assert await store.by_words(other, question, 5) == []
        assert await store.list(other, 5) == []
        assert not await store.forget(other, kept)
        assert await store.forget_all(other) == 0
    assert len(await store.list(MINE, 5)) == 1


async def test_vectors_of_two_embedders_or_dimensions_are_never_compared(store: MemoryStore) -> None:
    vector: Vector = to_integers([1.0, 2.0, 3.0])
    await store.add(MINE, MemoryEntry("a", "one", time="t"), Embedded("first", vector))
    await store.add(MINE, MemoryEntry("b", "two", time="t"), Embedded("second", vector))
    await store.add(MINE, MemoryEntry("c", "three", time="t"), Embedded("first", to_integers([1.0, 2.0])))
    await store.add(MINE, MemoryEntry("d", "four", time="t"), None)
    ranked = await store.nearest(MINE, Embedded("first", vector), 10)
    assert await found(store, ranked) == ["one"]
    waiting = await store.list_unembedded(MINE, "first:3", 10)
    assert [row.text for row in waiting] == ["two", "three", "four"]
    await store.set_vectors([(row.number, Embedded("first", vector)) for row in waiting])
    assert await store.list_unembedded(MINE, "first:3", 10) == []
    again = await store.nearest(MINE, Embedded("first", vector), 10)
    assert await found(store, again) == ["one", "two", "three", "four"]


async def test_a_search_of_vectors_is_exact_whatever_the_order_of_adding(store: MemoryStore) -> None:
    """R1.62: the k nearest, the best first, also on PostgreSQL without pgvector."""
    vectors = {f"text {at}": to_integers([100.0 - at, at + 0.5, 3.0]) for at in range(100)}
    for said, vector in vectors.items():
        await store.add(MINE, MemoryEntry(said, said, time="t"), Embedded("e", vector))
    question = to_integers([1.0, 5.0, 0.0])
    right = sorted(vectors, key=lambda said: -cosine(question, vectors[said]))[:9]
    assert await found(store, await store.nearest(MINE, Embedded("e", question), 9)) == right


async def test_a_vector_without_direction_is_near_to_nothing(store: MemoryStore) -> None:
    await keep(store, "…", "real words")
    assert await store.nearest(MINE, words("!?"), 5) == []
    assert await found(store, await store.nearest(MINE, words("real words"), 5)) == ["real words"]


async def test_equals_are_in_the_order_in_which_they_were_added(store: MemoryStore) -> None:
    vector = to_integers([3.0, 4.0])
    for at in range(200):
        await store.add(MINE, MemoryEntry(f"m{at}", f"text {at}", time="t"), Embedded("e", vector))
    ranked = await store.nearest(MINE, Embedded("e", to_integers([4.0, 3.0])), 7)
    assert await found(store, ranked) == [f"text {at}" for at in range(7)]


async def test_words_of_identifiers_and_of_japanese_are_found(store: MemoryStore) -> None:
    await keep(store, "call parseJsonFile first", "データベースの接続はプールを使う", "nothing of the kind")
    assert await found(store, await store.by_words(MINE, "json", 1)) == ["call parseJsonFile first"]
    assert await found(store, await store.by_words(MINE, "接続プール", 1)) == [
        "データベースの接続はプールを使う"
    ]
    assert await store.by_words(MINE, "…", 5) == []


async def test_a_search_by_both_puts_first_what_is_good_on_both(store: MemoryStore) -> None:
    """X.10, X.18: search by words and vectors."""
    texts = [*(f"note {at} about deployment" for at in range(20)), "rollback of a deployment with kubectl"]
    await keep(store, *texts)
    question = "how to rollback with kubectl"
    ranked = await search_hybrid(store, MINE, question, words(question), 3)
    assert (await found(store, ranked))[0] == texts[-1]
    assert ranked[0].score == 1.0
    assert (await search_hybrid(store, MINE, question, None, 3))[0].number == ranked[0].number


ENGLISH = str.split(
    "database connection pool timeout retry policy deploy staging production rollback kubectl config yaml parser token"
    " budget journal replay session cursor editor buffer encoding migration schema index vector search memory cache"
    " release branch commit review linter formatter tabs spaces imports typing test fixture snapshot coverage"
)
JAPANESE = str.split(
    "データベース 接続 設定 再試行 方針 本番 環境 配備 取り消し 構文 解析 予算 記録 再生 編集 符号化 移行 索引 検索 記憶"
    " 分岐 確認 整形 字下げ 空白 型 試験 断面 網羅率 東京 大阪 担当者 期限 会議 木曜日 手順 依存関係 例外 処理"
)


def sentences(count: int) -> list[str]:
    """Texts in English and Japanese, by turns, no two alike."""
    chance = random.Random(20261123)
    made: dict[str, None] = {}
    while len(made) < count:
        if len(made) % 2:
            made["".join(chance.choices(JAPANESE, k=chance.randint(2, 9))) + "を使う。"] = None
        else:
            made[" ".join(chance.choices(ENGLISH, k=chance.randint(3, 14)))] = None
    return list(made)


@pytest.mark.slow(seconds=45)
async def test_all_stores_give_the_same_order_of_ten_thousand_texts(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """R1.16, R1.62, C1.11: with and without extensions, on SQLite and PostgreSQL."""
    texts = sentences(10_000)
    vectors = [words(said) for said in texts]
    questions = [
        *sentences(10_400)[-20:],
        "how long is the timeout of the connection pool?",
        "配備を取り消す手順",
    ]
    expected = [
        [
            texts[each.number]
            for each in take_best(
                (Ranked(at, cosine(words(asked).vector, made.vector)) for at, made in enumerate(vectors)), 20
            )
        ]
        for asked in questions
    ]
    by_words: dict[str, list[list[str]]] = {}
    url = request.getfixturevalue("postgres")()
    stores = {
        "sqlite": SqliteMemories(tmp_path / "memory.db"),
        "pgvector": PostgresMemories(url),
        "postgresql": PostgresMemories(url, plain=True),  # on the rows that the one before has added
    }
    for kind, store in stores.items():
        for at, (said, made) in enumerate(zip(texts, vectors, strict=True)):
            if kind != "postgresql":
                await store.add(MINE, MemoryEntry(f"m{at}", said, time="t"), made)
        # A function of ours takes seconds for what an extension does in milliseconds.
        pairs = list(zip(questions, expected, strict=True))
        for asked, right in pairs[-5:] if kind == "postgresql" else pairs:
            assert await found(store, await store.nearest(MINE, words(asked), 20)) == right, (kind, asked)
        by_words[kind] = [await found(store, await store.by_words(MINE, asked, 5)) for asked in questions]
        await store.aclose()
    assert by_words["pgvector"] == by_words["postgresql"]
    alike = [
        set(one) & set(other) for one, other in zip(by_words["sqlite"], by_words["pgvector"], strict=True)
    ]
    assert sum(map(len, alike)) >= 0.9 * sum(map(len, by_words["sqlite"]))
