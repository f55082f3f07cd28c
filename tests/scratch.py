"""A copy of the project in which something is added as docs/develop/extend.md says it, and looked at by its own tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

Edit = tuple[str, str, str]
"""A file of the package, a text in it, and what it becomes."""
NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules", "dist", "media")


def _copy_bytecode(source: Path, copy: Path) -> None:
    """Copy what Python compiled of `source` where it looks for that of `copy`, whose files have the same times."""
    if sys.pycache_prefix is None:
        return
    compiled, place = (Path(sys.pycache_prefix, *folder.parts[1:]) for folder in (source, copy))
    if compiled.is_dir():
        shutil.copytree(compiled, place, dirs_exist_ok=True)


class Scratch:
    """The copy: the server, its prompts, the generators, the extension; a test comes when it is run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "server" / "daiku"
        for folder in ("server", "prompts", ".dev", "docs", "extension", "tests/golden/wire"):
            shutil.copytree(ROOT / folder, root / folder, ignore=NOT_COPIED)
        _copy_bytecode(ROOT / "server" / "daiku", self.package)
        shutil.copy(ROOT / "README.md", root)
        for path in (ROOT / "tests").glob("*.*"):
            if path.suffix in (".py", ".txt") and not path.name.startswith("test_"):
                shutil.copy(path, root / "tests")

    def write(self, name: str, text: str) -> None:
        """Make a file of the copy."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def edit(self, *edits: Edit) -> None:
        for name, old, new in edits:
            path = self.package / name
            text = path.read_text("utf-8")
            assert old in text, f"{name} has no {old!r} any more: mend the recipe"
            path.write_text(text.replace(old, new, 1), "utf-8")

    def say(self, language: str, sentences: dict[str, str]) -> None:
        """Add sentences to a language's file, or make the file."""
        path = self.package / "texts" / f"{language}.json"
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        whole = dict(sorted({**before, **sentences}.items()))
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=2) + "\n", "utf-8")

    def run(self, *arguments: str) -> str:
        """What Python says there, both streams."""
        return self.program(sys.executable, *arguments)

    def program(self, *command: str) -> str:
        """What a program says there, both streams."""
        places = [str(self.root / "server"), str(self.root / ".dev"), str(self.root)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        # The next Python need not compile it all again: an edit here changes a file's length, which Python compares.
        env = {**kept, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": ""}
        done = subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def generate(self) -> None:
        """`npm run gen` there."""
        said = self.run(".dev/gen.py")
        assert "Error" not in said, said

    def bring(self, *tests: str) -> None:
        """Copy files of the tests."""
        for name in tests:
            self.write(f"tests/{name}", (ROOT / "tests" / name).read_text("utf-8"))

    def watched(self, *tests: str) -> str:
        """What these tests say there: files, or one test in a file."""
        self.bring(*(name.partition("::")[0] for name in tests))
        paths = [f"tests/{name}" for name in tests]
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *paths)

    def passes(self, *tests: str) -> bool:
        """Whether each of these tests passes there."""
        return re.search(r"^\d+ passed\b[^\n]* in ", self.watched(*tests), re.MULTILINE) is not None
