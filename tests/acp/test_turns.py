"""A client of ACP and its turns: words, tools, permission, differences, plans, cancelling, modes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import (
    RequestError,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)

from daiku.domain.events import ApprovalGiven
from daiku.trace.journal import Journal
from tests.acp.pair import Editor, connected
from tests.llm.pictures import encoded, picture
from tests.lsp import conftest as lsp

Script = Callable[..., None]
PIXEL = encoded(picture(1, 1))
EDIT = {"tool": "files/edit", "args": {"path": "a.py", "edits": [{"search": "old", "replace": "new"}]}}


def kind_of(error: RequestError) -> str:
    """What kind of failure a program is told."""
    return (error.data or {})["kind"]


async def test_a_turn_streams_words_and_thoughts_and_ends(workspace: Path, script: Script) -> None:
    script({"thinking": "Hm.", "text": "Hello, you."})
    async with connected() as pair:
        session = await pair.new(workspace)
        ended = await pair.prompt(session, "hi")
        assert ended.stop_reason == "end_turn"
        assert ended.usage.output_tokens > 0
        assert pair.editor.said == "Hello, you."
        assert "".join(u.content.text for u in pair.editor.of("agent_thought_chunk")) == "Hm."
        assert pair.editor.of("usage_update") == [] or pair.editor.of("usage_update")[0].size > 0


async def test_what_is_announced_is_what_there_is(workspace: Path, script: Script) -> None:
    script({"text": "x"})
    async with connected(greet=False) as pair:
        told = await pair.agent.initialize(protocol_version=1)
        assert told.protocol_version == 1
        assert told.agent_capabilities.load_session
        assert told.agent_capabilities.prompt_capabilities.embedded_context
        assert told.agent_capabilities.session_capabilities.list is not None
        made = await pair.agent.new_session(cwd=str(workspace), mcp_servers=[])
        assert [mode.id for mode in made.modes.available_modes] == ["ask", "plan", "act"]
        assert made.modes.current_mode_id == "act"


async def test_an_edit_is_asked_about_with_its_difference_and_shown_with_it(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.py").write_text("one\nold\nthree\n")
    script({"calls": [EDIT]}, {"text": "Done."})
    async with connected() as pair:
        session = await pair.new(workspace)
        assert (await pair.prompt(session, "edit")).stop_reason == "end_turn"
        [(call, options)] = pair.editor.asked
        assert [o.kind for o in options] == ["allow_once", "allow_always", "reject_once", "reject_always"]
        diff = next(c for c in call.content if c.type == "diff")
        assert (diff.path, "old\n" in diff.old_text, "new\n" in diff.new_text) == (
            str(workspace / "a.py"),
            True,
            True,
        )
        [start] = pair.editor.of("tool_call")
        assert (start.kind, start.status, start.locations[0].path) == (
            "edit",
            "pending",
            str(workspace / "a.py"),
        )
        last = pair.editor.of("tool_call_update")[-1]
        assert last.status == "completed"
        whole = next(
            c for u in pair.editor.of("tool_call_update") for c in u.content or () if c.type == "diff"
        )
        assert (whole.old_text, whole.new_text) == ("one\nold\nthree\n", "one\nnew\nthree\n")
    assert (workspace / "a.py").read_text() == "one\nnew\nthree\n"


async def test_a_rejected_edit_is_not_made_and_the_turn_goes_on(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "Then not."})
    async with connected(Editor(pick=lambda call, options: "reject_once")) as pair:
        session = await pair.new(workspace)
        assert (await pair.prompt(session, "edit")).stop_reason == "end_turn"
        assert pair.editor.of("tool_call_update")[-1].status == "failed"
        assert pair.editor.said == "Then not."
    assert (workspace / "a.py").read_text() == "old\n"


async def test_what_is_allowed_for_always_is_not_asked_again(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    back = {"tool": "files/edit", "args": {"path": "a.py", "edits": [{"search": "new", "replace": "old"}]}}
    script({"calls": [EDIT]}, {"calls": [back]}, {"text": "Done."})
    async with connected(Editor(pick=lambda call, options: "allow_always")) as pair:
        session = await pair.new(workspace)
        await pair.prompt(session, "edit")
        assert len(pair.editor.asked) == 1


async def test_an_option_that_was_not_offered_is_no_yes(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    async with connected(Editor(pick=lambda call, options: "yes please")) as pair:
        await pair.prompt(await pair.new(workspace), "edit")
    assert (workspace / "a.py").read_text() == "old\n"


async def test_a_client_that_cannot_ask_is_told_so_and_nothing_is_changed(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    async with connected(Editor(refuses=frozenset({"request_permission"}))) as pair:
        session = await pair.new(workspace)
        assert (await pair.prompt(session, "edit")).stop_reason == "end_turn"
    assert (workspace / "a.py").read_text() == "old\n"
    journal = Journal(Path(os.environ["DAIKU_HOME"]) / "daiku.db")
    (given,) = [c.event for c in journal.chunks(session) if isinstance(c.event, ApprovalGiven)]
    journal.close()
    assert given.unattended, "it is no person's word: nothing is learnt from it"


async def test_a_turn_is_cancelled_while_it_streams(workspace: Path, script: Script) -> None:
    script({"text": "word " * 500, "delay_ms": 20})
    async with connected() as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "talk"))
        await pair.editor.until(lambda: pair.editor.said)
        await pair.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"


async def test_a_turn_is_cancelled_at_a_question(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "never"})
    async with connected(Editor(pick=lambda call, options: "wait")) as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "edit"))
        await pair.editor.until(lambda: pair.editor.asked)
        await pair.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
    assert (workspace / "a.py").read_text() == "old\n"


async def test_a_cancel_right_behind_the_prompt_is_not_lost(workspace: Path, script: Script) -> None:
    script({"text": "word " * 500, "delay_ms": 20})
    async with connected() as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "talk"))
        await asyncio.sleep(0)
        await pair.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"


async def test_a_cancel_when_nothing_runs_does_nothing(workspace: Path, script: Script) -> None:
    script({"text": "fine"})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.agent.cancel(session_id=session)
        await pair.agent.cancel(session_id="ses_nobody")
        assert (await pair.prompt(session, "hi")).stop_reason == "end_turn"


async def test_two_prompts_at_once_on_one_session_are_refused_the_second(
    workspace: Path, script: Script
) -> None:
    script({"text": "word " * 200, "delay_ms": 20})
    async with connected() as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "talk"))
        await pair.editor.until(lambda: pair.editor.said)
        with pytest.raises(RequestError) as refused:
            await pair.prompt(session, "also")
        assert kind_of(refused.value) == "busy"
        await pair.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"


async def test_a_prompt_for_an_unknown_session_is_answered_with_a_sentence(workspace: Path) -> None:
    async with connected() as pair:
        with pytest.raises(RequestError) as refused:
            await pair.prompt("ses_nobody", "hi")
        assert (refused.value.code, "ses_nobody" in str(refused.value)) == (-32002, True)


async def test_a_failed_run_is_an_error_that_says_what_to_do(workspace: Path, script: Script) -> None:
    script({"error": {"kind": "auth", "message": "No key.", "hint": "Set one."}})
    async with connected() as pair:
        with pytest.raises(RequestError) as refused:
            await pair.prompt(await pair.new(workspace), "hi")
        assert "No key." in str(refused.value)
        assert kind_of(refused.value) == "auth"


async def test_a_mode_holds_from_the_next_turn(workspace: Path, script: Script) -> None:
    (workspace / "a.py").write_text("old\n")
    script({"calls": [EDIT]}, {"text": "ok"})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.agent.set_session_mode(session_id=session, mode_id="ask")
        await pair.prompt(session, "edit")
        assert [u.current_mode_id for u in pair.editor.of("current_mode_update")] == ["ask"]
        assert pair.editor.asked == []
        with pytest.raises(RequestError, match="Invalid params"):
            await pair.agent.set_session_mode(session_id=session, mode_id="yolo")
    assert (workspace / "a.py").read_text() == "old\n"


async def test_a_todo_list_is_shown_as_a_plan(workspace: Path, script: Script) -> None:
    items = [{"title": "Look", "status": "completed"}, {"title": "Mend", "status": "in_progress"}]
    script({"calls": [{"tool": "todo/write", "args": {"items": items}}]}, {"text": "ok"})
    async with connected() as pair:
        await pair.prompt(await pair.new(workspace), "go")
        entries = pair.editor.of("plan")[-1].entries
        assert [(e.content, e.status) for e in entries] == [("Look", "completed"), ("Mend", "in_progress")]


async def test_a_question_with_choices_has_a_button_for_each(workspace: Path, script: Script) -> None:
    ask: dict[str, Any] = {"tool": "user/ask", "args": {"question": "Which?", "choices": ["red", "blue"]}}
    script({"calls": [ask]}, {"text": "It is {{user}}."})
    async with connected(Editor(pick=lambda call, options: "1")) as pair:
        await pair.prompt(await pair.new(workspace), "go")
        [(call, options)] = pair.editor.asked
        assert call.title == "Which?"
        assert [o.name for o in options][:2] == ["red", "blue"]
        done = next(u for u in pair.editor.of("tool_call_update") if u.status == "completed")
        assert "blue" in done.content[0].content.text


async def test_a_question_without_choices_ends_the_turn_and_the_next_prompt_answers_it(
    workspace: Path, script: Script
) -> None:
    ask: dict[str, Any] = {"tool": "user/ask", "args": {"question": "What name?"}}
    script({"calls": [ask]}, {"text": "Thanks."})
    async with connected() as pair:
        session = await pair.new(workspace)
        assert (await pair.prompt(session, "go")).stop_reason == "end_turn"
        assert "What name?" in pair.editor.said
        assert (await pair.prompt(session, "Daiku")).stop_reason == "end_turn"
        assert pair.editor.said.endswith("Thanks.")
        done = [u for u in pair.editor.of("tool_call_update") if u.status == "completed"]
        assert "Daiku" in done[-1].content[0].content.text


async def test_a_proposed_plan_is_shown_step_by_step(workspace: Path, script: Script) -> None:
    steps = [{"name": "Look"}, {"name": "Mend", "depends_on": ["1"]}]
    propose = {"tool": "plan/propose", "args": {"name": "Mending", "goal": "mend it", "steps": steps}}
    script({"calls": [propose]}, {"text": "There."})
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.agent.set_session_mode(session_id=session, mode_id="plan")
        await pair.prompt(session, "plan")
        shown = pair.editor.of("plan")
        assert shown, [u for _, u in pair.editor.updates]
        assert [e.status for e in shown[-1].entries] == ["pending"] * len(shown[-1].entries)


async def test_an_empty_prompt_is_refused(workspace: Path, script: Script) -> None:
    script({"text": "x"})
    async with connected() as pair:
        with pytest.raises(RequestError, match="The prompt is empty"):
            await pair.prompt(await pair.new(workspace), "  ")


async def test_files_selections_and_pictures_of_a_prompt_reach_the_run(
    workspace: Path, script: Script
) -> None:
    script({"text": "ok"})
    (workspace / "a.py").write_text("x\n")
    uri = (workspace / "a.py").as_uri()
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.agent.prompt(
            session_id=session,
            prompt=[
                text_block("look at "),
                resource_link_block(name="a.py", uri=uri),
                resource_block(embedded_text_resource(uri=f"{uri}#L2:3", text="y")),
                image_block(data=PIXEL, mime_type="image/png"),
            ],
        )
    async with lsp.connected(workspace) as whole:
        got = await whole.client.request("daiku/session/get", {"sessionId": session})
    start = next(c["data"] for c in got["chunks"] if c["type"] == "run_started")
    assert start["prompt"] == "look at @a.py@a.py#L2:3"
    assert [(c["kind"], c["path"]) for c in start["context"]] == [("file", "a.py"), ("selection", "a.py")]
    assert start["context"][1]["range"]["start"]["line"] == 1
    assert start["images"] == [{"mediaType": "image/png", "data": PIXEL}]


async def test_a_session_with_a_turn_under_way_is_not_loaded_over_it(workspace: Path, script: Script) -> None:
    script({"text": "word " * 200, "delay_ms": 20})
    async with connected() as pair:
        session = await pair.new(workspace)
        turn = asyncio.ensure_future(pair.prompt(session, "talk"))
        await pair.editor.until(lambda: pair.editor.said)
        with pytest.raises(RequestError) as refused:
            await pair.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
        assert kind_of(refused.value) == "busy"
        await pair.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"


async def test_a_limit_ends_the_turn_and_says_which(
    workspace: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIKU_LIMITS__MAX_ROUNDS", "1")
    look = {"calls": [{"tool": "files/list", "args": {}}]}
    script(look, look, {"text": "never"})
    async with connected() as pair:
        ended = await pair.prompt(await pair.new(workspace), "go")
        assert ended.stop_reason == "max_turn_requests"
        assert "⚠" in pair.editor.said


async def test_a_plan_is_worked_by_the_team_on_the_persons_word(workspace: Path, script: Script) -> None:
    steps = [{"name": "Look"}]
    propose = {"tool": "plan/propose", "args": {"name": "Mending", "goal": "mend it", "steps": steps}}
    script({"calls": [propose]}, {"text": "There."}, *({"text": "ok"} for _ in range(12)))
    async with connected() as pair:
        session = await pair.new(workspace)
        await pair.prompt(session, "plan")
        assert [c.name for c in pair.editor.of("available_commands_update")[-1].available_commands] == [
            "work"
        ]
        with contextlib.suppress(RequestError):
            await pair.prompt(session, "/work")
    async with lsp.connected(workspace) as whole:
        got = await whole.client.request("daiku/session/get", {"sessionId": session})
    starts = [c["agent"] for c in got["chunks"] if c["type"] == "run_started" and "parent" not in c]
    assert starts == ["coordinator", "team"]
    plans = [c["data"]["plan"] for c in got["chunks"] if c["type"] == "plan"]
    assert plans[0]["status"] == "draft"
    assert plans[1]["status"] == "approved"


async def test_there_is_no_work_without_a_plan(workspace: Path, script: Script) -> None:
    script({"text": "x"})
    async with connected() as pair:
        session = await pair.new(workspace)
        with pytest.raises(RequestError, match="no plan"):
            await pair.prompt(session, "/work")
        with pytest.raises(RequestError):
            await pair.prompt(session, "/resume")
