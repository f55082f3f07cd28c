"""Memories in PostgreSQL: vectors by pgvector, or by a function of our own where it is missing; words by BM25."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from daiku.domain.errors import DaikuError
from daiku.memory.rules.fuse import asked_terms, terms_worth
from daiku.memory.rules.nearest import Ranked
from daiku.memory.rules.settle import Candidate, settled, wider
from daiku.memory.rules.terms import VERSION, terms
from daiku.memory.rules.vectors import Vector
from daiku.memory.store import Embedded, Entry, Scope, Waiting
from daiku.store.async_postgres import AsyncPostgres

LOCK = 0x6461696B75
"""Held while the tables are made: several processes may start at once."""
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
    """A MemoryStore in the schema `daiku` of a PostgreSQL database; `plain`: without pgvector."""

    def __init__(self, url: str, *, plain: bool = False) -> None:
        self._db = AsyncPostgres(url)
        self._plain = plain
        self._prepared = False
        self._preparing = asyncio.Lock()
        self.has_vectors = False

    async def add(self, scope: Scope, entry: Entry, embedded: Embedded | None) -> str:
        await self._prepare()
        made = ("", None) if embedded is None else (embedded.key, list(embedded.vector))
        await self._db.query(
            "INSERT INTO daiku.memories (id, owner, workspace, session, origin, time, text, embedder, vector, terms,"
            " version) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::real[], %s, %s) ON CONFLICT (id) DO NOTHING",
            (
                *(entry.id, *scope, entry.session, entry.origin, entry.time, entry.text),
                *(*made, terms(entry.text), VERSION),
            ),
        )
        return entry.id

    async def nearest(self, scope: Scope, question: Embedded, most: int) -> list[Ranked]:
        await self._prepare()
        if not any(question.vector):
            return []
        score = VECTOR_SCORE if self.has_vectors else PLAIN_SCORE
        taken = most
        while True:
            taken = wider(most, taken)
            # R1.62: SELECT id, cos_sim(…) ORDER BY 2 DESC LIMIT k
            rows = await self._db.query(
                f"SELECT number, {score}, vector FROM daiku.memories WHERE owner = %(owner)s"  # noqa: S608  # constants
                " AND workspace = %(workspace)s AND embedder = %(key)s AND 0 <> ANY(vector)"
                " ORDER BY 2 DESC, number LIMIT %(taken)s",
                {
                    "asked": list(question.vector), "owner": scope.user, "workspace": scope.workspace,
                    "key": question.key, "taken": taken,
                },
            )  # fmt: skip
            candidates = [Candidate(number, found, _whole(vector)) for number, found, vector in rows]
            found = settled(question.vector, candidates, most, complete=len(rows) < taken)
            if found is not None:
                return found

    async def by_words(self, scope: Scope, question: str, most: int) -> list[Ranked]:
        await self._prepare()
        rows = await self._db.query(
            "SELECT term, (SELECT count(*) FROM daiku.memories WHERE terms @> ARRAY[term]) FROM unnest(%s::text[]) AS t(term)",
            (asked_terms(terms(question)),),
        )
        counts: dict[str, int] = {row[0]: row[1] for row in rows}
        chosen = terms_worth(counts)
        if not chosen:
            return []
        found = await self._db.query(
            _BM25,
            {
                "terms": chosen, "counts": [float(counts[term]) for term in chosen], "owner": scope.user,
                "workspace": scope.workspace, "most": most,
            },
        )  # fmt: skip
        return [Ranked(number, score) for number, score in found]

    async def read(self, numbers: Sequence[int]) -> dict[int, Entry]:
        await self._prepare()
        rows = await self._db.query(
            f"SELECT number, {_ENTRY} FROM daiku.memories WHERE number = ANY(%s)",  # noqa: S608  # constants
            (list(numbers),),
        )
        return {row[0]: Entry(*row[1:]) for row in rows}

    async def list(self, scope: Scope, most: int) -> list[Entry]:
        await self._prepare()
        rows = await self._db.query(
            f"SELECT {_ENTRY} FROM daiku.memories WHERE {_SCOPE} ORDER BY number DESC LIMIT %s",  # noqa: S608  # constants
            (*scope, most),
        )
        return [Entry(*row) for row in rows]

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return await self._remove(f"{_SCOPE} AND id = %s", (*scope, memory_id)) > 0

    async def forget_all(self, scope: Scope) -> int:
        return await self._remove(_SCOPE, scope)

    async def waiting(self, scope: Scope, embedder: str, most: int) -> list[Waiting]:
        await self._prepare()
        rows = await self._db.query(
            f"SELECT number, text FROM daiku.memories WHERE {_SCOPE} AND embedder <> %s ORDER BY number LIMIT %s",  # noqa: S608  # constants
            (*scope, embedder, most),
        )
        return [Waiting(*row) for row in rows]

    async def embed(self, made: Sequence[tuple[int, Embedded]]) -> None:
        await self._prepare()
        await self._db.write_all(
            "UPDATE daiku.memories SET embedder = %s, vector = %s::real[] WHERE number = %s",
            [(embedded.key, list(embedded.vector), number) for number, embedded in made],
        )

    async def aclose(self) -> None:
        await self._db.aclose()

    async def _remove(self, where: str, values: Sequence[Any]) -> int:
        await self._prepare()
        return len(await self._db.query(f"DELETE FROM daiku.memories WHERE {where} RETURNING id", values))  # noqa: S608  # constants

    async def _prepare(self) -> None:
        """Make the tables that are missing, and see whether pgvector is there; once."""
        async with self._preparing:
            if self._prepared:
                return
            if not self._plain:
                with suppress(DaikuError):  # not installed on the server, or not ours to add: we do without
                    if not (await self._db.query(HAS_VECTOR))[0][0]:
                        await self._db.query("CREATE EXTENSION IF NOT EXISTS vector")
            async with self._db.transaction():
                await self._db.query("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                for statement in SCHEMA:
                    await self._db.query(statement)
            self.has_vectors = not self._plain and bool((await self._db.query(HAS_VECTOR))[0][0])
            await self._bring_terms_up_to_date()
            self._prepared = True

    async def _bring_terms_up_to_date(self) -> None:
        """Make the terms of rows anew that another version of `terms` made."""
        rows = await self._db.query("SELECT number, text FROM daiku.memories WHERE version <> %s", (VERSION,))
        if rows:
            await self._db.write_all(
                "UPDATE daiku.memories SET terms = %s, version = %s WHERE number = %s",
                [(terms(row[1]), VERSION, row[0]) for row in rows],
            )


def _whole(vector: Sequence[float]) -> Vector:
    return tuple([int(part) for part in vector])
