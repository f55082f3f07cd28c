"""The researcher: its form is read or asked for again, its queries are carried out, its sources are real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App, build
from daiku.domain.errors import LLMRequestError
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    Restarted,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.domain.runs import RunResult
from daiku.domain.tools import ToolCall
from daiku.domain.work.plans import Plan, Step
from daiku.domain.work.research import Research
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.team.coding.researcher import RESEARCH, build_research_request
from daiku.team.role import stream_role_reply
from daiku.texts.text import Text
from daiku.tools.rules.web.research import fold_research
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each
from tests.runs.playing import Watch
from tests.services.web import LocalWeb, local_web

NO_ASK_USER = {"id": "roles.no_ask_user", "args": {}}

ASKED: tuple[Message, ...] = (UserMessage(text="Find out."),)


def form(*queries: str, ask_user: str = "") -> str:
    return json.dumps({"queries": queries, "ask_user": ask_user})


def read(text: str, messages: tuple[Message, ...] = ASKED) -> AssistantMessage:
    found = RESEARCH.read(AssistantMessage(text=Text(text)), messages, False)
    assert isinstance(found, AssistantMessage), found
    return found


# -- the form ------------------------------------------------------------------------------


@for_each(
    "text",
    [
        form("a", "b"),
        f"```json\n{form('a', 'b')}\n```",
        f"Here you are: {form('a', 'b')} I hope it helps.",
        f"Thinking about it.\n{form('a', 'b')}\n",
        '{"queries": ["a", "b"], "ask_user": null}',
    ],
)
def test_a_readable_reply_becomes_the_call_that_looks_it_up(text: str) -> None:
    reply = read(text)
    assert [(c.tool, c.args) for c in reply.calls] == [("web/research", {"queries": ["a", "b"]})]
    assert reply.opaque == {"daiku": {"queries": ["a", "b"], "askUser": ""}}
    assert reply.text == "- a\n- b"


def test_a_form_without_ask_user_is_taken_with_a_remark() -> None:
    reply = read('{"queries": ["a", "b"]}')
    assert [c.args for c in reply.calls] == [{"queries": ["a", "b"]}]
    assert reply.opaque == {"daiku": {"queries": ["a", "b"], "askUser": "", "remark": NO_ASK_USER}}


def test_more_than_three_queries_are_cut_not_refused() -> None:
    assert read(form("a", "b", "c", "d", "e")).calls[0].args == {"queries": ["a", "b", "c"]}


def test_nothing_to_look_up_is_an_answer() -> None:
    assert read(form()).text == "Nothing needs to be looked up."
    question = read(form(ask_user="Which database?"))
    assert (question.text, question.calls) == ("Which database?", ())


@for_each(
    "text",
    [
        "I would search for cats.",
        "{}",
        '{"ask_user": "x"}',
        '{"queries": "a", "ask_user": ""}',
        '{"queries": [1], "ask_user": ""}',
        "",
    ],
)
def test_any_other_reply_is_unreadable(text: str) -> None:
    assert isinstance(RESEARCH.read(AssistantMessage(text=Text(text)), ASKED, False), Unreadable)


def test_searches_of_the_models_own_count_towards_the_three() -> None:
    calls = tuple(ToolCall(tool="web/search", args={"query": q}) for q in "abcd")
    reply = RESEARCH.read(AssistantMessage(calls=calls), ASKED, False)
    assert isinstance(reply, AssistantMessage)
    assert [c.args["query"] for c in reply.calls] == ["a", "b", "c"]
    two = AssistantMessage(calls=calls[:2])
    answers = [ToolMessage(call_id=c.id, tool=c.tool, ok=True, text="…") for c in two.calls]
    later = read(form("a", "x", "y"), (*ASKED, two, *answers))
    assert later.calls[0].args == {"queries": ["x"]}
    prose = read("I looked, and found it.", (*ASKED, two, *answers))
    assert prose.text == "I looked, and found it."


def test_the_last_words_are_the_sources_and_the_question() -> None:
    spoke = read(form("a", ask_user="Which one?"))
    found = ToolMessage(
        call_id=spoke.calls[0].id,
        tool="web/research",
        ok=True,
        text="**a**\n- [1] [A](https://a/)\n\n---\n\nlong page",
        sources=Text("**a**\n- [1] [A](https://a/)"),
    )
    closing = RESEARCH.after_calls((*ASKED, spoke, found))
    assert closing is not None
    assert closing.text == "**a**\n- [1] [A](https://a/)\n\nWhich one?"
    older = RESEARCH.after_calls((*ASKED, spoke, found.model_copy(update={"sources": Text("")})))
    assert older is not None  # a record of a version that kept no sources apart
    assert older.text.startswith("**a**\n- [1] [A](https://a/)")
    refused = found.model_copy(update={"ok": False, "text": "The person rejected this call."})
    told = RESEARCH.after_calls((*ASKED, spoke, refused))
    assert told is not None
    assert told.text.startswith("Nothing was looked up: The person rejected")
    assert RESEARCH.after_calls((*ASKED, spoke, found, UserMessage(text="Wait."))) is None
    assert RESEARCH.after_calls(ASKED) is None


# -- asking again --------------------------------------------------------------------------


async def replies(*texts: str, nested: bool = False) -> tuple[list[ModelEvent], list[ModelRequest]]:
    """What comes of a model that says `texts` one after the other."""
    said = list(texts)
    requests: list[ModelRequest] = []

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        requests.append(request)
        text = said.pop(0)
        yield TextDelta(text)
        yield Reply(AssistantMessage(text=Text(text)), Usage(prompt_tokens=10), "stop")

    events: list[ModelEvent] = []
    with suppress(LLMRequestError):
        async for event in stream_role_reply(RESEARCH, ModelRequest("", "", ASKED), ask, nested=nested):
            events.append(event)  # noqa: PERF401  # what came before an error counts
    return events, requests


async def test_a_reply_that_cannot_be_read_is_told_what_is_wrong() -> None:
    events, requests = await replies("cats", form("a"))
    assert events[0] == Restarted(
        Text("Error occurred: there is no JSON in the reply. Retrying (1 of at most 4)."), 1, 0
    )
    last = requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    assert "there is no JSON" in last.text
    assert isinstance(events[-1], Reply)
    assert events[-1].usage.prompt_tokens == 20
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["- a"], (
        "nothing of the form itself is shown"
    )


async def test_three_replies_that_are_wrong_in_the_same_way_are_the_end() -> None:
    events, requests = await replies(*["{}"] * 6)
    assert len(requests) == 3
    assert [type(event) for event in events] == [Restarted] * 2


async def test_five_replies_are_the_end_whatever_is_wrong_with_each() -> None:
    wrong = ["{}", '{"queries": 1}', '{"queries": [1]}', '{"queries": [], "ask_user": 1}', "{", "[]"]
    events, requests = await replies(*wrong)
    assert len(requests) == 5
    assert [type(event) for event in events] == [Restarted] * 4


async def test_who_mends_a_reply_step_by_step_is_heard_out() -> None:
    events, requests = await replies("{}", '{"queries": 1}', '{"queries": [1]}', form("a"))
    assert len(requests) == 4
    assert isinstance(events[-1], Reply)


async def test_an_answer_that_stays_in_words_is_the_result_of_a_nested_run_only(tmp_path: Path) -> None:
    events, requests = await replies("cats", "It is about cats.", nested=True)
    assert len(requests) == 2
    assert isinstance(events[-1], Reply)
    assert events[-1].message.text == "It is about cats."
    result, found, _ = await research(app_with(tmp_path, None, *[{"text": "cats"}] * 6))
    assert (result.status, result.text, found) == ("failed", "cats", Research())


async def test_a_run_whose_form_cannot_be_read_fails_and_says_so(tmp_path: Path) -> None:
    result, found, _ = await research(app_with(tmp_path, None, *[{"text": "{}"}] * 6))
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "format"
    assert result.error.message.startswith("All retry attempts failed")
    assert found == Research()


# -- the request ---------------------------------------------------------------------------


def test_the_request_has_plan_keywords_and_question() -> None:
    plan = Plan(name="Auth", goal="Add JWT login to FastAPI", steps=(Step(name="Write it"),))
    text = build_research_request(plan, "Which library?")
    assert "Step-by-Step Plan:\n# Auth" in text
    assert "- [ ] Step 1: Write it" in text
    assert "Question: Which library?" in text
    assert text.endswith("Keywords for Search Query: JWT, login, FastAPI, Auth")
    assert build_research_request(None, "Why E0502?").endswith("Keywords for Search Query: E0502")


# -- whole runs ----------------------------------------------------------------------------


def app_with(folder: Path, web: LocalWeb | None, *lines: dict[str, Any], protocol: str = "native") -> App:
    """An App whose model plays `lines` and whose engine is the local web's."""
    (folder / "project").mkdir(exist_ok=True)
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config.model_validate(
        {
            "llm": {"model": f"scripted/{script}", "scripted": {"tool_protocol": protocol}},
            "research": {"engine": "searxng", "base_url": web.url("") if web else "http://127.0.0.1:9"},
        }
    )
    return build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")


async def research(app: App, approvals: Any = "all") -> tuple[RunResult, Research, Watch]:
    watch = Watch()
    request = RunRequest("Find out.", agent="researcher", mode="ask", approvals=approvals)
    result = await app.runs.run(request, watch)
    found = Research()
    for chunk in watch.chunks:
        found = fold_research(found, chunk.event)
    await app.aclose()
    return result, found, watch


@pytest.mark.parametrize("protocol", ["native", "action_list", "command"])
async def test_one_reply_is_enough(tmp_path: Path, protocol: str) -> None:
    async with local_web() as web:
        web.links = [("https://a.example.com/one", "First"), ("https://b.example.com/two", "Second")]
        app = app_with(tmp_path, web, {"text": form("what", "why", ask_user="Which?")}, protocol=protocol)
        result, found, watch = await research(app)
    assert (result.status, found.queries, found.ask_user) == ("completed", ("what", "why"), "Which?")
    assert [(f.query, f.url, f.text) for f in found.results] == [
        ("what", "https://a.example.com/one", "About First"),
        ("what", "https://b.example.com/two", "About Second"),
    ]
    assert "[1] [First](https://a.example.com/one)" in result.text
    assert result.text.endswith("Which?")
    assert [c for c in watch.types() if c == "message"] == ["message", "message"]
    response = next(c for c in watch.chunks if c.type == "tool_response")
    assert json.loads(response.data)["untrusted"] is True
    assert (await replay(watch.chunks)).difference is None


async def test_without_a_web_the_queries_are_the_answer(tmp_path: Path) -> None:
    result, found, watch = await research(app_with(tmp_path, None, {"text": form("what")}))
    assert result.status == "completed"
    assert found == Research(queries=("what",))
    notices = [json.loads(c.data)["text"] for c in watch.chunks if c.type == "notice"]
    assert any("searxng was not reached" in text for text in notices)


async def test_where_nobody_can_approve_nothing_is_searched(tmp_path: Path) -> None:
    async with local_web() as web:
        result, found, _ = await research(app_with(tmp_path, web, {"text": form("what")}), approvals="none")
        assert web.asked == []
    assert result.status == "completed"
    assert (found.queries, found.results) == (("what",), ())
    assert "Nothing was looked up" in result.text


async def test_one_approval_covers_all_queries(tmp_path: Path) -> None:
    async with local_web() as web:
        app = app_with(tmp_path, web, {"text": form("what", "why", "how")})
        watch = Watch()

        task = asyncio.create_task(
            app.runs.run(RunRequest("Find out.", agent="researcher", mode="ask"), watch)
        )
        asked = json.loads((await watch.until("approval_asked")).data)
        assert (asked["kind"], asked["tool"]) == ("network", "web/research")
        assert "1. what\n2. why\n3. how" in asked["preview"]
        await app.runs.approve(watch.chunks[0].run, asked["approvalId"], "allow_once")
        result = await task
        await app.aclose()
        assert len([path for path in web.paths if path.startswith("/search")]) == 3
    assert result.status == "completed"
    assert watch.types().count("approval_asked") == 1


async def test_only_what_web_tools_returned_is_a_source(tmp_path: Path) -> None:
    async with local_web() as web:
        web.links = [("https://a.example.com/one", "First")]
        lines = (
            {"calls": [{"tool": "web/search", "args": {"query": "what"}}]},
            {"text": "See [this](https://invented.example.com/)."},
        )
        result, found, _ = await research(app_with(tmp_path, web, *lines))
    assert result.status == "completed"
    assert found.queries == ("what",)
    assert [f.url for f in found.results] == ["https://a.example.com/one"]


async def test_research_changes_nothing(tmp_path: Path) -> None:
    lines = ({"calls": [{"tool": "files/write", "args": {"path": "x", "content": "y"}}]}, {"text": form()})
    result, _, _ = await research(app_with(tmp_path, None, *lines))
    assert result.text == "Nothing needs to be looked up."
    assert list((tmp_path / "project").iterdir()) == []
