"""A run on record is done again in a copy: its checks decide, and the person's folder stays as it is (issue 12, the gate)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from daiku.domain.config import ApprovalSettings, Price, ProviderSettings
from daiku.domain.events import RunFinished
from daiku.domain.held import Lesson
from daiku.domain.runs import RunLimits
from daiku.domain.trials import Check
from daiku.llm.table import LLMSettings
from daiku.sdk.trials import trial
from daiku.sdk.trials.trial import Trying, try_case
from daiku.settings.config import Config, MemorySettings
from tests.attacks.victim import snapshot
from tests.llm.server import Answer, ModelServer, events
from tests.sdk.trials.project import ASKED, CHECK, MENDS, Project, call, edits, project


@pytest.fixture
def place() -> Iterator[Project]:
    with project() as made:
        yield made


def test_a_completed_run_with_a_check_is_a_case(place: Project) -> None:
    """R1.66, X.12: what an adaptation tries are runs on record, each with the commands that showed that it was done."""
    head = place.git("rev-parse", "HEAD")
    place.mended()
    case = place.case()
    assert (case.question, [each.command for each in case.checks]) == (ASKED, [CHECK])
    assert (case.start.commit, case.start.changed, case.start.why) == (head, (), None)


MENDS_WRONGLY = edits("calc.py", "a - b", "a * b")
AGAIN = {"when": "once more"}
MENDS_AGAIN = AGAIN | edits("calc.py", "a * b", "a + b")
FAILED = (MENDS_WRONGLY, call(CHECK), {"text": "It still fails."})
WHY = {"when": "why?", "text": "It multiplies."}
MENDED_LATER = (MENDS_AGAIN, call(CHECK), {"text": "Done."})


@pytest.mark.parametrize("limits", [None, RunLimits(max_rounds=2)], ids=["it gave up", "it reached a limit"])
def test_a_run_that_failed_is_a_case_once_its_check_passed_later_in_its_session(
    place: Project, limits: RunLimits | None
) -> None:
    """X.12: there a lesson can show that it helps, for the run on record did not do it without."""
    session = place.record(*FAILED, limits=limits).chunks[0].session
    assert place.cases() == ()
    place.record(*FAILED, WHY, asked="why?", session=session)
    place.record(*FAILED, WHY, *MENDED_LATER, asked="once more", session=session)
    case = place.case()
    assert (case.question, [each.command for each in case.checks]) == (ASKED, [CHECK])
    failed, passed = place.tried(case, *FAILED), place.tried(case, MENDS, {"text": "Done."})
    assert (failed.passed, passed.passed) == (False, True)


@pytest.mark.parametrize(
    "later",
    [
        (MENDS_AGAIN, call("test -f calc.py && make -v"), {"text": "Done."}),
        (AGAIN | call(CHECK), {"text": "It still fails."}),
    ],
    ids=["what passed had not failed in it", "it failed once more"],
)
def test_a_run_that_failed_is_no_case_by_what_says_nothing_of_it(
    place: Project, later: tuple[dict[str, Any], ...]
) -> None:
    """X.12: only a command that failed in it shows that the same was done later."""
    session = place.record(*FAILED).chunks[0].session
    ended = place.record(*FAILED, *later, asked="once more", session=session).chunks[-1].event
    assert isinstance(ended, RunFinished)
    assert ended.status == "completed"
    assert place.cases() == ()


def test_a_run_that_the_person_stopped_is_no_case(place: Project) -> None:
    """X.12: what was asked may not be what was wanted."""
    begins = (call(CHECK), call("sleep 60"))
    stopped = place.record(*begins, stopped=True).chunks[-1]
    assert isinstance(stopped.event, RunFinished)
    assert stopped.event.status == "cancelled"
    place.record(*begins, AGAIN | MENDS, *MENDED_LATER[1:], asked="once more", session=stopped.session)
    assert place.cases() == ()


def test_a_trial_begins_with_the_project_as_it_was(place: Project) -> None:
    place.mended()
    failed = place.tried(place.case(), {"text": "I did nothing."})
    assert (failed.passed, [each.ok for each in failed.checks]) == (False, [False])
    passed = place.tried(place.case(), MENDS, {"text": "Done."})
    assert (passed.passed, passed.why) == (True, "")


def test_exactly_the_given_lessons_are_told_and_those_cited_are_on_record(place: Project) -> None:
    place.mended()
    lesson = Lesson(id="bt-00007", version=3, text="add adds")
    says = ({"when": "add adds", "text": "Nothing to do [bt-00007]."}, {"text": "Nothing told [bt-00007]."})
    told, untold = (
        place.tried(place.case(), *says, lessons=(lesson,)),
        place.tried(place.case(), *says, arm="without"),
    )
    assert (told.arm, told.used, untold.arm, untold.used) == ("with", ("bt-00007",), "without", ())


def test_nothing_of_the_persons_folder_changes_and_nothing_is_left(place: Project) -> None:
    place.mended()
    case, before = place.case(), snapshot(place.folder)
    place.tried(case, call("echo x > new.txt; git commit -qam x"), MENDS, {"text": "Done."})
    assert snapshot(place.folder) == before
    assert list((place.home / "trials").iterdir()) == []
    assert [each.run for each in place.cases()] == [case.run]


def test_a_case_whose_checks_pass_before_anything_is_done_is_not_tried(place: Project) -> None:
    """No model is asked: a change could not show in it."""
    place.mended()
    case = place.case().model_copy(update={"checks": (Check(command="true"),)})
    tried = place.tried(case, MENDS)
    assert (tried.passed, tried.why.id, tried.tokens) == (None, "trials.passes_anyway", 0)


def test_a_check_whose_program_is_not_in_the_copy_is_told(place: Project) -> None:
    place.mended()
    case = place.case().model_copy(update={"checks": (Check(command=".venv/bin/pytest"),)})
    tried = place.tried(case, MENDS)
    assert (tried.passed, tried.why.id, tried.why.args["command"]) == (
        None,
        "trials.not_there",
        ".venv/bin/pytest",
    )


def test_what_the_checks_leave_before_a_run_is_not_there_in_it(place: Project) -> None:
    """A check that makes itself pass the second time passes only where the work was done."""
    place.mended()
    case = place.case().model_copy(update={"checks": (Check(command="test -e done || (touch done; false)"),)})
    assert place.tried(case, {"text": "Nothing."}).passed is False


@pytest.mark.parametrize("how", ["without a sandbox", "commands denied"])
def test_where_nothing_can_be_tried_it_is_said_and_no_model_is_asked(
    place: Project, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    place.mended()
    approvals = ApprovalSettings(command="deny" if how == "commands denied" else "ask")
    if how == "without a sandbox":
        monkeypatch.setattr(trial, "sandbox_state", lambda _settings: "refused")
    tried = place.tried(place.case(), MENDS, approvals=approvals)
    wanted = {"without a sandbox": "trials.no_sandbox", "commands denied": "trials.commands_denied"}[how]
    assert (tried.passed, tried.why.id, tried.tokens) == (None, wanted, 0)
    assert not (place.home / "trials").exists()


def test_a_bound_of_cost_ends_a_trial_without_a_verdict(place: Project) -> None:
    place.mended()
    dear = {**call("true"), "usage": {"promptTokens": 1000, "completionTokens": 10, "cost": 0.7}}
    tried = place.tried(place.case(), dear, dear, dear, MENDS, {"text": "Done."}, max_cost=1.0)
    assert (tried.passed, tried.why.id) == (None, "trials.bound")
    assert 1.0 <= tried.cost < 2.1


def test_a_run_that_asks_for_the_network_or_no_sandbox_is_refused_it(place: Project) -> None:
    """Also where the person's own settings allow both: nobody watches a trial."""
    place.mended()
    allowed = ApprovalSettings(command="allow", network="allow", mcp="allow")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        reach = f"bash -c 'echo x > /dev/tcp/127.0.0.1/{server.getsockname()[1]}'"
        asks = (call(reach, network=True), call(reach), call("touch ../../../../out", sandbox=False))
        tried = place.tried(place.case(), *asks, MENDS, {"text": "Done."}, approvals=allowed)
        with pytest.raises(TimeoutError):
            server.accept()
    assert tried.passed is True
    assert not list(place.base.rglob("out"))


def test_no_run_of_a_trial_is_seen_by_the_persons_journal_playbook_or_memory(place: Project) -> None:
    place.mended()
    place.case()
    before = snapshot(place.home)
    place.tried(place.case(), MENDS, {"text": "Done."}, memory=MemorySettings(enabled=True))
    after = {name: what for name, what in snapshot(place.home).items() if name != "trials"}
    assert {n: w for n, w in after.items() if "daiku.db" not in n} == {
        n: w for n, w in before.items() if "daiku.db" not in n
    }
    assert len(place.cases()) == 1


def chat(*deltas: dict[str, Any], finish: str = "stop") -> Answer:
    used = {"prompt_tokens": 1000, "completion_tokens": 100}
    ends = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": used}
    return events(*({"choices": [{"index": 0, "delta": each}]} for each in deltas), ends, done=True)


async def test_a_model_over_http_is_told_the_lessons_and_nothing_of_the_person(place: Project) -> None:
    """R3.23, X.12: the configured model is asked; what it costs by its price is told."""
    await asyncio.to_thread(place.mended)
    case = await asyncio.to_thread(place.case)
    server = ModelServer()
    await server.start()
    edit = {"path": "calc.py", "edits": [{"search": "a - b", "replace": "a + b"}]}
    function = {"name": "files__edit", "arguments": json.dumps(edit)}
    asks = chat({"tool_calls": [{"index": 0, "id": "c1", "function": function}]}, finish="tool_calls")
    server.answer("/v1/chat/completions", asks, chat({"content": "Done [bt-00007]."}))
    own = ProviderSettings(base_url=f"{server.url}/v1", price={"m": Price(input=1000, output=1000)})
    settings = Config(llm=LLMSettings(model="compatible/m", compatible=own))
    lesson = Lesson(id="bt-00007", version=3, text="add adds")
    try:
        tried = await try_case(case, (lesson,), Trying(settings, place.home), arm="with", nth=2)
    finally:
        await server.stop()
    assert (tried.passed, tried.why, tried.round, tried.used) == (True, "", 2, ("bt-00007",))
    assert tried.cost == pytest.approx(2.2)
    sent = server.asked[-1].body.decode()
    assert "add adds" in sent
    assert str(place.folder) not in sent


def test_a_service_that_refuses_gives_no_verdict(place: Project) -> None:
    place.mended()
    dead = LLMSettings(model="compatible/m", compatible=ProviderSettings(base_url="http://127.0.0.1:9/v1"))
    tried = place.tried(place.case(), llm=dead)
    assert (tried.passed, bool(tried.why)) == (None, True)


NO_CASES: dict[str, tuple[dict[str, Any], ...]] = {
    "it only looked": (call("cat calc.py"), {"text": "Done."}),
    "it did not check": (MENDS, {"text": "Done."}),
    "its check failed": (MENDS, call("false"), {"text": "Done."}),
    "its check needed the network": (MENDS, call(CHECK, network=True), {"text": "Done."}),
    "its check had input": (MENDS, call(CHECK, stdin="x"), {"text": "Done."}),
    "its check passed before as well": (call("make -v"), MENDS, call("make -v"), {"text": "Done."}),
    "its check is its own file": (
        MENDS,
        {"calls": [{"tool": "files/write", "args": {"path": "own.py", "content": "import calc\n"}}]},
        call("python3 -B own.py"),
        {"text": "Done."},
    ),
}


@pytest.mark.parametrize("why", sorted(NO_CASES))
def test_runs_without_a_check_that_would_show_the_same_elsewhere_are_no_cases(
    place: Project, why: str
) -> None:
    place.record(*NO_CASES[why])
    assert place.cases() == ()
