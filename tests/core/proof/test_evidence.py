"""Evidence: what a run did, and which proofs still hold after its last edit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.base import JsonObject
from daiku.domain.events import (
    CheckpointEvent,
    Edit,
    Event,
    HandoffEnd,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.work.handovers import NestedEvidence, Proof
from daiku.domain.work.patches import FileKind, FileStat
from daiku.run.rules.state.fold import apply, fold
from daiku.run.rules.state.state import State
from daiku.team.rules.proof.evidence import find_proof, find_unproven_checks, merge_evidence
from daiku.team.rules.proof.placeholders import is_unfinished, select_new_leftovers


def ran(command: str, code: int, call: str = "c", **args: bool) -> tuple[Event, Event]:
    return (
        ToolCallEvent(id=call, tool="shell/run", args={"command": command, **args}),
        ToolResponse(
            id=call, tool="shell/run", ok=code == 0, result="…", data={"exitCode": code, "output": "said"}
        ),
    )


def diagnosed(path: str | None, call: str = "d", **errors: int) -> tuple[Event, Event]:
    args: JsonObject = {} if path is None else {"path": path}
    counts: JsonObject = {name.replace("_", "."): count for name, count in errors.items()}
    return (
        ToolCallEvent(id=call, tool="editor/diagnostics", args=args),
        ToolResponse(id=call, tool="editor/diagnostics", ok=True, result="…", data={"errors": counts}),
    )


def edited(path: str = "a.py", kind: FileKind = "edit", checkpoint: str = "cp", diff: str = "") -> Edit:
    stat = FileStat(path=path, kind=kind, added=2, removed=1)
    return Edit(files=(stat,), checkpoint_id=checkpoint, call_id="e", diff=diff)


def test_a_passing_command_proves_its_check_and_white_space_does_not_matter() -> None:
    done = fold(ran("pytest  -q\n", 0)).done
    proof = find_proof("pytest -q", done)
    assert proof == Proof(kind="exit_code", subject="pytest  -q\n", ref="c", ok=True, value="0")
    assert [(c.command, c.exit_code, c.output, c.call_id) for c in done.commands] == [
        ("pytest  -q\n", 0, "said", "c")
    ]


def test_another_command_proves_nothing_of_it() -> None:
    done = fold((*ran("pytest -q || true", 0), *ran("cd x && pytest -q", 0))).done
    assert find_unproven_checks(["pytest -q"], done) == (("pytest -q", None),)


def test_the_latest_run_of_a_command_counts() -> None:
    done = fold((*ran("make", 0, "1"), *ran("make", 2, "2"))).done
    [(check, proof)] = find_unproven_checks(["make"], done)
    assert check == "make"
    assert proof is not None
    assert (proof.ref, proof.value) == ("2", "2")


def test_a_pass_counts_only_until_the_next_edit() -> None:
    before = fold((*ran("make", 0), *diagnosed(None)))
    assert not find_unproven_checks(["make", "diagnostics"], before.done)
    for event in (edited(), CheckpointEvent(checkpoint_id="cp", files=("a.py",))):
        assert find_unproven_checks(["make", "diagnostics"], apply(before, event).done) == (
            ("make", None),
            ("diagnostics", None),
        )


def test_a_command_that_may_have_changed_files_undoes_what_was_shown_before_it() -> None:
    passed = (*ran("make test", 0, "1"), *ran("make lint", 0, "2"))
    assert not find_unproven_checks(["make test", "make lint"], fold(passed).done)
    assert not find_unproven_checks(
        ["make test", "make lint"], fold((*passed, *ran("cat a.py", 0, "3"))).done
    )
    spoilt = fold((*passed, *ran("sed -i s/a/b/ a.py", 0, "3"))).done
    assert find_unproven_checks(["make test", "make lint"], spoilt) == (
        ("make test", None),
        ("make lint", None),
    )
    again = fold((*passed, *ran("rm a", 0, "3"), *ran("make test", 0, "4"))).done
    assert find_unproven_checks(["make test", "make lint"], again) == (("make lint", None),)


def test_a_command_in_the_background_or_one_that_was_refused_shows_nothing() -> None:
    called = ToolCallEvent(id="c", tool="shell/run", args={"command": "make"})
    refused = ToolResponse(id="c", tool="shell/run", ok=False, result="The person rejected this call.")
    started = ToolResponse(id="c", tool="shell/run", ok=True, result="Started", data={"id": "j", "pid": 4})
    for answer in (refused, started):
        done = fold((called, answer)).done
        assert find_proof("make", done) is None
        assert len(done.commands) == 1
    assert find_proof("make", fold(ran("make", 0, background=True)).done) is None


def test_diagnostics_are_shown_by_path_by_folder_by_glob_or_everywhere() -> None:
    whole = fold(diagnosed(None, b_py=2)).done
    assert [
        c for c, _ in find_unproven_checks(["diagnostics", "diagnostics: b.py", "diagnostics: *.py"], whole)
    ] == ["diagnostics", "diagnostics: b.py", "diagnostics: *.py"]
    assert not find_unproven_checks(["diagnostics: src", "diagnostics: a.py", "Diagnostics:  **/*.ts"], whole)
    only_a = fold(diagnosed("a.py")).done
    assert not find_unproven_checks(["diagnostics: a.py"], only_a)
    assert find_unproven_checks(["diagnostics", "diagnostics: *.py"], only_a) == (
        ("diagnostics", None),
        ("diagnostics: *.py", None),
    )


def test_newer_diagnostics_of_a_file_replace_the_older() -> None:
    done = fold((*diagnosed(None, "1", b_py=2), *diagnosed("b.py", "2"))).done
    assert not find_unproven_checks(["diagnostics: b.py"], done)


def test_diagnostics_without_an_editor_show_nothing() -> None:
    called = ToolCallEvent(id="d", tool="editor/diagnostics", args={})
    failed = ToolResponse(id="d", tool="editor/diagnostics", ok=False, result="No editor is connected")
    assert find_proof("diagnostics", fold((called, failed)).done) is None


def test_files_are_told_once_each_with_what_the_changes_come_to() -> None:
    events = [edited("a", "create"), edited("a"), edited("b", "create"), edited("b", "delete"), edited("c")]
    done = fold(events).done
    assert [(f.path, f.kind, f.added, f.removed) for f in done.files] == [
        ("a", "create", 4, 2),
        ("c", "edit", 2, 1),
    ]
    assert done.checkpoints == ("cp",)


def back(*events: Event) -> HandoffEnd:
    """A nested run with `events` that came back."""
    from_child = fold(events).done
    deeds = NestedEvidence(
        files=from_child.files,
        checkpoints=from_child.checkpoints,
        commands=from_child.commands,
        proofs=from_child.proofs,
    )
    return HandoffEnd.model_validate({"from": "team", "to": "coder", "result": "", "deeds": deeds})


def test_what_a_nested_run_showed_is_shown_to_its_parent() -> None:
    done = fold((*ran("lint", 0, "1"), back(*ran("make", 0, "2")))).done
    assert not find_unproven_checks(["lint", "make"], done)
    assert [c.call_id for c in done.commands] == ["1", "2"]


def test_an_edit_of_a_nested_run_undoes_what_its_parent_had_shown() -> None:
    done = fold((*ran("make", 0, "1"), back(edited("a.py"), *ran("lint", 0, "2")))).done
    assert find_unproven_checks(["make", "lint"], done) == (("make", None),)
    assert [f.path for f in done.files] == ["a.py"]


def test_a_new_run_has_shown_nothing_yet() -> None:
    assert fold((*ran("make", 0), RunStarted(prompt="more"))).done == State().done


def test_unfinished_lines_that_an_edit_put_in_are_found_until_they_are_gone() -> None:
    put = "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-    pass  # TODO old\n+    # TODO: the rest\n+    x = 1\n"
    state = fold([edited(diff=put)])
    assert [(left.path, left.text) for left in select_new_leftovers(state.done.leftovers)] == [
        ("a.py", "# TODO: the rest")
    ]
    gone = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-    # TODO: the rest\n+    y = 2\n"
    assert select_new_leftovers(apply(state, edited(diff=gone)).done.leftovers) == ()


def test_words_that_only_look_like_placeholders_are_left_alone() -> None:
    for line in ("todo_list = []", "for todo in todos:", "def f(*args: object, **kw: ...) -> None:", "pass"):
        assert not is_unfinished(line), line
    for line in (
        "# TODO later",
        "  ...",
        "raise NotImplementedError",
        "raise NotImplementedError('x')",
        "// ... existing code",
        "# rest of the code unchanged",
        "# 以下省略",
        "# implementation here",
        'throw new Error("not implemented")',
        "todo!()",
        "<!-- FIXME -->",
    ):
        assert is_unfinished(line), line


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.sampled_from(["make", "lint"]), st.sampled_from([0, 1])),
        st.tuples(st.just("edit"), st.just(""), st.just(0)),
        st.tuples(st.just("child_run"), st.sampled_from(["make", "lint"]), st.sampled_from([0, 1])),
        st.tuples(st.just("child_edit"), st.just(""), st.just(0)),
        st.tuples(st.just("run"), st.sampled_from(["sed -i s/a/b/ a.py", "cat a.py"]), st.just(0)),
    ),
    max_size=12,
)


@given(STEPS)
def test_a_check_is_proven_exactly_where_its_last_run_after_the_last_edit_passed(
    steps: list[tuple[str, str, int]],
) -> None:
    events: list[Event] = []
    passed: dict[str, bool] = {}
    for number, (kind, command, code) in enumerate(steps):
        match kind:
            case "run":
                events.extend(ran(command, code, str(number)))
            case "child_run":
                events.append(back(*ran(command, code, str(number))))
            case "edit":
                events.append(edited())
            case _:
                events.append(back(edited()))
        spoilt = kind.endswith("edit") or command.startswith("sed")
        passed = {} if spoilt else {**passed, command: code == 0}
    missing = {check for check, _ in find_unproven_checks(["make", "lint"], fold(events).done)}
    for command in ("make", "lint"):
        assert (command not in missing) == passed.get(command, False)


@given(STEPS, st.integers(0, 12))
def test_two_runs_together_did_what_one_would_have_done_and_have_shown_no_more(
    steps: list[tuple[str, str, int]], cut: int
) -> None:
    events = [
        ran(c, n, str(i)) if kind.endswith("run") else (edited(),) for i, (kind, c, n) in enumerate(steps)
    ]
    one = fold(event for each in events for event in each).done
    first, second = (
        fold(event for each in part for event in each).done for part in (events[:cut], events[cut:])
    )
    both = merge_evidence(first, second)
    assert (both.files, both.commands, both.leftovers) == (one.files, one.commands, one.leftovers)
    assert both.red == one.red
    shown = {check for check, _ in find_unproven_checks(["make", "lint"], both)}
    assert shown >= {check for check, _ in find_unproven_checks(["make", "lint"], one)}


def begun(call: str) -> tuple[Event, Event]:
    """A step of a plan that begins."""
    args: JsonObject = {"step": call, "status": "in_progress"}
    return (
        ToolCallEvent(id=call, tool="plan/update_step", args=args),
        ToolResponse(id=call, tool="plan/update_step", ok=True, outcome="done", result="…"),
    )


def remarks_on(check: str, *events: Event) -> tuple[str, ...]:
    proof = find_proof(check, fold(events).done)
    assert proof is not None
    return proof.remarks


def test_a_check_passed_before_the_work_only_where_it_ran_before_the_edits_of_its_own_step() -> None:
    """A23.3: a pass before the latest edit is none before the work."""
    first, second = ran("check a", 0, "a1"), ran("check a", 0, "a2")
    steps = (*begun("s1"), edited(), *first, *begun("s2"), edited("b.py"), *second)
    assert remarks_on("check a", *steps) == (), "its first run came after the edit of its own step"
    steps = (
        *begun("s1"),
        edited(),
        *begun("s2"),
        *ran("check b", 0, "b1"),
        edited("b.py"),
        *ran("check b", 0, "b2"),
    )
    assert remarks_on("check b", *steps) == ("passed_before",)
    assert remarks_on("check a", *first, edited(), edited("b.py"), *second) == ("passed_before",)
    assert remarks_on("check a", edited(), *first, edited("b.py"), *second) == ()
    red = ran("check a", 1, "a0")
    assert remarks_on("check a", *red, edited(), *first, edited("b.py"), *second) == ()


def test_a_check_that_a_nested_run_edited_first_did_not_pass_before_the_work() -> None:
    """A23.3"""
    nested = back(*begun("s1"), edited(), *ran("check a", 0, "n1"))
    assert remarks_on("check a", nested, edited("b.py"), *ran("check a", 0, "a2")) == ()
