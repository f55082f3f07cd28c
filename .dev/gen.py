"""Writes what is generated: the wire contract, settings in the editor's manifest, the code map; `--check` only compares."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "server"), str(ROOT / ".dev")]

from codemap import with_code_map  # noqa: E402  # the paths above come first
from contract import contract  # noqa: E402  # likewise
from manifest import TEXTS, manifest, texts  # noqa: E402  # likewise

README = ROOT / "server" / "README.md"


def readme() -> str:
    """server/README.md with its code map made anew; empty while there is none."""
    return (
        with_code_map(README.read_text(encoding="utf-8"), ROOT / "server" / "daiku")
        if README.exists()
        else ""
    )


EXTENSION = ROOT / "extension"
TARGETS = {
    EXTENSION / "src" / "contract.gen.ts": contract,
    EXTENSION / "package.json": manifest,
    **{EXTENSION / name: partial(texts, name) for name in TEXTS},
    README: readme,
}


def main(arguments: list[str]) -> int:
    """0 when everything is fresh (or was written), 1 when `--check` finds something stale."""
    stale = 0
    for path, make in TARGETS.items():
        text = make()
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            continue
        if "--check" in arguments:
            stale += 1
            print(f"{path.relative_to(ROOT)} is stale: run `npm run gen`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
