"""Makes the corpus of the similarity guard from installed free software: fingerprints, no text.

`python -m tests.guardrails.make_corpus` writes `server/daiku/guard/guardrails/corpus.json`.
"""

from __future__ import annotations

import json
from importlib.metadata import version

from daiku.guard.guardrails.references import CORPUS
from daiku.guard.rules.guardrails.fingerprints import fingerprints
from tests.guardrails.similarity import source_of

PIECES = {
    "attrs": ("MIT", "attr._make:_ClassBuilder"),
    "click": ("BSD-3-Clause", "click.parser:_OptionParser"),
    "Jinja2": ("BSD-3-Clause", "jinja2.lexer:Lexer"),
    "MarkupSafe": ("BSD-3-Clause", "markupsafe:Markup"),
    "itsdangerous": ("BSD-3-Clause", "itsdangerous.timed:TimestampSigner"),
    "blinker": ("MIT", "blinker.base:Signal"),
    "h11": ("MIT", "h11._connection:Connection"),
    "Flask": ("BSD-3-Clause", "flask.config:Config"),
    "httpx": ("BSD-3-Clause", "httpx._multipart:MultipartStream"),
    "msgpack": ("Apache-2.0", "msgpack.fallback:Unpacker"),
    "anyio": ("MIT", "anyio._core._synchronization:CapacityLimiterAdapter"),
    "beautifulsoup4": ("MIT", "bs4.dammit:EntitySubstitution"),
    "json_repair": ("MIT", "json_repair.json_parser:JSONParser"),
}
"""By package: the licence that its metadata name, and the piece."""


def main() -> None:
    entries: list[dict[str, object]] = []
    for package, (licence, place) in PIECES.items():
        found = fingerprints(source_of(place))
        name = f"{package} {version(package)}, {place.replace(':', '.')}"
        entries.append(
            {"name": name, "licence": licence, "code": sorted(found.code), "prose": sorted(found.prose)}
        )
    lines = (json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    CORPUS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
