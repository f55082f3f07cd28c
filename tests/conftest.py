"""What every test gets: a home of its own, no keys, no network but this machine's, and the recorded corpora."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import EntryPoints
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import NewDatabase, postgres_server

ROOT = Path(__file__).resolve().parent.parent
CORPORA = Path(os.environ.get("DAIKU_CORPORA") or ROOT.parent / "shared" / "corpora")

PROVIDER_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "BRAVE_API_KEY",
    "COMPATIBLE_API_KEY",
    "GEMINI_API_KEY",
    "GEMINI_BASE_URL",
    "GITHUB_API_URL",
    "GITHUB_TOKEN",
    "GITLAB_API_URL",
    "GITLAB_TOKEN",
    "GOOGLE_API_KEY",
    "LMSTUDIO_BASE_URL",
    "OLLAMA_HOST",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "TAVILY_API_KEY",
    "TRACE_OTLP_ENDPOINT",
)
# What the person's terminal can do is no test's business.
TERMINAL_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


class NetworkForbidden(RuntimeError):
    """A test tried to reach another machine."""


def _is_this_machine(host: object) -> bool:
    if not isinstance(host, str):
        return isinstance(host, bytes) and _is_this_machine(host.decode())
    if host in ("", "localhost"):
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_elsewhere(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook: it sees every socket of the process, those of C extensions through `socket` included."""
    if event == "socket.connect":
        address = args[1]
        if isinstance(address, tuple) and not _is_this_machine(address[0]):
            raise NetworkForbidden(f"a test may not connect to {address[0]}:{address[1]}")
    elif event == "socket.getaddrinfo" and args[0] is not None and not _is_this_machine(args[0]):
        # Code that meets a dead name (a wrong base URL) is worth testing: it must see what a dead name gives.
        try:
            ip_address(str(args[0]))
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, f"tests have no name service ({args[0]})") from None


def _cache_entry_points(find: Callable[..., EntryPoints]) -> Callable[..., EntryPoints]:
    """Return `find` with a cache: it reads every installed package, which is nine tenths of what building an App takes.
    An installation changes a folder of `sys.path`."""
    cache: dict[tuple[object, ...], EntryPoints] = {}

    def entry_points(**params: str) -> EntryPoints:
        times: list[int] = []
        for folder in sys.path:
            with suppress(OSError):
                times.append(Path(folder).stat().st_mtime_ns)
        key = (*sys.path, *times, *sorted(params.items()))
        if key not in cache:
            cache[key] = find(**params)
        return cache[key]

    return entry_points


def pytest_configure(config: pytest.Config) -> None:
    """Forbid the network for the whole process (an audit hook cannot be taken out again, and need not be)."""
    sys.addaudithook(_refuse_elsewhere)
    importlib.metadata.entry_points = _cache_entry_points(importlib.metadata.entry_points)
    # A busy machine is slow, not wrong: no property fails for the time that it took.
    settings.register_profile("daiku", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("quick", settings.get_profile("daiku"), max_examples=20)
    settings.load_profile("daiku")
    # Programs that tests start find the sources as the tests do.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "server"), os.environ.get("PYTHONPATH", "")]
    ).strip(os.pathsep)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow tests where workers share them: none then waits for another's long test at the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not walk through it in every test."""
    gc.collect()
    gc.freeze()


_number = count()


@pytest.fixture(autouse=True)
def own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `DAIKU_HOME` of this test, made when something is put there (most tests put nothing); keys,
    addresses and DAIKU_* settings of the person who runs it are gone."""
    for name in (*PROVIDER_VARIABLES, *PROXY_VARIABLES, *TERMINAL_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    for name in [n for n in os.environ if n.startswith("DAIKU_") and n != "DAIKU_CORPORA"]:
        monkeypatch.delenv(name)
    # A scripted model mends a file within the second in which it was made, and Python compares seconds.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    home = tmp_path_factory.getbasetemp() / f"daiku-home-{next(_number)}"
    monkeypatch.setenv("DAIKU_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return home


@pytest.fixture
def daiku_home(own_environment: Path) -> Path:
    """The `DAIKU_HOME` of this test, as a folder that is there."""
    own_environment.mkdir(exist_ok=True)
    return own_environment


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of recorded cases; the test is skipped where it is not there."""
    if not CORPORA.is_dir():
        pytest.skip(
            f"no folder {CORPORA}: recorded traffic is never committed; DAIKU_CORPORA names another folder"
        )
    return CORPORA


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewDatabase]:
    """Gives the URL of a new, empty database on a real server."""
    with postgres_server(tmp_path_factory.mktemp("pg")) as new_database:
        yield new_database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database_place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Return the place of a new, empty database: a file, or the URL of a server."""
    if request.param == "sqlite":
        return tmp_path / "daiku.db"
    new_database: NewDatabase = request.getfixturevalue("postgres")
    return new_database()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace folder beside the test's home."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


SLOW = frozenset((ROOT / "tests" / "slow.txt").read_text("utf-8").split())


def pytest_itemcollected(item: pytest.Item) -> None:
    """What the list of slow tests names is slow as if it said so itself."""
    if item.nodeid.partition("[")[0] in SLOW:
        item.add_marker(pytest.mark.slow)


WHOLLY_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are not wanted, a file that says of itself that it is slow is not even imported."""
    if collection_path.suffix != ".py" or "not slow" not in str(config.getoption("markexpr")):
        return None
    return bool(WHOLLY_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None
