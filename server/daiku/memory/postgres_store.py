"""Memories in PostgreSQL: vectors by pgvector, or by an SQL function if it is missing; words by BM25."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from daiku.domain.errors import DaikuError
from daiku.memory.rules.nearest import Candidate, Ranked, settle, widen
from daiku.memory.rules.terms import VERSION, choose_terms, limit_terms, split_terms
from daiku.memory.rules.vectors import Vector
from daiku.memory.store import Embedded, MemoryEntry, Scope, UnembeddedRow
from daiku.store.postgres import AsyncPostgres

LOCK = 0x6461696B75
"""Key of the advisory lock for creating the tables."""
SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS daiku",
    """CREATE TABLE IF NOT EXISTS daiku.memories (
        number bigserial PRIMARY KEY,
        id text NOT NULL UNIQUE,
        owner text NOT NULL, workspace text NOT NULL,
        session text NOT NULL, origin text NOT NULL, time text NOT NULL, text text NOT NULL,
        embedder text NOT NULL, vector real[], terms text[] NOT NULL, version integer NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS memories_by_embedder ON daiku.memories (owner, workspace, embedder, number)",
    "CREATE INDEX IF NOT EXISTS memories_by_term ON daiku.memories USING gin (terms)",
    """CREATE OR REPLACE FUNCTION daiku.cos_sim(one real[], other real[]) RETURNS double precision
        LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT sum(a::float8 * b) / sqrt(sum(a::float8 * a) * sum(b::float8 * b)) FROM unnest(one, other) AS t(a, b) $$""",
)
HAS_VECTOR = "SELECT count(*) FROM pg_extension WHERE extname = 'vector'"
PLAIN_SCORE = "daiku.cos_sim(vector, %(asked)s::real[])"
VECTOR_SCORE = "1 - (vector::vector <=> %(asked)s::real[]::vector)"
_BM25 = """
    WITH texts AS (SELECT count(*)::float8 AS n, avg(cardinality(terms))::float8 AS usual FROM daiku.memories),
    asked AS (SELECT term, count, GREATEST(ln((n - count + 0.5) / (count + 0.5)), 1e-6) AS weight
              FROM unnest(%(terms)s::text[], %(counts)s::float8[]) AS t(term, count), texts)
    SELECT m.number, sum(weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * cardinality(m.terms) / usual))) AS score
    FROM daiku.memories m, texts, asked,
         LATERAL (SELECT count(*)::float8 AS times FROM unnest(m.terms) AS t(term) WHERE t.term = asked.term) AS found
    WHERE m.owner = %(owner)s AND m.workspace = %(workspace)s AND m.terms && %(terms)s::text[] AND times > 0
    GROUP BY m.number ORDER BY score DESC, m.number LIMIT %(most)s"""
_ENTRY = "id, text, session, origin, time"
_SCOPE = "owner = %s AND workspace = %s"


class PostgresMemories:
    """A MemoryStore in the schema `daiku` of a PostgreSQL database. `plain`: do not use pgvector."""

    def __init__(self, url: str, *, plain: bool = False) -> None:
        self._db = AsyncPostgres(url)
        self._plain = plain
        self._prepared = False
        self._preparing = asyncio.Lock()
        self.has_vectors = False

    async def add(self, scope: Scope, entry: MemoryEntry, embedded: Embedded | None) -> str:
        await self._prepare()
        vector_columns = ("", None) if embedded is None else (embedded.key, list(embedded.vector))
        await self._db.query(
            "INSERT INTO daiku.memories (id, owner, workspace, session, origin, time, text, embedder, vector, terms,"
            " version) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::real[], %s, %s) ON CONFLICT (id) DO NOTHING",
            (
                *(entry.id, *scope, entry.session, entry.origin, entry.time, entry.text),
                *(*vector_columns, split_terms(entry.text), VERSION),
            ),
        )
        return entry.id

    async def nearest(self, scope: Scope, question: Embedded, most: int) -> list[Ranked]:
        await self._prepare()
        if not any(question.vector):
            return []
        score = VECTOR_SCORE if self.has_vectors else PLAIN_SCORE
        limit = most
        while True:
            limit = widen(most, limit)
            # R1.62: SELECT id, cos_sim(…) ORDER BY 2 DESC LIMIT k
            rows = await self._db.query(
                f"SELECT number, {score}, vector FROM daiku.memories WHERE owner = %(owner)s"  # noqa: S608  # constants
                " AND workspace = %(workspace)s AND embedder = %(key)s AND 0 <> ANY(vector)"
                " ORDER BY 2 DESC, number LIMIT %(limit)s",
                {
                    "asked": list(question.vector), "owner": scope.user, "workspace": scope.workspace,
                    "key": question.key, "limit": limit,
                },
            )  # fmt: skip
            candidates = [Candidate(number, cosine, _to_vector(vector)) for number, cosine, vector in rows]
            result = settle(question.vector, candidates, most, complete=len(rows) < limit)
            if result is not None:
                return result

    async def by_words(self, scope: Scope, question: str, most: int) -> list[Ranked]:
        await self._prepare()
        rows = await self._db.query(
            "SELECT term, (SELECT count(*) FROM daiku.memories WHERE terms @> ARRAY[term]) FROM unnest(%s::text[]) AS t(term)",
            (choose_terms(split_terms(question)),),
        )
        counts: dict[str, int] = {row[0]: row[1] for row in rows}
        chosen = limit_terms(counts)
        if not chosen:
            return []
        scored = await self._db.query(
            _BM25,
            {
                "terms": chosen, "counts": [float(counts[term]) for term in chosen], "owner": scope.user,
                "workspace": scope.workspace, "most": most,
            },
        )  # fmt: skip
        return [Ranked(number, score) for number, score in scored]

    async def read(self, numbers: Sequence[int]) -> dict[int, MemoryEntry]:
        await self._prepare()
        rows = await self._db.query(
            f"SELECT number, {_ENTRY} FROM daiku.memories WHERE number = ANY(%s)",  # noqa: S608  # constants
            (list(numbers),),
        )
        return {row[0]: MemoryEntry(*row[1:]) for row in rows}

    async def list(self, scope: Scope, most: int) -> list[MemoryEntry]:
        await self._prepare()
        rows = await self._db.query(
            f"SELECT {_ENTRY} FROM daiku.memories WHERE {_SCOPE} ORDER BY number DESC LIMIT %s",  # noqa: S608  # constants
            (*scope, most),
        )
        return [MemoryEntry(*row) for row in rows]

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return await self._remove(f"{_SCOPE} AND id = %s", (*scope, memory_id)) > 0

    async def forget_all(self, scope: Scope) -> int:
        return await self._remove(_SCOPE, scope)

    async def list_unembedded(self, scope: Scope, embedder: str, most: int) -> list[UnembeddedRow]:
        await self._prepare()
        rows = await self._db.query(
            f"SELECT number, text FROM daiku.memories WHERE {_SCOPE} AND embedder <> %s ORDER BY number LIMIT %s",  # noqa: S608  # constants
            (*scope, embedder, most),
        )
        return [UnembeddedRow(*row) for row in rows]

    async def set_vectors(self, vectors: Sequence[tuple[int, Embedded]]) -> None:
        await self._prepare()
        await self._db.write_all(
            "UPDATE daiku.memories SET embedder = %s, vector = %s::real[] WHERE number = %s",
            [(embedded.key, list(embedded.vector), number) for number, embedded in vectors],
        )

    async def aclose(self) -> None:
        await self._db.aclose()

    async def _remove(self, where: str, values: Sequence[Any]) -> int:
        await self._prepare()
        return len(await self._db.query(f"DELETE FROM daiku.memories WHERE {where} RETURNING id", values))  # noqa: S608  # constants

    async def _prepare(self) -> None:
        """Create missing tables, and detect pgvector; once."""
        async with self._preparing:
            if self._prepared:
                return
            if not self._plain:
                with suppress(DaikuError):  # not installed, or no permission: continue without it
                    if not (await self._db.query(HAS_VECTOR))[0][0]:
                        await self._db.query("CREATE EXTENSION IF NOT EXISTS vector")
            async with self._db.transaction():
                await self._db.query("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                for statement in SCHEMA:
                    await self._db.query(statement)
            self.has_vectors = not self._plain and bool((await self._db.query(HAS_VECTOR))[0][0])
            await self._update_terms()
            self._prepared = True

    async def _update_terms(self) -> None:
        """Recompute the terms of rows that another version of `terms` computed."""
        rows = await self._db.query("SELECT number, text FROM daiku.memories WHERE version <> %s", (VERSION,))
        if rows:
            await self._db.write_all(
                "UPDATE daiku.memories SET terms = %s, version = %s WHERE number = %s",
                [(split_terms(row[1]), VERSION, row[0]) for row in rows],
            )


def _to_vector(vector: Sequence[float]) -> Vector:
    return tuple([int(part) for part in vector])
