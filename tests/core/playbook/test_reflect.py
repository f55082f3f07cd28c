"""What runs teach by rule: commands in another's place, rejections with a reason, corrections."""

from __future__ import annotations

from daiku.domain.chunks import Chunk
from daiku.domain.events import Event, Review, RunFinished, RunStarted
from daiku.playbook.rules.proposals import Proposal
from daiku.playbook.rules.reflect import reflect
from tests.cases import for_each
from tests.playbook.happened import decided, edited, ran, showed, steered, told


def texts(chunks: list[Chunk]) -> list[str]:
    return [each.content for each in reflect(chunks)]


def only(chunks: list[Chunk]) -> Proposal:
    (found,) = reflect(chunks)
    return found


def test_the_command_that_passed_takes_the_place_of_the_one_that_failed() -> None:
    """B3.3: an insight from what a run showed, with the places in the session that show it."""
    chunks = told(ran("pytest", 127, "bash: pytest: command not found"), ran("uv run pytest", 0, "3 passed"))
    found = only(chunks)
    assert found.content == "Run the tests by `uv run pytest`; `pytest` fails here."
    assert (found.section, found.why, found.origin) == ("build_and_test_commands", "command_replaced", "rule")
    assert [(each.session_id, each.run_id, each.seq) for each in found.evidence] == [
        ("sess_1", "run_1", 2),
        ("sess_1", "run_1", 4),
    ]
    assert found.failed == ("pytest",)
    assert found.keywords == ("uv run pytest", "pytest")


PAIRS = [
    ("python -m pytest", 1, "/usr/bin/python: No module named pytest", "uv run pytest", "Run the tests by"),
    ("npm test", 1, "npm error Missing script: test", "npm run test:unit", "Run the tests by"),
    (
        "make test",
        2,
        "make: *** No rule to make target 'test'.",
        "./scripts/run-tests.sh",
        "Run the tests by",
    ),
    ("ruff check", 127, "", "uvx ruff check", "Lint by"),
    ("tsc --noEmit", 127, "", "npx tsc --noEmit", "Check the types by"),
    ("cargo build", 101, "error: could not find `Cargo.toml`", "cd core && cargo build", "Build by"),
    ("tools/frob go", 2, "unknown option", "tools/frob run", "Use"),
    ("frob lint-parser", 2, "", "grut run style lint", "Lint by"),
    ("frob -C parser build", 127, "", "./tools/compile-parser", "Build by"),
    ("frob parser:test", 1, "settings are too old", "grut run verify-parser", "Run the tests by"),
]


@for_each(("failed", "code", "output", "passed", "says"), PAIRS)
def test_the_same_purpose_is_seen_behind_other_words(
    failed: str, code: int, output: str, passed: str, says: str
) -> None:
    assert texts(told(ran(failed, code, output), ran(passed))) == [
        f"{says} `{passed}`; `{failed}` fails here."
    ]


MISTAKEN = [
    ("./script/deploy.sh now", 127, "No such file or directory", "./scripts/deploy.sh now", "Use"),
    ("python3 tool/report.py", 2, "can't open file 'tool/report.py'", "python3 tools/report.py", "Use"),
    ("python3 report.py", 2, "No such file or directory", "python3 tools/report.py", "Use"),
    ("frobnicate depoly", 2, "unknown command depoly", "frobnicate deploy", "Use"),
    ("pyhton -m pytest", 127, "pyhton: command not found", "python -m pytest", "Run the tests by"),
]


@for_each(("failed", "code", "output", "passed", "says"), MISTAKEN)
def test_a_mistaken_name_is_corrected_whatever_it_is_for(
    failed: str, code: int, output: str, passed: str, says: str
) -> None:
    """There is no such program, command, or script: what it was to do is told by the one that was meant."""
    assert texts(told(ran(failed, code, output), ran(passed))) == [
        f"{says} `{passed}`; `{failed}` fails here."
    ]


@for_each(
    ("failed", "code", "output", "passed"),
    [
        ("cat a", 1, "No such file or directory", "cat b"),
        ("cp a.txt x", 1, "No such file or directory", "cp b.txt x"),
        ("cp notes.txt x", 1, "No such file or directory", "cp votes.md x"),
        ("python3 gen_a.py", 2, "No such file or directory", "python3 gen_b.py"),
        ("python3 -m part1", 1, "No module named part1", "python3 -m part2"),
        ("python3 -m unittests", 1, "1 failed", "python3 -m unittest"),
        ("npm run biuld", 1, "npm error Missing script: biuld", "npm run build"),
        ("python3 -m unittest", 1, "No module named yaml", "python3 -m doctest"),
        ("pytest tests/test_cart.py", 4, "file or directory not found", "pytest tests/test_shop.py"),
        ("npm run lint", 1, "Missing script: lint", "npm run list"),
        ("npm run biuld", 1, "Missing script", "npm run build --workspace docs"),
        ("./bin/load one", 127, "No such file or directory", "./bin/save one"),
        ("mkdir data", 1, "Permission denied", "mkdir date2"),
    ],
)
def test_another_thing_is_no_other_folder(failed: str, code: int, output: str, passed: str) -> None:
    assert texts(told(ran(failed, code, output), ran(passed))) == []


NOTHING: list[list[Event | tuple[Event, ...]]] = [
    [ran("pytest", 1, "1 failed, 3 passed"), edited(), ran("pytest -x tests/test_a.py")],
    [ran("pytest", 1, "1 failed, 3 passed"), ran("pytest tests/test_ok.py")],
    [ran("pytest", 1, "1 failed"), ran("python -m pytest tests/test_ok.py")],
    [ran("pytest tests/x", 4, "No such file or directory: x"), edited(), ran("pytest tests/y")],
    [ran("pytest", 127), ran("npm run build")],
    [ran("cat nothing.txt", 1), ran("cat README.md")],
    [ran("pytest", 127), ran("uv run pytest || true")],
    [ran("pytest", 127), ran("uv run pytest --version")],
    [ran("pytest", 127), ran("uv run pytest", 0, "collected 0 items\n\nno tests ran in 0.01s")],
    [ran("pytest", 127), ran("uv run pytest"), ran("pytest")],
    [ran("pytest", 127), ran("uv run pytest", background=True)],
    [ran("uv run pytest"), ran("pytest", 127)],
    [ran("pytest", 127)],
    [ran("pytest\necho `date`", 127), ran("uv run pytest")],
    [ran("frob " + "x" * 300, 127), ran("frob")],
    [ran("git checkout lint-parser", 127), ran("ruff check")],
    [ran("pytest -k lint", 127), ran("ruff check")],
]


@for_each("events", NOTHING)
def test_what_shows_nothing_about_the_command_teaches_nothing(events: list[Event]) -> None:
    """A failing test, a smaller task, another purpose, an exit code that is not the work's: no lesson."""
    assert texts(told(*events)) == []


def test_a_command_is_replaced_by_the_first_that_passed_in_its_place() -> None:
    chunks = told(ran("make test", 127), ran("pytest"), ran("uv run pytest"))
    assert texts(chunks) == ["Run the tests by `pytest`; `make test` fails here."]
    again = told(ran("make test", 127), after=6)
    assert len(texts([*chunks, *again, *told(ran("uv run pytest"), after=8)])) == 2


def test_a_command_that_made_another_pass_is_a_lesson() -> None:
    """A check that was red until something was run, and nothing else happened between."""
    red, green = ran("npm run build", 1, "Cannot find module 'x'"), ran("npm run build")
    assert texts(told(red, ran("npm run gen"), green)) == [
        "Run `npm run gen` before `npm run build`, which fails without it."
    ]
    assert texts(told(red, edited(), ran("npm run gen"), green)) == []
    assert texts(told(red, ran("npm run gen"), ran("npm run other"), green)) == []


def test_output_of_a_tool_never_becomes_text_of_a_lesson() -> None:
    chunks = told(
        ran("pytest", 127, "HIDDEN WORDS: command not found"),
        showed("HIDDEN WORDS"),
        ran("uv run pytest", 0, "HIDDEN WORDS"),
    )
    assert "HIDDEN" not in repr(reflect(chunks)[0])


def test_a_nested_run_teaches_too() -> None:
    above = told(RunStarted(prompt="do it"))
    below = told(ran("pytest", 127), ran("uv run pytest"), run="run_2", parent="run_1", after=1)
    assert reflect([*above, *below])[0].evidence[-1].run_id == "run_2"


def test_a_rejection_with_a_reason_is_a_lesson_in_the_persons_words() -> None:
    chunks = told(decided(why="use the logger, not print"))
    found = only(chunks)
    assert (found.content, found.section, found.why) == (
        "Use the logger, not print.",
        "review_feedback",
        "rejected",
    )
    assert [each.seq for each in found.evidence] == [1, 2]
    assert texts(told(decided(command="git push origin main", why="we never push to main by hand"))) == [
        "Do not run `git push origin main`: We never push to main by hand."
    ]
    assert texts(told(decided("allow_once", "keep the header, please", hunks=(0,)))) == [
        "Keep the header, please."
    ]


@for_each(
    "events",
    [
        decided(why=None),
        decided(why="no"),
        decided(why="nobody is there to ask", unattended=True),
        decided("allow_once", "well done, thank you very much"),
    ],
)
def test_without_a_persons_reason_nothing_is_learnt(events: tuple[Event, ...]) -> None:
    assert texts(told(events)) == []


SAID = [
    ("No, use uv instead of pip.", "Use uv instead of pip."),
    ("don't touch the generated files", "Don't touch the generated files."),
    ("We always name tests after behaviour. Go on.", "We always name tests after behaviour."),
    ("いや、コメントは英語ではなく日本語で書いて", "コメントは英語ではなく日本語で書いて。"),
    (
        "違います。テストは必ず uv run pytest で実行してください。",
        "テストは必ず uv run pytest で実行してください。",
    ),
]


@for_each(("words", "lesson"), SAID)
def test_a_correction_while_a_run_works_is_a_lesson(words: str, lesson: str) -> None:
    assert texts(told(RunStarted(prompt="do it"), steered(words))) == [lesson]


@for_each(
    "words",
    ["how far are you?", "looks good, go on", "thanks", "also look at the README", "ありがとう、続けて"],
)
def test_what_corrects_nothing_teaches_nothing(words: str) -> None:
    assert texts(told(RunStarted(prompt="do it"), steered(words))) == []


def test_the_first_words_after_a_run_correct_it_only_where_they_begin_so() -> None:
    before = [RunStarted(prompt="add a test"), RunFinished(status="completed")]
    assert texts(told(*before, RunStarted(prompt="No, never mock the database."))) == [
        "Never mock the database."
    ]
    assert texts(told(*before, RunStarted(prompt="Add a parser. It must never raise."))) == []
    assert texts(told(RunStarted(prompt="Never mind the tests, only write code."))) == []


def test_words_after_a_rejected_change_are_its_reason() -> None:
    undone = Review(decision="reject", path="a.py", hunks=1)
    before = [RunStarted(prompt="x"), RunFinished(status="completed"), undone]
    chunks = told(*before, RunStarted(prompt="Imports must stay sorted."))
    assert only(chunks).why == "rejected"


def test_the_words_of_a_nested_runs_brief_are_nobodys() -> None:
    first = told(RunStarted(prompt="x"), RunFinished(status="completed"))
    assert (
        reflect([*first, *told(RunStarted(prompt="Never use tabs."), run="r2", parent="run_1", after=2)])
        == ()
    )


def test_a_check_that_passed_in_two_runs_is_a_lesson_too() -> None:
    """B3.3: a check of the whole project, named once however often it passes."""
    twice = [*told(ran("make test")), *told(ran("make test"), run="run_2", after=2)]
    (found,) = reflect([*twice, *told(ran("make test"), run="run_3", after=4)])
    assert (found.content, found.why) == ("Run the tests by `make test`.", "passed_twice")
    assert [each.run_id for each in found.evidence] == ["run_1", "run_2"]


@for_each("command", ["pytest tests/test_a.py", "npm install", "git status", "ls"])
def test_what_passes_twice_and_checks_a_part_or_nothing_is_no_lesson(command: str) -> None:
    assert texts([*told(ran(command)), *told(ran(command), run="run_2", after=2)]) == []


def test_a_check_that_passed_in_one_run_alone_is_no_lesson_yet() -> None:
    """B3.3: one pass may be chance."""
    assert texts(told(ran("make test"), ran("make test"))) == []
