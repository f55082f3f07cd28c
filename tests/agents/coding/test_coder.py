"""The coder: the files of its reply are written through guard and jail; anything else is asked for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.messages import AssistantMessage, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, CommandOutcome, CommandsRun, EditsMade, Findings
from daiku.domain.work.patches import SearchReplace
from daiku.domain.work.plans import Plan, Step
from daiku.domain.work.research import Finding
from daiku.edits.rules.blocks import EditBlock
from daiku.edits.rules.fileblocks import parse_file_blocks, render_file_blocks
from daiku.edits.rules.patch import WholeFile, parse_patch
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import find_prompts_folder
from daiku.run.recorded.replay import replay
from daiku.run.rules.state.state import Conversation, State
from daiku.team.coding.coder import CODE, build_code_request, collect_edits
from daiku.team.part import Stage
from daiku.team.table import find_agent
from daiku.texts.text import Text
from tests.agents.acting import PROTOCOLS, act, app_with, in_protocol, said
from tests.cases import for_each

TWO = """I split it in two.

~~~
File: `src/snake.py`:
```python
def board() -> dict[str, int]:
    return {"width": 20}
```

File: `requirements.txt`:
```
curses-menu>=1
```
~~~
"""
ASKED = (UserMessage(text="Write it."),)


def read(text: str, *, cut: bool = False) -> AssistantMessage:
    found = CODE.read(AssistantMessage(text=Text(text)), ASKED, cut)
    assert isinstance(found, AssistantMessage), found
    return found


def problem(text: str, *, cut: bool = False) -> str:
    found = CODE.read(AssistantMessage(text=Text(text)), ASKED, cut)
    assert isinstance(found, Unreadable), found
    return found.problem


def calls(text: str, *, cut: bool = False) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool, call.args) for call in read(text, cut=cut).calls]


# -- the form ------------------------------------------------------------------------------


def test_each_block_is_one_whole_file() -> None:
    reply = read(TWO)
    (call,) = reply.calls
    assert call.tool == "files/patch", "all of them are written or none"
    assert parse_patch(str(call.args["patch"])) == (
        WholeFile("src/snake.py", 'def board() -> dict[str, int]:\n    return {"width": 20}\n'),
        WholeFile("requirements.txt", "curses-menu>=1\n"),
    )
    assert reply.text == "I split it in two.\n\n- `src/snake.py`\n- `requirements.txt`"


def test_of_a_path_given_twice_the_last_counts_with_a_warning() -> None:
    reply = read("File: `a.py`:\n```py\none\n```\nFile: `a.py`:\n```py\ntwo\n```\n")
    assert [c.args for c in reply.calls] == [{"path": "a.py", "content": "two\n"}]
    assert "Note: a.py: given twice; the last one is used" in reply.text


def test_braces_in_code_are_no_json() -> None:
    text = 'File: `a.json`:\n```json\n{"actions": [{"operation": "shell/run", "args": {}}]}\n```'
    assert [tool for tool, _ in calls(text)] == ["files/write"]


@for_each(
    "patch",
    [
        "src/a.py\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n",
        "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-one\n+two\n",
        "*** Begin Patch\n*** Update File: src/a.py\n@@\n-one\n+two\n*** End Patch\n",
    ],
)
def test_a_patch_in_any_form_is_one_patch(patch: str) -> None:
    reply = read(f"I change one line.\n\n{patch}")
    assert [c.tool for c in reply.calls] == ["files/patch"]
    assert reply.text == "I change one line.\n\n- `src/a.py`"


def test_new_files_and_changes_of_old_ones_go_together() -> None:
    text = (
        "File: `new.py`:\n```py\nx = 1\n```\n\nsrc/a.py\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n"
    )
    ((tool, args),) = calls(text)
    assert tool == "files/patch"
    assert parse_patch(args["patch"]) == (
        WholeFile("new.py", "x = 1\n"),
        EditBlock("src/a.py", SearchReplace(search="one\n", replace="two\n")),
    )


def test_a_file_whose_end_is_not_certain_leaves_all_files_unwritten() -> None:
    content = "# T\n```\nls\n```\nend\n"
    assert "longer fence" in problem(f"File: `a.py`:\n```py\na\n```\n\nFile: `r.md`:\n```md\n{content}```\n")


def test_a_file_outside_the_wrapper_is_told_and_the_reply_is_not_finished() -> None:
    reply = read("~~~\nFile: `t1.py`:\n```py\n1\n```\n~~~\nAnd the test:\nFile: `t2.py`:\n```py\n2\n```\n")
    assert "Note: t2.py: ignored, because it is outside the ~~~ block" in reply.text
    done = ToolMessage(call_id=reply.calls[0].id, tool="files/write", ok=True, text="written")
    assert CODE.after_calls((*ASKED, reply, done)) is None


def test_a_change_inside_a_file_block_is_not_written_as_the_file() -> None:
    text = "File: `a.py`:\n```py\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n```\n"
    assert [tool for tool, _ in calls(text)] == ["files/patch"]


def test_a_file_about_patches_is_a_file() -> None:
    text = "File: `docs.md`:\n````md\n# How\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n````\n"
    assert [tool for tool, _ in calls(text)] == ["files/write"]


@for_each(
    "text",
    ["", "Here is how I would do it.", "```py\nprint(1)\n```", '{"files": {"a.py": "x"}}', "File: `a.py`:"],
)
def test_any_other_reply_is_unreadable(text: str) -> None:
    assert "File:" in problem(text)


def test_a_block_that_never_ends_is_told() -> None:
    assert "code fence is not closed" in problem("File: `a.py`:\n```py\nx = 1\n")


def test_of_a_reply_that_was_cut_off_the_whole_files_count() -> None:
    text = "File: `a.py`:\n```py\nx = 1\n```\nFile: `b.py`:\n```py\ny ="
    reply = read(text, cut=True)
    assert [c.args["path"] for c in reply.calls] == ["a.py"]
    answers = tuple(ToolMessage(call_id=c.id, tool=c.tool, ok=True, text="ok") for c in reply.calls)
    assert CODE.after_calls((*ASKED, reply, *answers)) is None, "the rest is asked for"
    assert "cut off" in problem("File: `b.py`:\n```py\ny =", cut=True)


def test_nothing_to_change_is_an_answer() -> None:
    assert read("No change: it is there already.").calls == ()


def test_words_count_once_something_was_changed() -> None:
    call = AssistantMessage(calls=read(TWO).calls[:1])
    done = ToolMessage(call_id=call.calls[0].id, tool="files/edit", ok=True, text="ok")
    words = AssistantMessage(text=Text("I renamed it."))
    assert CODE.read(words, (*ASKED, call, done), False) == words
    failed = done.model_copy(update={"ok": False})
    assert isinstance(CODE.read(words, (*ASKED, call, failed), False), Unreadable)


def test_the_last_words_need_every_change_made_and_nothing_worse() -> None:
    reply = read(TWO)
    reply = reply.model_copy(update={"calls": (*reply.calls, ToolCall(tool="files/write", args={}))})
    ok = [ToolMessage(call_id=c.id, tool=c.tool, ok=True, text="written") for c in reply.calls]
    closing = CODE.after_calls((*ASKED, reply, *ok))
    assert isinstance(closing, AssistantMessage)
    assert closing.text == "The changes are made."
    assert CODE.after_calls((*ASKED, reply, ok[0])) is None
    assert CODE.after_calls((*ASKED, reply, ok[0], ok[1].model_copy(update={"ok": False}))) is None
    worse = ok[1].model_copy(update={"new_problems": 1})
    assert CODE.after_calls((*ASKED, reply, ok[0], worse)) is None
    assert CODE.after_calls((*ASKED, reply, *ok, UserMessage(text="Wait."))) is None


def test_files_are_written_as_blocks_that_are_read_back() -> None:
    files = {"a.py": "x = 1\n", "README.md": "```sh\nls\n```\n", "Makefile": "all:\n", "e.txt": "\n"}
    assert parse_file_blocks(render_file_blocks(files.items())).files == files


def blocks(*names: str) -> str:
    return "\n".join(f"File: `{name}`:\n```\n{name}\n```\n" for name in names)


@pytest.mark.parametrize("path", ["../b", "src/../../b", "..\\b"])
def test_a_path_out_of_the_project_is_left_out_with_a_warning(path: str) -> None:
    found = read(blocks("a", path, "..c"))
    [made] = found.calls
    assert made.tool == "files/patch"
    assert parse_file_blocks(str(made.args["patch"])).files == {"a": "a\n", "..c": "..c\n"}
    assert f"{path} leads outside the project" in found.text
    assert calls(blocks("a", path)) == [("files/write", {"path": "a", "content": "a\n"})]


@pytest.mark.parametrize("path", ["/nowhere/b", "~/b", ".git/hooks/pre-commit"])
def test_a_path_that_may_be_refused_has_a_call_of_its_own(path: str) -> None:
    tools = [tool for tool, _ in calls(blocks("a", path, "c"))]
    assert tools == ["files/patch", "files/write"]


# -- whole runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_one_reply_writes_its_files(tmp_path: Path, protocol: str) -> None:
    app = app_with(tmp_path, {"text": TWO}, protocol=protocol)
    result, state, watch = await act(app, "coder", "Write it.")
    project = tmp_path / "project"
    assert result.status == "completed"
    assert (project / "requirements.txt").read_text() == "curses-menu>=1\n"
    assert "def board()" in (project / "src" / "snake.py").read_text()
    made = collect_edits(state)
    assert isinstance(made, EditsMade)
    assert [(f.path, f.kind, f.added) for f in made.files] == [
        ("src/snake.py", "create", 2),
        ("requirements.txt", "create", 1),
    ]
    assert made.notes.startswith("I split it in two.")
    assert len(made.checkpoints) == 1
    assert said(watch)[-1] == "The changes are made."
    assert (await replay(watch.chunks)).difference is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_model_may_use_the_tools_as_well(tmp_path: Path, protocol: str) -> None:
    words = {"command": '{"done": true, "comment": "One is two now."}'}
    app = app_with(
        tmp_path,
        in_protocol(protocol, "files/read", {"path": "a.py"}),
        in_protocol(protocol, "files/edit", {"path": "a.py", "edits": [{"search": "one", "replace": "two"}]}),
        {"text": words.get(protocol, "One is two now.")},
        protocol=protocol,
    )
    (tmp_path / "project" / "a.py").write_text("one = 1\n")
    result, state, _ = await act(app, "coder")
    assert (result.status, result.text) == ("completed", "One is two now.")
    assert (tmp_path / "project" / "a.py").read_text() == "two = 1\n"
    assert [f.path for f in state.done.files] == ["a.py"]


@pytest.mark.parametrize("path", ["../out.txt", "/tmp/daiku-out/out.txt", "a/../../out.txt", "~/out.txt"])
async def test_paths_outside_are_refused_and_the_model_is_told(tmp_path: Path, path: str) -> None:
    outside = f"File: `{path}`:\n```\nx\n```\nFile: `in.txt`:\n```\ny\n```\n"
    again = outside.replace(path, "out.txt")
    app = app_with(tmp_path, {"text": outside}, {"text": again})
    result, state, watch = await act(app, "coder")
    project = tmp_path / "project"
    assert result.status == "completed"
    told = [m for m in state.conversation.messages if isinstance(m, ToolMessage)]
    left_out = ".." in path
    assert [m.ok for m in told] == ([True] if left_out else [True, False, True]), "the others are written"
    assert any(f"{path} leads outside the project" in text for text in said(watch)) == left_out
    assert {p.name for p in tmp_path.iterdir()} <= {"project", "home", "script.jsonl"}
    assert not Path("/tmp/daiku-out").exists()
    assert (project / "in.txt").read_text() == "y\n"
    assert (project / "out.txt").exists() is not left_out


async def test_a_rejected_file_is_not_written_and_the_model_goes_on(tmp_path: Path) -> None:
    app = app_with(
        tmp_path, {"text": TWO}, {"text": "No change: you did not want it."}, approvals={"edit": "ask"}
    )
    result, _, _ = await act(app, "coder", approvals="none")
    assert result.status == "completed_unverified"
    assert [reason.kind for reason in result.reasons] == ["edit_not_applied"]
    assert [p.name for p in (tmp_path / "project").iterdir()] == []


async def test_the_coder_runs_nothing(tmp_path: Path) -> None:
    run = {"calls": [{"tool": "shell/run", "args": {"command": "touch made"}}]}
    result, _, _ = await act(app_with(tmp_path, run, {"text": TWO}), "coder")
    assert result.status == "completed"
    assert not (tmp_path / "project" / "made").exists()


# -- the request ---------------------------------------------------------------------------

FOUND = (
    Finding(
        query="curses", url="https://c.example.com/", title="Curses", text="use wrapper()\n```py\nx\n```"
    ),
    Finding(query="colours", url="https://d.example.com/", title="Colours", text="16 of them"),
)


def test_the_sections_come_in_order_and_results_reach_the_prompt() -> None:
    plan = Plan(
        name="Snake", goal="g", steps=(Step(name="Write it", acceptance=("make",)), Step(name="Test it"))
    )
    brief = Brief(
        request="A game, please.",
        plan=plan,
        step_id=plan.steps[0].step_id,
        findings=Findings(queries=("curses", "colours"), results=FOUND),
    )
    text = build_code_request(brief)
    places = [
        text.index(part)
        for part in (
            "Project Step-by-step Plan:\n```",
            "- [ ] Step 2: Test it",
            "Step 1: Write it\nIt is done when this passes: make",
            "Context From User:\n```\nA game, please.\n```",
            "Context From Knowledge Base:",
            "Query: curses\n\nResult:\n````\nCurses\nSource: https://c.example.com/\nuse wrapper()",
            "\n---\n",
            "Query: colours\n\nResult:\n```\nColours",
        )
    ]
    assert places == sorted(places)
    assert text.count("\n---\n") == 1
    assert "No context found." not in text


def test_without_plan_and_results_nothing_is_said_of_them() -> None:
    for brief in (Brief(request="x"), Brief(request="x", findings=Findings())):
        assert build_code_request(brief) == "Context From User:\n```\nx\n```"


def test_what_the_researcher_says_of_the_project_reaches_the_prompt() -> None:
    text = build_code_request(Brief(request="x", findings=Findings(notes="price() is in shop.py:3")))
    assert "Context From Knowledge Base:" in text
    assert text.endswith("```\nprice() is in shop.py:3\n```")


def test_what_failed_before_is_told() -> None:
    failed = CommandOutcome(command="make", exit_code=2, output="stderr: no rule")
    text = build_code_request(Brief(request="x", commands=CommandsRun(commands=(failed,))))
    assert "`make` ended with exit code 2:\n```\nstderr: no rule\n```" in text


@for_each(
    "demand",
    ["plan", "knowledge base", "no comments that say", "first try", "exact file names", "Cargo.toml"],
)
def test_the_prompt_demands_what_it_must(demand: str) -> None:
    prompt = (find_prompts_folder() / "agents" / "coder.j2").read_text("utf-8")
    assert demand in prompt


def test_nothing_changed_is_handed_over_as_that() -> None:
    assert (
        collect_edits(State(conversation=Conversation(text=Text("No change: it is there.")))) == EditsMade()
    )
    assert find_agent("coder").stage == Stage(collect_edits, build_code_request, shows="named")
    assert json.loads(EditsMade().model_dump_json())["files"] == []
