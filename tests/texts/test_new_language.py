"""Adding a language as docs/develop/extend.md says it, one file a side, in a scratch copy; and what catches each gap."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from daiku.texts.text import sentences
from tests.conftest import ROOT
from tests.scratch import Scratch
from tests.texts.test_catalogue import labels

pytestmark = pytest.mark.slow  # each looks at a copy of the project several times

VITEST = ROOT / "node_modules/vitest/vitest.mjs"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def marked(text: str) -> str:
    """A text in a language of its own; what stands beside one another needs no words."""
    return f"‹{text}›" if text.strip(", 、") else text


SEEN = """
import asyncio, pathlib
from daiku.fronts.cli.display.toollines import call_text
from tests.lsp.conftest import connected
async def main():
    print(call_text("files/list", {"path": "src"}))
    async with connected(pathlib.Path.cwd(), client={"locale": "fr-FR"}) as server:
        said = await server.client.request("daiku/chat", {"text": "Hi", "model": "scripted/demo"})
        session = {"sessionId": said["sessionId"], "format": "markdown"}
        print(await server.client.request("daiku/session/export", session))
asyncio.run(main())
"""


@pytest.mark.slow(seconds=15)
def test_a_language_of_the_server_is_one_file(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    every = {key: marked(said) for key, said in sentences("en").items()}
    short = {key: marked(said) for key, said in labels().items()}
    scratch.say("fr", {key: said for key, said in every.items() if key != "misuse.nearest"})
    wrong = scratch.watched("texts/test_catalogue.py")
    assert "'misuse.nearest'" in wrong
    assert "'label.Ask'" in wrong
    scratch.say("fr", every | short)
    assert scratch.passes("texts/test_catalogue.py")

    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    scratch.bring("lsp/conftest.py", "lsp/pair.py")
    seen = scratch.run("-c", SEEN)
    assert "‹List› src" in seen
    assert "‹Failed:›" in seen
    assert "‹Unknown command frobnicate.›" in scratch.run("-m", "daiku", "frobnicate")
    assert marked(sentences("en")["terminal.help.doctor"]) in scratch.run("-m", "daiku", "--help")


# `npm test` brings Node.js and its packages; pytest alone may run without them.
@pytest.mark.skipif(not shutil.which("node") or not VITEST.exists(), reason="needs node and its packages")
def test_a_language_of_the_extension_is_one_file(scratch: Scratch) -> None:
    own = {
        part: json.loads((ROOT / f"extension/words/{name}.json").read_text("utf-8"))[part]
        for name, part in (("en", "manifest"), ("ja", "words"))
    }
    whole = {
        "manifest": {key: marked(said) for key, said in own["manifest"].items()},
        "words": {key: marked(key) for key in own["words"]},
    }
    said = {key: marked(text) for key, text in {**sentences("en"), **labels()}.items()}
    scratch.say("fr", said)
    (scratch.root / "node_modules").symlink_to(ROOT / "node_modules")
    test = ("node", str(VITEST), "run", "--config", ".dev/vitest.config.mjs", "extension/test/l10n.test.ts")
    less = {
        part: {key: text for key, text in words.items() if key not in ("view.chat", "Accept")}
        for part, words in whole.items()
    }
    scratch.write("extension/words/fr.json", json.dumps(less))
    scratch.generate()
    wrong = scratch.program(*test)
    assert '"Accept"' in wrong
    assert '"view.chat"' in wrong
    scratch.write("extension/words/fr.json", json.dumps(whole))
    scratch.generate()
    assert " failed" not in scratch.program(*test)
    for name in ("package.nls.fr.json", "l10n/bundle.l10n.fr.json"):
        made = json.loads((scratch.root / "extension" / name).read_text("utf-8"))
        assert not [text for text in made.values() if text[0] != "‹"]
