"""What a program's first run imports: only what it uses, however busy the machine is (issue 10, the bound of imports)."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

from tests.bench.imports import FIRST_RUN
from tests.conftest import ROOT

FOR_OTHERS = frozenset(
    {
        *(
            "anthropic",
            "openai",
            "httpx",
            "httpx2",
            "aiohttp",
            "mcp",
            "acp",
            "PIL",
        ),  # a provider, a server or an editor
        *("pygls", "lsprotocol", "starlette", "uvicorn", "click"),  # other fronts
        *(
            "jinja2",
            "json_repair",
            "markdownify",
            "bs4",
            "charset_normalizer",
        ),  # templates, broken replies, pages
        *(
            "tree_sitter",
            "pathspec",
            "platformdirs",
            "tomllib",
            "urllib.request",
            "http.client",
        ),  # a folder, settings
        *("ctypes", "getpass", "difflib", "redis", "psycopg", "opentelemetry"),
    }
)
"""What comes with work that a first run does not do."""
NOT_YET = (
    *("api", "doctor", "eval", "fronts", "memory", "edits.review", "edits.rules.changes"),
    *("edits.rules.applypatch", "edits.rules.blocks", "edits.rules.edits", "edits.rules.elisions"),
    *("edits.rules.fileblocks", "edits.rules.patch", "edits.rules.udiff"),
    *(
        "guard.guardrails.references",
        "guard.guardrails.similarity",
        "guard.rules.commands",
        "guard.rules.guard",
    ),
    *(
        "guard.sandbox",
        "models.adapter",
        "models.anthropic",
        "models.gemini",
        "models.ollama",
        "models.openai",
    ),
    *("models.rules.textcalls", "plugins.kinds", "run.nested.handoff", "run.nested.taskloop"),
    *(
        "team.coding",
        "team.drafting",
        "team.routing.model",
        "team.routing.rule_router",
        "team.table",
        "team.templates",
    ),
    *(
        "team.rules.checks",
        "team.rules.drafting",
        "team.rules.moves",
        "team.rules.parallel",
        "team.rules.person",
    ),
    *(
        "team.rules.record",
        "team.rules.report",
        "team.rules.steps",
        "team.rules.summary",
        "team.rules.task_report",
    ),
    *(
        "team.rules.tasks",
        "tools.git",
        "tools.mcp.server",
        "tools.rules.code",
        "tools.rules.notebooks",
        "tools.shell",
    ),
    *("tools.table", "tools.web", "trace.rules", "trace.telemetry.logger"),
)
"""Rooms and modules whose turn comes later; of a room the page that says what it holds may be there."""
MOST_MODULES = 218
"""Of Daiku itself. It was 409 when each of them was imported with what it could ever need.

Three are redaction of decoded strings and the rules of tokens: nothing is written or sent without them."""


@cache
def imported() -> frozenset[str]:
    """The modules that are there after a first run and were not before it, in an interpreter of its own."""
    program = f"import json, sys\nbefore = set(sys.modules)\n{FIRST_RUN}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "server", capture_output=True, text=True, check=True
    )
    return frozenset(json.loads(done.stdout))


def test_a_first_run_loads_no_library_that_it_does_not_use() -> None:
    assert not sorted(name for name in imported() if name in FOR_OTHERS)


def test_a_first_run_loads_none_of_the_rooms_of_other_work() -> None:
    rooms = tuple(f"daiku.{room}" for room in NOT_YET)
    early = sorted(name for name in imported() if any(name == r or name.startswith(f"{r}.") for r in rooms))
    only_their_page = {name for name in early if (ROOT / "server" / name.replace(".", "/")).is_dir()}
    assert not [name for name in early if name not in only_their_page]


def test_a_first_run_loads_few_modules() -> None:
    """Where this is over, import in the function that needs it (`# when used`), or say here why more is needed."""
    assert len([name for name in imported() if name.startswith("daiku")]) <= MOST_MODULES
