"""A sandboxed write through a hard link changes no file outside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.dataclass import replace
from daiku.domain.config import SandboxSettings
from daiku.guard.sandbox import bubblewrap, links
from daiku.guard.sandbox.links import find_linked
from daiku.tools.shell import RunArgs
from daiku.tools.shell.preparing import PreparedCommand, prepare, wrap_in_sandbox
from tests.tools.shell.test_shell import Bench

LINKED = (
    ".venv/lib/python3.12/site-packages/x/y.py", "node_modules/.pnpm/x/index.js", "node_modules/x/index.js",
    "packages/a/node_modules/x/index.js", "vendor/crate/lib.rs", "plain.txt", "deep/er/plain.txt",
)  # fmt: skip


def plant(root: Path, name: str) -> Path:
    """Make a file of a store outside, and a hard link to it in the workspace."""
    store = root.parent / "store" / name.replace("/", "_")
    store.parent.mkdir(exist_ok=True)
    store.write_text("clean")
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.hardlink_to(store)
    return store


@pytest.mark.slow
# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
@pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")
@pytest.mark.parametrize("name", LINKED)
async def test_no_write_reaches_a_store_through_a_hard_link(workspace: Path, name: str) -> None:
    """A23.9: in place, by another name, and through a moved folder."""
    bench = Bench(workspace.resolve(), SandboxSettings())
    store = plant(bench.root, name)
    top = name.split("/", maxsplit=1)[0]
    await bench.run(
        f"echo bad >> {name}; ln {name} other; echo bad > other; chmod 777 {name}; truncate -s 0 {name}; true"
    )
    await bench.run(f"mv {top} moved; find . -type f -exec sh -c 'echo bad > \"$1\"' _ {{}} \\;; true")
    assert store.read_text() == "clean"
    assert (
        await bench.run("mkdir -p node_modules/.vite && echo x > node_modules/.vite/x && echo x > new.txt")
    ).ok


# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
@pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")
@pytest.mark.parametrize(
    ("command", "network", "kept"),
    [
        ("npm install x", True, False),
        ("npm ci && pip install y", True, False),
        ("npm install x", False, True),
        ("yarn --version; echo bad >> plain.txt", False, True),
        ("npm rebuild", False, True),
        ("npm install x; echo bad >> plain.txt", True, True),
        ("npm install x > plain.txt", True, True),
    ],
)
def test_only_an_installation_by_itself_replaces_hard_links(
    workspace: Path, command: str, network: bool, kept: bool
) -> None:
    """A23.9: a word of an installation does not open the links to the rest of the line."""
    bench = Bench(workspace.resolve(), SandboxSettings())
    plant(bench.root, "plain.txt")
    prepared = prepare(RunArgs(command=command, network=network), bench.context)
    assert isinstance(prepared, PreparedCommand)
    prepared = replace(
        prepared, bounds=prepared.bounds and replace(prepared.bounds, network=network)
    )  # some install words ask for it
    wrapped = wrap_in_sandbox(prepared)
    assert isinstance(wrapped, tuple)
    assert (str(bench.root / "plain.txt") in wrapped[0]) == kept


@pytest.mark.parametrize("name", LINKED)
def test_a_link_made_later_is_found(workspace: Path, name: str) -> None:
    root = workspace.resolve()
    assert find_linked((root,)) == ()
    plant(root, name)
    (found,) = find_linked((root,))
    assert (root / name).is_relative_to(found)


def test_links_within_the_workspace_stay_writable(workspace: Path) -> None:
    """A23.9: as a build makes them."""
    root = workspace.resolve()
    (root / "target/debug/deps").mkdir(parents=True)
    (root / "target/debug/app").write_text("x")
    (root / "target/debug/deps/app").hardlink_to(root / "target/debug/app")
    assert find_linked((root,)) == ()


def test_many_links_are_kept_by_their_folders(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_LINKED", 3)
    root = workspace.resolve()
    for number in range(5):
        plant(root, f"node_modules/p{number}/index.js")
    assert find_linked((root,)) == (root / "node_modules",)
