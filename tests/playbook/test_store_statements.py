"""What the statements of a playbook's store look through: never a whole playbook where one bullet, run or change is asked for."""

from __future__ import annotations

import re

import pytest

from daiku.playbook import tables
from daiku.store.opening import open_tables

WHOLE = ("BULLETS", "DELTAS", "OBSERVATIONS", "UNAPPLIED")
"""These give all that there is of something."""
STATEMENTS = {
    name: sql
    for name, sql in vars(tables).items()
    if isinstance(sql, str) and re.match("SELECT|UPDATE|DELETE|WITH", sql) and name[0] != "_"
} | {"bullets_query": tables.build_bullets_query(2)}


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WHOLE))
def test_a_statement_finds_what_it_is_about_by_an_index(name: str) -> None:
    """So a change costs as much in a playbook of 100,000 bullets as in one of 100."""
    database = open_tables(None, tables.SCHEMA)
    sql = STATEMENTS[name]
    plan = [row[3] for row in database.query(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?"))]
    steps = [step for step in plan if re.search(r"\bplaybook_\w+|\bplaybooks\b|PRIMARY KEY", step)]
    assert steps
    for step in steps:
        assert not step.startswith("SCAN"), step
        assert step.count("=?") + step.count(">?") > 1, step
    database.close()
