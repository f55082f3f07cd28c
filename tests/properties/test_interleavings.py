"""A person types while an agent edits: whatever comes first, no character is lost, and stale edits are made anew."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import daiku.fronts.lsp.documents.editor
from daiku.domain.runs import Position
from daiku.domain.tools import ToolCall, ToolResult
from daiku.edits.rules.positions import find_line_starts, to_offset, to_position
from daiku.fronts.lsp.documents.editor_queries import ClientEditor
from daiku.fronts.lsp.documents.open_documents import to_uri
from daiku.fronts.lsp.server import serve
from daiku.settings.config import Config
from daiku.tools.files.changing import build_file_tools
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from tests.cases import examples
from tests.lsp.documents.test_editor import FULL
from tests.lsp.pair import Client

SLOTS = 6
START = "".join(f"slot{n}:\r\n" if n % 2 else f"  slot{n}: é😀\n" for n in range(SLOTS))
HOOKS = ("before", "apply", "applied", "save", "saved", "problems")
"""Where a person's keys may come in between: at each request that the server makes of the editor, and after it."""


@dataclass(frozen=True)
class Keys:
    """What a person does at one place: `at` of 1000 of the text, `delete` characters, then type."""

    hook: str
    at: int
    delete: int
    delay: int


@dataclass(frozen=True)
class Work:
    """What the agent does: a small edit, one over two lines, or the whole file as it read it before."""

    kind: str
    slot: int


class Desk:
    """An editor as VS Code is: versions, edits refused for another version, changes reported in order, later."""

    def __init__(self, client: Client, place: Path, keys: list[Keys]) -> None:
        self.client, self.place, self.uri = client, place, to_uri(place)
        self.text, self.version = START, 1
        self.keys = keys
        self.tokens = itertools.count(0xE000)
        self.alive: Counter[str] = Counter()
        self.applied = self.refused = 0
        self.wrong: list[AssertionError] = []
        self.intended: Callable[[str], str] = lambda text: text
        self.outbox: asyncio.Queue[tuple[int, Any] | None] = asyncio.Queue()
        client.on["workspace/applyEdit"] = self.apply
        client.on["daiku/editor/save"] = self.save
        client.on["daiku/editor/diagnostics"] = self.problems
        item = {"uri": self.uri, "languageId": "x", "version": 1, "text": START}
        client.notify("textDocument/didOpen", {"textDocument": item})

    async def post(self) -> None:
        """Deliver what the editor has to say, in order, each a little later."""
        while (item := await self.outbox.get()) is not None:
            delay, params = item
            if delay:
                await asyncio.sleep(delay / 2000)
            self.client.notify("textDocument/didChange", params)

    def change(self, start: int, end: int, new: str, delay: int) -> None:
        starts = find_line_starts(self.text)
        span = {
            "start": to_position(self.text, starts, start, "utf-16").model_dump(),
            "end": to_position(self.text, starts, end, "utf-16").model_dump(),
        }
        self.text = self.text[:start] + new + self.text[end:]
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        params = {"textDocument": document, "contentChanges": [{"range": span, "text": new}]}
        self.outbox.put_nowait((delay, params))

    def type(self, hook: str) -> None:
        """The person's next keys, if they come here."""
        while self.keys and self.keys[0].hook == hook:
            key = self.keys.pop(0)
            start = key.at * len(self.text) // 1000
            while start < len(self.text) and self.text[start - 1 : start + 1] == "\r\n":
                start += 1  # the cursor does not stand within a line end
            end = min(len(self.text), start + key.delete)
            if self.text[end - 1 : end + 1] == "\r\n":
                end += 1
            gone = self.text[start:end]
            token = chr(next(self.tokens))
            self.change(start, end, token, key.delay)
            self.alive.subtract(c for c in gone if c in self.alive)
            self.alive[token] += 1

    async def apply(self, params: Any) -> Any:
        self.type("apply")
        (change,) = params["edit"]["documentChanges"]
        if change["textDocument"]["version"] != self.version:
            self.refused += 1
            return {"applied": False, "failureReason": "the document has changed"}
        before = self.text
        for edit in reversed(change["edits"]):
            starts = find_line_starts(self.text)
            from_, to = (Position(**edit["range"][end]) for end in ("start", "end"))
            a, b = (to_offset(self.text, starts, p, "utf-16") for p in (from_, to))
            self.change(a, b, edit["newText"], 0)
        try:
            assert self.text == self.intended(before), (before, self.text)
        except AssertionError as error:  # raised here it would leave the server without an answer
            self.wrong.append(error)
        self.applied += 1
        self.type("applied")
        return {"applied": True}

    async def save(self, _: Any) -> None:
        self.type("save")
        self.place.write_bytes(self.text.encode())
        self.type("saved")

    async def problems(self, _: Any) -> Any:
        self.type("problems")
        return {"diagnostics": []}


class Agent:
    """Works with the real tools on the real server's workspace."""

    def __init__(self, desk: Desk, call: Callable[..., Awaitable[ToolResult]]) -> None:
        self.desk, self.call = desk, call
        self.done = 0

    async def work(self, work: Work) -> None:
        desk = self.desk
        if work.kind == "whole":
            seen = await self._read()
            desk.type("before")
            if seen is None:
                return
            new = seen.replace(f"slot{work.slot}:", f"slot{work.slot}:w")

            def whole(before: str) -> str:
                assert before == seen, "a whole file was written over what the model did not know"
                return new

            desk.intended = whole
            await self._count("files/write", path=self.desk.place.name, content=new)
            return
        desk.type("before")
        search = f"slot{work.slot}:"
        if work.kind == "two":
            parts = desk.text.split("\n")
            search = "\n".join(parts[work.slot : work.slot + 2]) or search
        replace = search.replace(":", ":e") if ":" in search else search + "e"
        desk.intended = lambda before: before.replace(search, replace, 1)
        await self._count(
            "files/edit", path=self.desk.place.name, edits=[{"search": search, "replace": replace}]
        )

    async def _read(self) -> str | None:
        """What the agent read, where that is what stands in the editor: nothing was under way."""
        result = await self.call("files/read", path=self.desk.place.name, line_numbers=False)
        return self.desk.text if result.ok and result.text.split() == self.desk.text.split() else None

    async def _count(self, tool: str, **args: Any) -> None:
        before = self.desk.applied
        result = await self.call(tool, **args)
        changed = bool(result.ok and result.data and result.data["files"])
        assert self.desk.applied - before == int(changed), result.text
        self.done += changed


class Place:
    """A server with its client and tools, for many sessions one after the other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runner = asyncio.Runner()
        self.numbers = itertools.count(1)
        self.runner.run(self.start())

    async def start(self) -> None:
        self.connection = serve({})
        self.client = Client(self.connection.protocol)
        self.client.attach()
        params = {
            "capabilities": {"workspace": FULL},
            "workspaceFolders": [{"uri": to_uri(self.root), "name": "w"}],
            "initializationOptions": {"client": {"editor": True}},
        }
        await self.client.request("initialize", params)
        self.files = self.connection.workspace
        self.checkpoints = CheckpointStore(self.root.parent / "home", self.files)
        self.editor = ClientEditor(self.connection.protocol, self.connection.documents, self.files)
        self.registry = ToolRegistry(build_file_tools())

    def play(self, keys: list[Keys], works: list[Work]) -> Desk:
        return self.runner.run(interleaved(self, keys, works))


async def interleaved(at: Place, keys: list[Keys], works: list[Work]) -> Desk:
    """One session of both; checks what must hold, whoever was first."""
    number = next(at.numbers)
    place = at.root / f"{number}.txt"
    place.write_bytes(START.encode())
    desk = Desk(at.client, place, list(keys))
    posting = asyncio.ensure_future(desk.post())
    context = ToolContext(
        session=f"s{number}",
        run="r",
        call_id="c",
        workspace=at.files,
        checkpoints=at.checkpoints,
        config=Config(),
        emit=lambda _: None,
        editor=at.editor,
    )
    agent = Agent(desk, lambda tool, **args: at.registry.call(ToolCall(tool=tool, args=args), context))
    for work in works:
        await agent.work(work)
    desk.outbox.put_nowait(None)
    await posting
    if desk.wrong:
        raise desk.wrong[0]
    left = Counter(c for c in desk.text if c in desk.alive)
    assert left == +desk.alive, "a character was lost or came twice"
    document = at.connection.documents.at(place)
    assert document is not None
    assert document.displayed_text == desk.text, "server and editor have different texts"
    assert agent.done == desk.applied
    at.client.notify("textDocument/didClose", {"textDocument": {"uri": desk.uri}})
    place.unlink()
    at.client.heard.clear()
    return desk


a_key = st.builds(
    Keys,
    hook=st.sampled_from(HOOKS),
    at=st.integers(0, 999),
    delete=st.sampled_from([0, 0, 0, 1, 3, 20]),
    delay=st.integers(0, 3),
)
a_work = st.builds(Work, kind=st.sampled_from(["line", "two", "whole"]), slot=st.integers(0, SLOTS - 1))
sessions = given(keys=st.lists(a_key, max_size=8), works=st.lists(a_work, min_size=1, max_size=4))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("interleavings") / "workspace"
    folder.mkdir()
    at = Place(folder)
    yield at
    at.runner.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The desk says what it has to say within 2 ms."""
    monkeypatch.setattr(daiku.fronts.lsp.documents.editor, "REPORT_SECONDS", 0.05)


@settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@sessions
def test_no_character_is_lost(place: Place, keys: list[Keys], works: list[Work]) -> None:
    place.play(keys, works)


@pytest.mark.slow(seconds=40)
def test_no_character_is_lost_in_a_thousand_interleavings(place: Place) -> None:
    refused = applied = 0

    @settings(
        max_examples=examples(1000),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @sessions
    def thousand(keys: list[Keys], works: list[Work]) -> None:
        nonlocal refused, applied
        desk = place.play(keys, works)
        refused, applied = refused + desk.refused, applied + desk.applied

    thousand()
    assert refused > 50, "hardly any edit was stale: the test proves nothing"
    assert applied > 500


def test_a_stale_edit_is_made_anew_against_the_new_text(place: Place) -> None:
    keys = [Keys("apply", 0, 0, 2), Keys("apply", 400, 0, 0)]
    desk = place.play(keys, [Work("line", 3)])
    assert (desk.refused, desk.applied) == (1, 1)
    assert "slot3:e" in desk.text
    assert desk.text.startswith("\ue000")


def test_a_whole_file_that_was_read_before_the_person_typed_is_refused(place: Place) -> None:
    desk = place.play([Keys("before", 500, 0, 0)], [Work("whole", 1)])
    assert desk.applied == 0
    assert "\ue000" in desk.text


def test_a_line_that_the_person_typed_into_meanwhile_is_not_the_line_that_was_searched(place: Place) -> None:
    """The search is the whole line up to its end; what was typed at its end makes it another."""
    keys = [Keys("before", 0, 20, 0), Keys("before", 342, 20, 0), Keys("apply", 910, 0, 0)]
    desk = place.play(keys, [Work("line", 0), Work("two", 1)])
    assert (desk.refused, desk.applied) == (1, 0)
    assert desk.text.endswith("lot5:\ue002\r\n")
