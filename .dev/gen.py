"""Writes what is generated: wire contract, settings of the manifest, the panel's tables, map of the rooms; `--check` compares."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ["LC_ALL"] = "C.UTF-8"  # the help of commands is in the language of the terminal
sys.path[:0] = [str(ROOT / "server"), str(ROOT / ".dev")]

from codemap import with_rooms, with_section  # noqa: E402  # the paths above come first
from contract import contract  # noqa: E402  # likewise
from decisions import index  # noqa: E402  # likewise
from manifest import manifest, provided  # noqa: E402  # likewise
from tables import hidden, providers, tables  # noqa: E402  # likewise
from words import file_of, languages, manifest_words, panel_words  # noqa: E402  # likewise

from daiku.fronts.lsp.requests.methods import METHODS  # noqa: E402  # likewise

README = ROOT / "server" / "README.md"
DECISIONS = ROOT / "server" / "DECISIONS.md"
PACKAGE = ROOT / "server" / "daiku"
NAMES = "Generated names of the custom methods, so that `initialize` needs no heavy imports."


EXTENSION = ROOT / "extension"


def targets() -> dict[Path, str]:
    """Every generated file with its text."""
    decisions = DECISIONS.read_text(encoding="utf-8")
    names = "".join(f'    "{name}",\n' for name in METHODS)
    return {
        EXTENSION / "src" / "contract.gen.ts": contract(),
        EXTENSION / "src" / "pure" / "view" / "tables.gen.ts": tables(),
        EXTENSION / "src" / "pure" / "text" / "hidden.gen.ts": hidden(),
        EXTENSION / "package.json": manifest(),
        **{
            EXTENSION / file_of("package.nls", each): manifest_words(each, provided()) for each in languages()
        },
        **{EXTENSION / "l10n" / file_of("bundle.l10n", each): panel_words(each) for each in languages()},
        PACKAGE / "fronts" / "lsp" / "methodnames.py": f'"""{NAMES}"""\n\nMETHODS = (\n{names})\n',
        **{
            ROOT / page: with_section((ROOT / page).read_text(encoding="utf-8"), "providers", providers())
            for page in ("README.md", "docs/guide/connect.md")
        },
        DECISIONS: with_section(decisions, "index", index(decisions.partition("<!-- /index -->")[2])),
        README: with_rooms(README.read_text(encoding="utf-8"), PACKAGE),
    }


def main(arguments: list[str]) -> int:
    """0 when everything is fresh (or was written), 1 when `--check` finds something stale."""
    stale = 0
    for path, text in targets().items():
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
