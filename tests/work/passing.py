"""Time that passes for a PostgreSQL database and nobody has to wait for."""

from __future__ import annotations

from daiku.store.postgres import PostgresDatabase


def let_time_pass(url: str) -> None:
    """Half a minute for the database: workers that do not beat are gone, leases have run out."""
    database = PostgresDatabase(url)
    try:
        database.write("UPDATE work_workers SET beaten = beaten - 30")
        database.write("UPDATE leases SET expires = 1")
    finally:
        database.close()
