"""What another process does to a playbook: a thousand changes beside others, or changes until it is killed.

python -m tests.playbook.otherprocess write PLACE NAME COUNT
python -m tests.playbook.otherprocess die PLACE
python -m tests.playbook.otherprocess fill PLACE BYTES
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from daiku.domain.errors import DaikuError
from daiku.domain.playbook import Bullet, Delta, Observation
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.store.opening import open_place, open_tables

SHARED, SEEN = "cm-00001", "cm-00002"
"""The bullet that all processes change, and the one that they observe."""


def write(store: PlaybookStore, name: str, changes: int) -> None:
    """So many changes, one in four of each kind; it ends with an error where one is refused."""
    for number in range(changes):
        match number % 4:
            case 0:
                done = store.apply(Delta(id="", type="add", section="tool_usage", content=f"{name} {number}"))
            case 1:
                done = store.apply(Delta(id="", type="update", bullet_id=SHARED, content=f"{name} {number}"))
            case 2:
                done = store.accept(store.propose(Delta(id="", type="add", content=f"{name} {number}")).id)
            case _:
                store.observe([Observation(run=f"{name}{number}", bullet=SEEN, verdict="helpful")])
                continue
        if isinstance(done, ChangeRefusal):
            raise SystemExit(done.message)


Step = Callable[[PlaybookStore], object]
STEPS: tuple[Step, ...] = (
    lambda store: store.apply(Delta(id="", type="add", section="common_mistakes", content="One.")),
    lambda store: store.apply(Delta(id="", type="add", section="common_mistakes", content="Two.")),
    lambda store: store.propose(Delta(id="", type="add", section="environment", content="Three.")),
    lambda store: store.accept(store.deltas("proposed")[0].id),
    lambda store: store.observe(
        [Observation(run="r", bullet=each, verdict="helpful") for each in ("cm-00001", "cm-00002")]
    ),
    lambda store: store.apply(Delta(id="", type="update", bullet_id="cm-00001", content="One, better.")),
    lambda store: store.apply(Delta(id="", type="merge", bullet_ids=("cm-00001", "cm-00002", "env-00001"))),
    lambda store: store.apply(Delta(id="", type="tag", bullet_id="cm-00001", tag="harmful")),
    lambda store: store.undo(store.history("cm-00002")[-1].id),
    lambda store: store.apply(Delta(id="", type="remove", bullet_id="cm-00002")),
    lambda store: store.undo(store.history("cm-00002")[0].id),  # refused: it was changed since
    lambda store: store.apply(Delta(id="", type="restore", bullet_id="cm-00002")),
    lambda store: store.propose(Delta(id="", type="remove", bullet_id="cm-00001")),
    lambda store: store.reject(store.deltas("proposed")[0].id),
    lambda store: store.apply(
        Delta(
            id="",
            type="add",
            origin="import",
            content="Read in.",
            bullet_id="cm-00002",
            after=(Bullet(id="cm-00002", section="", content="", helpful=3),),
        )
    ),
    lambda store: store.undo(store.deltas("applied")[-1].id),
)
"""Something of everything."""


def die(database: Database, done: Path) -> None:
    """Carry the steps out in a playbook of its own for each statement that a child is killed at: `done` gets a line a
    step that a child saw the end of. The last one lives."""
    for number in count(1):
        child = os.fork()
        if not child:
            killed_at(database, number)
            store = PlaybookStore(database, "repository", f"key{number}")
            with done.open("a") as file:
                for step, does in enumerate(STEPS):
                    does(store)
                    file.write(f"{number} {step}\n")
                    file.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


def fill(place: Path, most: int) -> None:
    """Add until no file can grow any more, as on a full disk; told are how many were added, and why no more."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    made, told = 0, ""
    try:
        store = PlaybookStore(open_tables(place, ""), "repository", "here")
        while made < 10_000:
            store.apply(Delta(id="", type="add", section="common_mistakes", content=f"{made} {'x' * 1_000}"))
            made += 1
    except DaikuError as wrong:
        told = wrong.failure.message
    sys.stdout.write(json.dumps([made, told]))


def killed_at(database: Any, number: int) -> None:
    """From now on the process ends itself just before the `number`th statement."""
    statements = count(1)

    def strike(*_: object) -> None:
        if next(statements) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    if hasattr(database, "_execute"):  # SQLite says of each statement that it begins
        database._connection.set_trace_callback(strike)
        return
    database._connection = None  # a connection is no use to two processes
    run, write_all, transaction = database._run, database.write_all, database.transaction

    @contextmanager
    def struck() -> Any:
        strike()
        with transaction():
            yield
            strike()
        strike()

    database._run = lambda *given: (strike(), run(*given))[1]
    database.write_all = lambda *given: (strike(), write_all(*given))[1]
    database.transaction = struck


if __name__ == "__main__":
    what, place, *rest = sys.argv[1:]
    where = place if "://" in place else Path(place)
    if what == "write":
        write(PlaybookStore(open_tables(open_place(where), ""), "repository", "here"), rest[0], int(rest[1]))
    elif what == "fill":
        fill(Path(place), int(rest[0]))
    else:
        die(open_tables(open_place(where), ""), Path(rest[0]))
