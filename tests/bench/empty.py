"""An empty pygls server, to start beside ours; `--more` imports what any server of our kind would."""

from __future__ import annotations

import importlib
import sys

from pygls.lsp.server import LanguageServer

if "--more" in sys.argv:
    for name in ("pydantic", "jinja2"):
        importlib.import_module(name).__dict__.get("BaseModel")  # pydantic loads itself at first use

server = LanguageServer("empty", "1")


@server.feature("bench/echo")
def echo(_server: LanguageServer, params: object) -> dict[str, object]:
    return {"text": getattr(params, "text", "")}


server.start_io()
