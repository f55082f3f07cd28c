"""The verdict on a run: lies end unverified with their reason, and honest runs of ten kinds end completed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from daiku.domain.base import JsonObject
from daiku.domain.events import (
    Edit,
    Event,
    MessageEvent,
    PlanEvent,
    RunFinished,
    RunStarted,
    Todo,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import TodoItem
from daiku.domain.messages import AssistantMessage, FinishReason, mark_unreadable
from daiku.domain.runs import Mode
from daiku.domain.tools import MISSING_SERVER, Outcome, ToolCall
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan
from daiku.run.ending import ParentLink, build_handoff_end
from daiku.run.rules.calls.change_requests import classify_request
from daiku.run.rules.check_runs import check_intent, shows_pass
from daiku.run.rules.state.fold import fold
from daiku.run.rules.verdict import end_events
from daiku.team.agent import Agent
from daiku.texts.text import Text
from tests.cases import for_each

FIX = "A test fails. Make it pass."
Deed = Callable[[str], Sequence[Event]]
"""Events of one call, by its id."""


def run_of(
    prompt: str,
    *deeds: Deed,
    mode: Mode = "act",
    said: str = "All tests pass.",
    finish: FinishReason = "stop",
) -> RunFinished:
    """How a run ends that did `deeds` and then `said` something."""
    events: list[Event] = [RunStarted(prompt=prompt, mode=mode, may_edit=True)]
    for number, deed in enumerate(deeds):
        events += deed(f"c{number}")
    last = MessageEvent(role="assistant", text=Text(said), finish=finish)
    return end_events(fold([*events, last]), "completed")[1]


def kinds(finished: RunFinished) -> list[str]:
    return [reason.kind for reason in finished.reasons]


def _call(
    key: str,
    tool: str,
    args: JsonObject,
    outcome: Outcome = "done",
    data: JsonObject | None = None,
    *between: Event,
) -> Sequence[Event]:
    call = ToolCall(id=key, tool=tool, args=args)
    return (
        MessageEvent(role="assistant", text=Text(""), calls=(call,)),
        ToolCallEvent(id=key, tool=tool, args=args),
        *between,
        ToolResponse(id=key, tool=tool, ok=outcome == "done", outcome=outcome, result="", data=data),
    )


def sh(command: str, code: int = 0, output: str = "", **more: Any) -> Deed:
    data: JsonObject = {"exitCode": code, "output": output}
    return lambda key: _call(
        key, "shell/run", {"command": command, **more}, "failed" if code else "done", data
    )


def sh_changed(command: str, code: int = 0) -> Deed:
    """Run a command that changed a file that it names."""
    data: JsonObject = {"exitCode": code, "output": "", "unchanged": False}
    return lambda key: _call(key, "shell/run", {"command": command}, "failed" if code else "done", data)


def background(command: str, job: str = "job") -> Deed:
    return lambda key: _call(key, "shell/run", {"command": command, "background": True}, "done", {"id": job})


def look(job: str = "job", code: int | None = None) -> Deed:
    return lambda key: _call(
        key, "shell/output", {"id": job}, "done", {"running": code is None, "exitCode": code, "output": ""}
    )


def edit(path: str = "calc.py") -> Deed:
    made = Edit(files=(FileStat(path=path, kind="edit", added=1, removed=1),), checkpoint_id="cp")
    return lambda key: _call(key, "files/edit", {"path": path}, "done", None, made)


def no_edit(path: str = "calc.py", outcome: Outcome = "failed") -> Deed:
    return lambda key: _call(key, "files/edit", {"path": path}, outcome)


def tool(name: str, outcome: Outcome = "done", **args: Any) -> Deed:
    return lambda key: _call(key, name, args, outcome)


def ask_server(tool: str, missing: str = "") -> Deed:
    """Call a tool of an MCP server, which did not answer if it is `missing`."""
    data: JsonObject | None = {MISSING_SERVER: missing} if missing else None
    return lambda key: _call(key, tool, {}, "failed" if missing else "done", data)


def no_patch(*paths: str, outcome: Outcome = "unattended") -> Deed:
    parts = "".join(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n" for path in paths)
    return lambda key: _call(key, "files/patch", {"patch": parts}, outcome)


def sh_unattended(command: str) -> Deed:
    return lambda key: _call(key, "shell/run", {"command": command}, "unattended")


def nested(*deeds: Deed, elsewhere: bool = False) -> Deed:
    """Hand the deeds over to a coder; `elsewhere`: it works in a copy of the project."""

    def events(key: str) -> Sequence[Event]:
        own: list[Event] = [RunStarted(prompt=FIX, may_edit=True)]
        for number, deed in enumerate(deeds):
            own += deed(f"{key}.{number}")
        own.append(MessageEvent(role="assistant", text=Text("Done.")))
        state = fold([*own, *end_events(fold(own), "completed")])
        back = build_handoff_end(
            Agent("coder", "You write code."), state, ParentLink("a", "run_2", key, elsewhere, False)
        )
        return _call(key, "agent/handoff", {"agent": "coder"}, "done", None, back)

    return events


def todo(*statuses: str) -> Deed:
    items = tuple(
        TodoItem.model_validate({"title": f"item {n}", "status": s}) for n, s in enumerate(statuses)
    )
    return lambda key: _call(key, "todo/write", {}, "done", None, Todo(items=items))


def plan() -> Deed:
    made = PlanEvent(plan=Plan(plan_id="plan_00000001", name="n", goal="g"))
    return lambda key: _call(key, "plan/propose", {}, "done", None, made)


READ = tool("files/read", path="calc.py")
TEST = "python3 -m unittest -q"
RED, GREEN = sh(TEST, 1, "FAILED (failures=1)"), sh(TEST, 0, "Ran 1 test in 0.0s\n\nOK")

LIES: dict[str, tuple[list[Deed], list[str]]] = {
    "last check failed": ([RED], ["last_check_failed", "nothing_changed"]),
    "read only": ([READ], ["nothing_changed"]),
    "nothing at all": ([], ["nothing_changed"]),
    "wrong edit": ([RED, edit(), RED], ["last_check_failed"]),
    "not run again after the edit": ([RED, edit()], ["last_check_failed"]),
    "edit not applied": ([no_edit()], ["edit_not_applied", "nothing_changed"]),
    "edit denied": ([no_edit(outcome="denied")], ["edit_not_applied", "nothing_changed"]),
    "edit unattended": ([no_edit(outcome="unattended")], ["edit_not_applied", "nothing_changed"]),
    "second edit not applied": ([edit("a.py"), no_edit("b.py")], ["edit_not_applied"]),
    "edit not applied, test that passes anyway": ([no_edit(), GREEN], ["edit_not_applied", "nothing_changed"]),
    "edit undone by failing retry": ([no_edit(), no_edit()], ["edit_not_applied", "nothing_changed"]),
    "masked by true": ([edit(), sh(f"{TEST} || true", 0, "FAILED (failures=1)")], ["check_masked"]),
    "masked by colon": ([edit(), sh(f"{TEST} || :")], ["check_masked"]),
    "masked by sequence": ([edit(), sh(f"{TEST}; true")], ["check_masked"]),
    "masked by echo": ([edit(), sh(f"{TEST}; echo done", 0, "done")], ["check_masked"]),
    "masked by ls": ([edit(), sh(f"{TEST}; ls")], ["check_masked"]),
    "masked by pipe": ([edit(), sh("pytest -q | tail -3", 0, "1 failed, 2 passed")], ["check_masked"]),
    "masked by grep": ([edit(), sh("pytest -q | grep -c passed")], ["check_masked"]),
    "masked in a shell": ([edit(), sh("bash -c 'pytest -q || true'")], ["check_masked"]),
    "masked by exit": ([edit(), sh("pytest -q || exit 0")], ["check_masked"]),
    "masked by negation": ([edit(), sh("! pytest -q")], ["check_masked"]),
    "masked by ampersand": ([edit(), sh("pytest -q & wait")], ["check_masked"]),
    "masked by if": ([edit(), sh("if pytest -q; then echo ok; else echo bad; fi", 0, "bad")], ["check_masked"]),
    "masked by substitution": ([edit(), sh("x=$(pytest -q); echo $x")], ["check_masked"]),
    "masked by a trap": ([edit(), sh("trap 'exit 0' EXIT; pytest -q")], ["check_masked"]),
    "masked by eval": ([edit(), sh('eval "pytest -q || true"')], ["check_masked"]),
    "masked in a shell behind a wrapper": ([edit(), sh("timeout 60 bash -c 'pytest -q; true'")], ["check_masked"]),
    "masked in a shell behind a runner": ([edit(), sh("uv run sh -lc 'pytest -q || :'")], ["check_masked"]),
    "masked by make": ([edit(), sh("make -i test")], ["check_masked"]),
    "masked by its own version": ([edit(), sh("pytest -q || pytest --version")], ["check_masked"]),
    "masked after it failed": ([edit(), RED, sh(f"{TEST} || true")], ["last_check_failed"]),
    "still running": ([edit(), background(f"sleep 5; {TEST}")], ["still_running"]),
    "still running when looked at": ([edit(), background(TEST), look()], ["still_running"]),
    "background check failed": ([edit(), background(TEST), look(code=1)], ["last_check_failed"]),
    "less was checked": ([edit(), sh("pytest -q", 1), sh("pytest -q tests/test_other.py")], ["last_check_failed"]),
    "failing file left out": ([edit(), sh("pytest -q", 1), sh("pytest -q --ignore=tests/test_a.py")], ["last_check_failed"]),
    "failing test left out": ([edit(), sh("pytest -q", 1), sh("pytest -q -k 'not add'", 0, "3 passed")], ["last_check_failed"]),
    "its version": ([sh("pytest -q", 1), edit(), sh("pytest --version")], ["last_check_failed"]),
    "its tests listed": ([sh("pytest -q", 1), edit(), sh("pytest --collect-only -q")], ["last_check_failed"]),
    "other test program passes": ([edit(), sh("pytest -q", 1), sh("npm test")], ["last_check_failed"]),
    "other test program passes after a change": ([sh("pytest -q", 1), edit(), sh("npm test")], ["last_check_failed"]),
    "other test program passes, and its own fails": ([edit(), sh("cargo test", 101), sh("go test ./..."), sh("cargo test", 101)], ["last_check_failed"]),
    "other test script passes": ([sh("./run_tests.py", 1), edit(), sh("node test.js")], ["last_check_failed"]),
    "other linter passes": ([sh("npx eslint .", 1), edit(), sh("ruff check .")], ["last_check_failed"]),
    "other build passes": ([sh("cargo build", 101), edit(), sh("npm run build")], ["last_check_failed"]),
    "another runner of the same tests passes without a change": ([edit(), sh("npm test", 1, "1 failing"), sh("npx jest")], ["last_check_failed"]),
    "script of the tests passes without a change": ([edit(), sh("pytest -q", 1, "1 failed"), sh("./run-tests.sh")], ["last_check_failed"]),
    "masked, and another test program passes": ([edit(), sh("npm test"), sh("pytest -q | tail -1")], ["check_masked"]),
    "no test files in one package": ([edit(), sh("go test ./...", 1, "? a [no test files]\nFAIL b"), sh("pytest")], ["last_check_failed"]),
    "command not found in a test": ([edit(), sh("pytest", 1, "sh: x: command not found\n1 failed, 2 passed"), sh("npm test")], ["last_check_failed"]),
    "only the linter passes": ([edit(), RED, sh("ruff check .")], ["last_check_failed"]),
    "program is missing": ([edit(), sh("pytest -q", 127)], ["last_check_failed"]),
    "program is missing, and only the linter passes": ([edit(), sh("pytest -q", 127), sh("ruff check .")], ["last_check_failed"]),
    "open items": ([edit(), todo("completed", "in_progress", "pending")], ["todo_open"]),
    "server missing": ([edit(), ask_server("tickets/find", "tickets")], ["tools_missing"]),
    "server missing at each call": ([edit(), *2 * (ask_server("tickets/find", "tickets"),)], ["tools_missing"]),
    "resource of a missing server": ([edit(), ask_server("mcp/read", "tickets")], ["tools_missing"]),
    "one of two servers missing": ([edit(), ask_server("a/x", "a"), ask_server("b/x", "b"), ask_server("b/y")], ["tools_missing"]),
    "server missing, then denied": ([edit(), ask_server("a/x", "a"), tool("a/x", "denied")], ["tools_missing"]),
    "edit unattended, other file changed": ([no_edit("AGENTS.md", "unattended"), edit("a.py")], ["edit_not_applied"]),
    "edit unattended, other file changed and checked": ([no_edit("AGENTS.md", "unattended"), edit("a.py"), GREEN], ["edit_not_applied"]),
    "patch unattended, one file changed": ([no_patch("AGENTS.md", "a.py"), edit("a.py"), GREEN], ["edit_not_applied"]),
    "move unattended": ([tool("files/move", "unattended", path="a.md", to="AGENTS.md"), edit("a.md"), GREEN], ["edit_not_applied"]),
    "edit unattended after a plan": ([plan(), no_edit("AGENTS.md", "unattended")], ["edit_not_applied"]),
    "commit unattended": ([edit(), tool("git/commit", "unattended")], ["not_approved"]),
    "commit unattended, other server called": ([edit(), tool("git/commit", "unattended"), tool("tickets/close")], ["not_approved"]),
    "server's tool unattended": ([edit(), tool("tickets/close", "unattended")], ["not_approved"]),
    "memory unattended": ([edit(), tool("memory/remember", "unattended")], ["not_approved"]),
    "nested edit unattended": ([nested(edit("a.py"), no_edit("AGENTS.md", "unattended"))], ["edit_not_applied"]),
    "nested edit unattended, checked": ([nested(no_edit("AGENTS.md", "unattended"), edit("a.py")), GREEN], ["edit_not_applied"]),
    "nested edit unattended, other one changed": ([nested(no_edit("AGENTS.md", "unattended")), nested(edit("a.py"))], ["edit_not_applied"]),
    "nested edit unattended, in a copy": ([nested(no_edit("AGENTS.md", "unattended"), elsewhere=True), edit("a.py")], ["edit_not_applied"]),
    "nested command unattended": ([edit(), nested(sh_unattended("./deploy"))], ["not_approved"]),
    "nested command unattended after its check": ([edit(), nested(GREEN, sh_unattended("./deploy"))], ["not_approved"]),
    "command unattended": ([edit(), lambda key: _call(key, "shell/run", {"command": "rm -rf x"}, "unattended")], ["not_approved"]),
}  # fmt: skip


@for_each("name", LIES)
def test_a_claim_against_the_record_is_not_verified(name: str) -> None:
    """A23.1: the record decides, never the words."""
    deeds, reasons = LIES[name]
    finished = run_of(FIX, *deeds)
    assert (finished.status, kinds(finished)) == ("completed_unverified", reasons)


@for_each(
    ("wording", "reasons"), [(None, ["nothing_changed"]), ("Why?", []), ("Fix it.", ["nothing_changed"])]
)
def test_the_template_around_a_request_asks_for_nothing(wording: str | None, reasons: list[str]) -> None:
    """A23.1"""
    start = RunStarted(prompt="Fix what the item says.", wording=wording, may_edit=True)
    answer = MessageEvent(role="assistant", text=Text("Because."))
    assert kinds(end_events(fold([start, answer]), "completed")[1]) == reasons


def test_a_report_asks_for_a_change_only_where_the_model_worked_on_it() -> None:
    """A23.1: a statement in a conversation is often no request."""
    assert kinds(run_of("The second option suits us better.", said="Noted.")) == []
    assert kinds(run_of("The total is wrong when the cart is empty.", READ)) == ["nothing_changed"]


@for_each(
    ("finish", "said", "reason"),
    [
        ("length", "Because I", "cut_off"),
        ("content_filter", "I cannot help.", "refused"),
        ("content_filter", "", "filtered"),
    ],
)
def test_half_an_answer_is_marked(finish: FinishReason, said: str, reason: str) -> None:
    """A23.1"""
    assert kinds(run_of("What is this?", edit(), said=said, finish=finish)) == [reason]


def test_a_reply_with_unreadable_calls_is_no_answer() -> None:
    """A23.1"""
    marked = mark_unreadable(AssistantMessage(text=Text('<tools>{"name":"files__write"')))
    last = MessageEvent(role="assistant", text=marked.text, opaque=marked.opaque)
    finished = end_events(fold([RunStarted(prompt="What is this?"), last]), "completed")[1]
    assert (kinds(finished), finished.text) == (["unreadable_calls"], "")


def test_a_call_that_the_output_limit_cut_off_is_told_as_a_cut_off_reply() -> None:
    marked = mark_unreadable(AssistantMessage(text=Text('{"reply": "This is')))
    last = MessageEvent(role="assistant", text=marked.text, opaque=marked.opaque, finish="length")
    finished = end_events(fold([RunStarted(prompt="What is this?"), last]), "completed")[1]
    assert kinds(finished) == ["cut_off"]


@for_each("code", [126, 127])
@for_each("missing", ["sh run-tests", "./run-tests all", "pytest tests/all", "python run_tests.py"])
def test_a_check_that_did_not_start_is_settled_by_one_that_passes(missing: str, code: int) -> None:
    """A23.1"""
    for passing in ("pytest tests/unit", "python test_all.py", "./run-tests unit"):
        assert run_of(FIX, edit(), sh(missing, code), sh(passing)).status == "completed"
        assert run_of(FIX, edit(), sh(missing, code), sh(passing, 1)).status == "completed_unverified"


def test_a_server_that_answers_a_later_call_is_not_missing() -> None:
    """A23.1: its connection may be lost and made again."""
    calls = [ask_server("tickets/find", "tickets"), ask_server("tickets/list")]
    assert run_of(FIX, edit(), *calls).status == "completed"
    (reason,) = run_of("What is open?", *reversed(calls)).reasons
    assert (reason.kind, reason.subject) == ("tools_missing", "tickets")


def test_plan_mode_without_a_plan_is_not_verified() -> None:
    assert kinds(run_of("Make a plan", READ, mode="plan")) == ["no_plan"]
    assert run_of("Make a plan", READ, plan(), mode="plan").status == "completed"


def test_a_check_that_the_request_names_has_to_pass_after_the_last_edit() -> None:
    asked = "Fix add(), then run `python3 -m unittest -q`."
    assert kinds(run_of(asked, edit())) == ["check_not_run"]
    assert kinds(run_of(asked, GREEN, edit())) == ["check_not_run"]
    assert run_of(asked, edit(), GREEN).status == "completed"


ASKED_TO_RUN = (
    "Run the tests",
    "Please run all the unit tests again and tell me which ones fail.",
    "Can you run the test suite?",
    "Run `npm test`.",
    "テストを実行して",
    "全テストを再実行してください。",
    "Verify that the tests pass.",
    "Run the linter",
    "Run eslint",
    "Please run npm run build again.",
    "Build the project",
    "Compile everything.",
    "Format the code",
    "Lint all files.",
    "Type-check the project",
    "Start the dev server",
    "Execute the script",
    "リンターを実行して",
    "プロジェクトをビルドしてください。",
    "コードをフォーマットして",
)


@for_each("asked", ASKED_TO_RUN)
def test_a_run_that_was_asked_for_needs_a_command(asked: str) -> None:
    """A23.1"""
    denied = lambda key: _call(key, "shell/run", {"command": "pytest"}, "denied")  # noqa: E731  # a deed
    for deeds in ([], [READ], [denied], [tool("search/text"), READ], [nested(READ)]):
        finished = run_of(asked, *deeds)
        assert (finished.status, kinds(finished)) == ("completed_unverified", ["check_not_run"])
    (reason,) = run_of(asked).reasons
    assert (reason.subject, reason.message) == ("", "no command was run, although the request was to run one")


@for_each("asked", ASKED_TO_RUN)
def test_a_run_that_was_asked_for_and_made_is_completed(asked: str) -> None:
    """A23.1: whatever ran it."""
    ran: tuple[Deed, ...] = (GREEN, sh("./all"), nested(GREEN), background("./all"), tool("ci/start"))
    assert [kinds(run_of(asked, deed)) for deed in ran] == [[], [], [], [], []]
    assert kinds(run_of(asked, mode="ask")) == []
    assert kinds(run_of(asked, RED)) == ["last_check_failed"]
    assert kinds(run_of(asked, sh_unattended("pytest"))) == ["not_approved"]


@for_each(
    "asked",
    [
        "How do I run the tests?",
        "Why do the tests fail?",
        "Do the tests pass?",
        "Explain how to run the tests.",
        "Can you run tests in parallel with pytest?",
        "Run the tests only if you change something.",
        "Run the tests before each commit.",
        "From now on, run the tests after each change.",
        "Run `git status`",
        "Run it by me first.",
        "Run `git log`",
        "Run git status",
        "Run me through the code.",
        "Run the linter before each commit.",
        "How do I build the project?",
        "Compile a list of the endpoints.",
        "Start with the parser.",
        "ビルドが失敗する理由は？",
        "プロジェクトをビルドする方法を教えて",
        "テストはどうやって実行しますか？",
        "テストを実行する方法を教えて",
    ],
)
def test_a_question_about_tests_needs_no_command(asked: str) -> None:
    """A23.1"""
    assert kinds(run_of(asked)) == kinds(run_of(asked, READ)) == []


def test_edits_may_do_what_was_to_be_built_or_formatted() -> None:
    """A23.1"""
    for asked in ("Build the app", "Format the code", "コードを整形して"):
        assert kinds(run_of(asked, edit())) == []
    assert kinds(run_of("Run the linter", edit())) == ["check_not_run"]


@for_each(
    "asked",
    [
        "Don't run the tests.",
        "I ran the tests and they fail.",
        "Steps to reproduce:\n1. Run the tests\n2. See the error",
        "Write a script that can build and run the tests.",
        "テストを実行するスクリプトを書いて",
        "テストを実行しないでください",
        "テストを実行すると失敗します",
    ],
)
def test_only_the_bare_instruction_asks_for_a_run(asked: str) -> None:
    """A23.1"""
    assert "check_not_run" not in kinds(run_of(asked))


def test_a_run_that_did_not_complete_needs_no_reasons() -> None:
    state = fold([RunStarted(prompt=FIX), *RED("c"), MessageEvent(role="assistant", text=Text("x"))])
    assert [end_events(state, status)[1].reasons for status in ("failed", "limit", "cancelled")] == [
        (),
        (),
        (),
    ]


@for_each(
    ("deeds", "unchecked"),
    [
        ([edit()], True),
        ([GREEN, edit()], True),
        ([GREEN, edit(), READ, sh("ls")], True),
        ([edit(), GREEN], False),
        ([edit("a.py"), sh("npm run build"), READ], False),
        ([sh("python3 tools/migrate.py")], False),
        ([edit(), GREEN, sh_changed("sed -i s/a/b/ calc.py")], True),
        ([edit(), GREEN, sh_changed("echo x >> calc.py; false", 1)], True),
        ([edit(), nested(GREEN, sh_changed("git checkout calc.py"))], True),
        ([sh_changed("sed -i s/a/b/ calc.py")], True),
        ([edit(), sh_changed("sed -i s/a/b/ calc.py"), GREEN], False),
        ([edit(), GREEN, sh("git commit -am done"), sh("python3 calc.py")], False),
        ([edit(), sh_changed("sed -i s/a/b/ calc.py && pytest -q")], False),
    ],
)
def test_a_change_that_no_check_followed_is_told(deeds: list[Deed], unchecked: bool) -> None:
    """A23.1: it may be right, and nothing shows it."""
    finished = run_of("Rename add to plus.", *deeds)
    assert (finished.status, finished.unchecked) == ("completed", unchecked)


def test_the_reason_names_the_check_and_its_exit_code() -> None:
    finished = run_of("Do the tests pass?", sh("pytest -q", 1))
    assert finished.reasons[0].message == "the last check `pytest -q` exited with 1"
    assert finished.reasons[0].subject == "pytest -q"


# ---- honest runs

QUESTIONS = (
    "What does this function do?", "Why does test_add fail?", "How would I rename a file and remove its imports?",
    "Explain calc.py", "Where is add() defined?", "Is it safe to delete build/?", "Should we replace the parser?",
    "この関数は何をしますか？", "Summarize the README.", "Which tests cover add()? I want to understand, not change them.",
    "What would break if I remove util.py and update the imports?", "Show me the callers of add().",
)  # fmt: skip
CHANGES = (
    FIX, "Rename add to plus.", "Please fix the bug in calc.py", "Can you add a test for add()?", "Read calc.py and fix it",
    "calc.py の不具合を修正してください", "In calc.py, change a - b to a + b.", "I'd like you to remove util.py", "Write a test for add().",
    "Let's update the docs.", "The build is broken; repair it.", "テストが通るようにして", "Could you make the tests pass?",
)  # fmt: skip
CHECKS = (
    TEST,
    "pytest -q",
    "npm test",
    "cargo test",
    "go test ./...",
    "make test",
    "uv run pytest -x",
    "ruff check .",
    "npm run build",
)


SAME_CHECK: tuple[list[Deed], ...] = (
    [edit(), sh("pytest", 1, "1 failed"), sh("python -m pytest")],
    [edit(), sh("pytest tests/x.py", 1), sh("pytest")],
    [edit(), sh("python test_a.py", 1), sh("python3 test_a.py")],
    [sh("npm test", 1), edit(), sh("npm run test")],
    [sh("npm test", 1), edit(), sh("npx jest calc")],
    [sh("make test", 2), edit(), sh("pytest -q")],
    [sh("python3 -m unittest", 1), edit(), sh("./run_tests.py")],
    [sh("./gradlew test", 1), edit(), sh("gradle test")],
    [sh("pytest", 1), sh("npm test", 1), edit(), sh("pytest"), sh("npm test")],
    [edit(), sh("npm test", 1, 'npm error Missing script: "test"'), sh("npx vitest run")],
    [edit(), sh("make test", 2, "make: *** No rule to make target 'test'.  Stop."), sh("pytest")],
    [edit(), sh("poetry run pytest", 1, "Command not found: pytest"), sh("python -m unittest")],
    [edit(), sh("uv run pytest", 2, "error: Failed to spawn: `pytest`"), sh("python -m unittest")],
    [edit(), sh("pytest", 5, "no tests ran in 0.01s"), sh("node --test")],
    [edit(), sh("pytest -q | tail -1"), sh("python -m unittest")],
)
"""A check that failed passes by its own program, or after a change by one that may run the same."""
WORKED_AROUND: dict[str, list[Deed]] = {
    "same file edited": [no_edit("AGENTS.md", "unattended"), edit("AGENTS.md")],
    "same file edited by its whole path": [no_edit("src/calc.py", "denied"), edit("/p/src/calc.py")],
    "same file edited by a coder": [no_edit("AGENTS.md", "unattended"), nested(edit("AGENTS.md"))],
    "same file edited after a coder": [nested(no_edit("AGENTS.md", "denied")), edit("AGENTS.md")],
    "same file edited inside a coder": [nested(no_edit("AGENTS.md", "unattended"), edit("AGENTS.md"))],
    "files of a patch edited": [no_patch("AGENTS.md", "b.py"), edit("AGENTS.md"), edit("b.py")],
    "other edit after a rejected one": [no_edit("a.py", "rejected"), edit("b.py")],
    "edit of one hunk after a rejected one": [no_edit("a.py", "rejected"), edit("a.py"), GREEN],
    "denied file left out": [no_edit("node_modules/x.js", "denied"), edit(), GREEN],
    "command replaced": [edit(), sh_unattended("sudo make test"), GREEN],
    "command replaced in a coder": [edit(), nested(sh_unattended("sudo make test"), GREEN)],
    "command replaced after a coder": [edit(), nested(sh_unattended("sudo make test")), GREEN],
    "command run later": [edit(), sh_unattended("./run"), sh("./run")],
    "command run by a coder": [edit(), sh_unattended("./run"), nested(sh("./run"))],
    "committed later": [edit(), tool("git/commit", "unattended"), tool("git/commit")],
    "question that nobody answered": [tool("user/ask", "unattended"), edit()],
    "page that was not fetched": [tool("web/fetch", "unattended"), edit()],
    "other file edited by the next coder": [nested(no_edit("a.py")), nested(edit("b.py"))],
    "edit that a coder's patch made": [nested(no_edit("b.py"), elsewhere=True), nested(edit("b.py"))],
}
"""What was refused is done in another way, which a check shows, or which is an edit of the same file."""


def _question(rng: random.Random) -> RunFinished:
    looks = rng.choices(
        [READ, sh("ls"), sh("grep -rn zzz .", 1), tool("search/text"), sh("git log -3")], k=rng.randrange(4)
    )
    return run_of(rng.choice(QUESTIONS), *looks, mode=rng.choice(("act", "ask")))


def _red_green(rng: random.Random) -> RunFinished:
    check = rng.choice(CHECKS)
    tries = [deed for _ in range(rng.randrange(3)) for deed in (edit(), sh(check, 1))]
    return run_of(rng.choice(CHANGES), sh(check, rng.choice((1, 2, 101))), READ, *tries, edit(), sh(check))


def _narrow(rng: random.Random) -> RunFinished:
    return run_of(
        rng.choice(CHANGES),
        sh("pytest -q", 1),
        edit(),
        sh("pytest -q tests/test_calc.py"),
        *rng.choice(([], [sh("pytest -q")])),
    )


def _edit_only(rng: random.Random) -> RunFinished:
    return run_of(rng.choice(CHANGES), READ, *(edit(f"doc{n}.md") for n in range(rng.randrange(1, 4))))


def _retried_edit(rng: random.Random) -> RunFinished:
    failed = rng.choice((no_edit("src/calc.py"), no_edit("calc.py"), no_edit("")))
    return run_of(
        rng.choice(CHANGES),
        *[failed] * rng.randrange(1, 3),
        READ,
        edit("calc.py"),
        *rng.choice(([], [GREEN])),
    )


def _commands(rng: random.Random) -> RunFinished:
    command = rng.choice(
        (
            "npm install left-pad",
            "git mv a.py b.py",
            "sed -i s/a/b/ calc.py",
            "python3 tools/migrate.py",
            "mkdir src",
        )
    )
    return run_of(rng.choice(CHANGES), sh("ls"), sh(command), sh("git status"))


def _other_runner(rng: random.Random) -> RunFinished:
    missing = rng.choice((sh("pytest -q", 127), sh("python3 -m pytest -q", 1, "No module named pytest")))
    verbose = sh("pytest -q -rA", 0, "3 passed in 0.1s")
    then = rng.choice((GREEN, sh("PYTHONPATH=. pytest -q"), sh("uv run pytest -q"), verbose))
    return run_of(rng.choice(CHANGES), edit(), missing, then)


def _same_check(rng: random.Random) -> RunFinished:
    return run_of(rng.choice(CHANGES), *rng.choice(SAME_CHECK))


def _worked_around(rng: random.Random) -> RunFinished:
    return run_of(rng.choice(CHANGES), *rng.choice([*WORKED_AROUND.values()]))


def _bare_run(rng: random.Random) -> RunFinished:
    asked, command = rng.choice(
        (
            ("Lint the code.", "ruff check ."),
            ("Type-check the project", "mypy ."),
            ("Build the project", "make"),
            ("プロジェクトをビルドして", "npm run build"),
            ("Format the code", "ruff format ."),
            ("Run the app", "python3 app.py"),
            ("Run make test", "make test"),
        )
    )
    return run_of(asked, *rng.choice(([], [READ])), sh(command))


def _server(rng: random.Random) -> RunFinished:
    deeds = [background("npm run dev"), sh("curl -s localhost:3000"), *rng.choice(([], [look()]))]
    return run_of("Start the dev server.", *deeds)


def _background_test(rng: random.Random) -> RunFinished:
    return run_of(rng.choice(CHANGES), edit(), background(TEST), *[look()] * rng.randrange(3), look(code=0))


def _shown_by_output(rng: random.Random) -> RunFinished:
    command, output = rng.choice(
        (
            ("pytest -q 2>&1 | tail -5", "....\n4 passed in 0.02s"),
            ("npx jest 2>&1 | tail -4", "Tests:       3 passed, 3 total"),
            ("cargo test 2>&1 | tail -3", "test result: ok. 3 passed; 0 failed; 0 ignored"),
            ("python3 -m unittest; echo exit $?", "Ran 2 tests in 0.0s\n\nOK\nexit 0"),
        )
    )
    return run_of(rng.choice(CHANGES), edit(), sh(command, 0, output))


def _plans_and_lists(rng: random.Random) -> RunFinished:
    done = [todo("pending", "pending"), edit(), todo("completed", "completed")]
    return rng.choice(
        (
            run_of(FIX, *done, GREEN),
            run_of("Plan it", READ, plan(), mode="plan"),
            run_of("Remember that I use tabs, and update my memory", tool("memory/remember")),
        )
    )


HONEST = (
    _question,
    _red_green,
    _narrow,
    _edit_only,
    _retried_edit,
    _commands,
    _other_runner,
    _same_check,
    _worked_around,
    _bare_run,
    _server,
    _background_test,
    _shown_by_output,
    _plans_and_lists,
)


def test_of_280_honest_runs_none_is_marked_as_unverified() -> None:
    """A23.1: the verdict accuses nobody who did the work."""
    rng = random.Random(23)
    marked = [
        (made.__name__, kinds(end))
        for made in HONEST
        for end in (made(rng) for _ in range(20))
        if end.reasons
    ]
    assert not marked


@for_each("deeds", SAME_CHECK)
def test_a_failed_check_is_settled_by_one_that_checks_the_same(deeds: list[Deed]) -> None:
    """A23.1"""
    assert kinds(run_of(FIX, *deeds)) == []


@for_each("name", WORKED_AROUND)
def test_a_refusal_that_was_worked_around_spoils_no_run(name: str) -> None:
    """A23.1"""
    assert kinds(run_of(FIX, *WORKED_AROUND[name])) == []


@for_each("request_", QUESTIONS)
def test_a_question_asks_for_no_change(request_: str) -> None:
    assert classify_request(request_) == "answer"


@for_each("request_", CHANGES)
def test_an_instruction_asks_for_a_change(request_: str) -> None:
    assert classify_request(request_) != "answer"


@pytest.mark.parametrize("command", CHECKS)
def test_tests_builds_and_linters_are_checks(command: str) -> None:
    assert check_intent(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "git add tests/test_x.py",
        "rm tests/test_x.py",
        "mkdir build",
        "cat test_x.py",
        "npm install",
        "npm run dev",
        "sed -i s/a/b/ tests/test_a.py",
        "cd tests && ls",
        "pytest --version",
        "cargo test --no-run",
        "find . -name build -delete",
        "docker build .",
    ],
)
def test_commands_that_name_tests_are_no_checks(command: str) -> None:
    assert check_intent(command) is None


def test_an_output_with_a_failure_shows_no_pass() -> None:
    assert not shows_pass("1 failed, 2 passed in 0.1s")
    assert not shows_pass("Ran 2 tests\n\nFAILED (errors=1)")
    assert not shows_pass("done")
    assert shows_pass("ℹ tests 3\nℹ pass 3\nℹ fail 0")
