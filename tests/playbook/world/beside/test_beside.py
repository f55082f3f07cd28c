"""Issue 12, point 2: other projects' own code as arms; what stands in for their model knows what our rules know."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from daiku.domain.held import Lesson
from tests.playbook.world.attempts import Task
from tests.playbook.world.beside import ace, environments, sleep
from tests.playbook.world.beside.ace import Ace, AceModel, lines_of
from tests.playbook.world.beside.child import Child
from tests.playbook.world.beside.environments import Missing
from tests.playbook.world.beside.known import within
from tests.playbook.world.beside.sleep import Night, Sleep, SleepModel
from tests.playbook.world.beside.toy import acts, at_once, shown, tried

LINT = Task(7, "Lint the code of part 3.")
LESSON = "Lint by `make lint`; `ruff check` fails here."
OLD = "Lint by `ruff check`; `flake8` fails here."
ECHO = """
import sys
sys.path.insert(0, {beside!r})
from bridge import Bridge
bridge = Bridge()
print("what a peer prints")
def shout(asked):
    return {{"said": bridge.model(asked["words"]) + "!"}}
bridge.serve({{"shout": shout}})
"""


@pytest.fixture
def echo(tmp_path: Path) -> Child:
    script = tmp_path / "echo.py"
    script.write_text(ECHO.format(beside=str(Path(ace.__file__).parent)))
    return Child(Path(sys.executable), script, tmp_path, {})


def test_a_peers_code_asks_its_model_through_us_and_may_print(echo: Child) -> None:
    assert echo.do("shout", str.upper, words="here") == {"said": "HERE!"}
    assert echo.do("shout", str.title, words="again") == {"said": "Again!"}


def test_a_peer_that_dies_says_why(echo: Child) -> None:
    with pytest.raises(ChildProcessError, match="KeyError: 'whisper'"):
        echo.do("whisper", str.upper)


def test_advice_stays_within_the_budget_and_is_never_cut() -> None:
    texts = ["one two three", "word " * 100, "four"]
    assert within(texts, 20) == ("one two three", "four")
    assert within(texts, 0) == ()


def test_ace_is_told_what_our_rules_say_of_its_bullets_and_of_the_journal() -> None:
    """It wrote `ruff check` down once; another command passed in its place."""
    told = (Lesson(id="sai-00001", version=1, text=OLD), Lesson(id="sai-00002", version=1, text="Be kind."))
    model = AceModel(tried(LINT, tuple(f"[{each.id}] {each.text}" for each in told), told))
    playbook = f"[sai-00001] helpful=1 harmful=0 :: {OLD}\n[sai-00002] helpful=0 harmful=0 :: Be kind."
    generated = json.loads(model("You are an analysis expert\n" + playbook))
    assert (generated["bullet_ids"], generated["final_answer"]) == (["sai-00001"], "passed")
    reflected = json.loads(model("You are an expert analyst\n" + playbook))
    assert reflected["key_insight"] == LESSON
    assert [each["tag"] for each in reflected["bullet_tags"]] == ["harmful", "neutral"]
    curated = json.loads(model("You are a master curator\n" + playbook))
    assert [each["content"] for each in curated["operations"]] == [LESSON]


@pytest.mark.parametrize(("helpful", "harmful", "added"), [(2, 0, 0), (0, 0, 0), (0, 2, 1)])
def test_ace_is_not_told_twice_what_it_knows_unless_runs_spoke_against_it(
    helpful: int, harmful: int, added: int
) -> None:
    model = AceModel(tried(LINT, ()))
    there = f"[sai-00001] helpful={helpful} harmful={harmful} :: {LESSON}"
    assert len(json.loads(model("You are a master curator\n" + there))["operations"]) == added


def test_of_two_bullets_alike_ace_keeps_the_text_that_more_runs_spoke_for() -> None:
    model = AceModel(tried(LINT, ()))
    prompt = f"You are merging\n1. [sai-00001] helpful=1 harmful=3 :: {OLD}\n2. [sai-00004] helpful=2 harmful=0 :: {LESSON}"
    assert lines_of(model(prompt)) == (("sai-00001", 3, 3, LESSON),)


def _reflects(*lines: str, most: int = 4) -> str:
    shown = "".join(f"- {each}\n" for each in lines)
    return (
        f"You are SkillOpt's optimizer. The agent keeps failing: at most {most} bounded edits\n\n# Current skill\n"
        f"{shown}\n\n# Recurring failures\n- wanted: {LINT.prompt}\n  got: ruff check\n  why-wrong: failed"
    )


def test_skillopt_is_told_what_our_rules_learnt_from_the_requests_that_failed() -> None:
    model = SleepModel(acts, shown)
    assert json.loads(model(_reflects())) == []
    model.saw(tried(LINT, ()))
    assert [(each["op"], each["content"]) for each in json.loads(model(_reflects()))] == [("add", LESSON)]
    assert json.loads(model(_reflects(LESSON))) == []
    assert json.loads(model(_reflects(most=0))) == []


def test_skillopts_skill_is_corrected_where_a_line_names_what_fails() -> None:
    model = SleepModel(acts, shown)
    model.saw(tried(LINT, ()))
    (edit,) = json.loads(model(_reflects(OLD)))
    assert (edit["op"], edit["anchor"], edit["content"]) == ("replace", OLD, LESSON)


def test_skillopt_mines_a_session_with_what_passed_in_it_as_its_check() -> None:
    model = SleepModel(acts, shown)
    prompt = f"You are mining\nuser prompts:\n  - {LINT.prompt}\nassistant final (last):\n"
    assert json.loads(model(prompt)) == []
    model.saw(tried(LINT, ()))
    (mined,) = json.loads(model(prompt))
    assert (mined["intent"], mined["checks"]) == (LINT.prompt, [{"op": "contains", "arg": "make lint"}])


def test_skillopt_replays_a_request_by_what_the_skill_says() -> None:
    model = SleepModel(acts, shown)
    prompt = "Complete the following task\n# Skill\n{}\n\n# Memory\n(none)\n\n# Task\n{}\n\n\n\nReturn ONLY the final answer text."
    assert model(prompt.format("(none)", LINT.prompt)) == "ruff check"
    assert model(prompt.format(f"- {LESSON}", LINT.prompt)) == "make lint"


def test_a_peer_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAIKU_DEV_CACHE", str(tmp_path))
    monkeypatch.delenv("DAIKU_ACE", raising=False)
    missing = environments.ace_folder()
    assert isinstance(missing, Missing)
    assert "github.com/ace-agent/ace at ba78d343" in missing.why
    other = environments.python_with("skillopt==0.2.0", make=False)
    assert isinstance(other, Missing)
    assert other.why.startswith("skillopt==0.2.0 is not installed")


def test_aces_own_code_learns_the_toy_worlds_commands(tmp_path: Path) -> None:
    """Its numbering, counters, sections and, with the analyzer, its merging."""
    folder = environments.ace_folder()
    python = environments.python_with(*environments.ACE_PACKAGES, make=False)
    if isinstance(folder, Missing) or isinstance(python, Missing):
        # ACE's code is no part of this project: the test runs only where it was fetched before.
        pytest.skip("ACE's code is not here")
    child = Child(python, ace.PROGRAM, tmp_path, {"ACE_FOLDER": str(folder)})
    for analyzer in (False, True):
        arm = Ace(child, analyzer=analyzer)
        assert sum(at_once(arm, 40)) == 35
        best, *others = arm.advice(LINT)
        assert len(others) == 4
        assert best.startswith("[sai-0000")


def test_skillopts_own_nights_learn_the_toy_worlds_commands(tmp_path: Path) -> None:
    """Its gate holds back what its held-out tasks do not speak for; a world comes out the same each time."""
    python = environments.python_with(*environments.SLEEP_PACKAGES, make=False)
    if isinstance(python, Missing):
        # SkillOpt's code is no part of this project: the test runs only where it was installed before.
        pytest.skip(python.why)
    child = Child(python, sleep.PROGRAM, tmp_path, {})
    nights: list[Night] = []
    for _ in range(2):
        arm = Sleep(child, SleepModel(acts, shown), budget=1000, every=20)
        done = at_once(arm, 80)
        assert not any(done[:20])
        assert sum(done[60:]) > 10
        assert any(each.accepted and each.before < each.after for each in arm.nights)
        nights = nights or arm.nights
        assert arm.nights == nights
