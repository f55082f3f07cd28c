"""Reviewing one file, and choosing hunks of an edit that is not made yet."""

from __future__ import annotations

from daiku.domain.events import (
    ApprovalAsked,
    ApprovalDecision,
    ApprovalGiven,
    MessageEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.messages import UserMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.edits.rules.changes.choose import (
    ChosenHunks,
    count_choices,
    explain_invalid_choice,
    parse_hunks,
    render_left_out,
    select_hunks,
)
from daiku.edits.rules.changes.diff import render_patch
from daiku.edits.rules.changes.review import (
    Blob,
    FileReview,
    after_decision,
    after_edit,
    after_typing,
    list_hunks,
)
from daiku.edits.rules.matching.refusal import Refusal
from daiku.run.rules.state.fold import fold
from daiku.team.rules.proof.evidence import find_unproven_checks
from daiku.texts.text import Text
from tests.cases import for_each

TEXT = "".join(f"line {i}\n" for i in range(1, 31))


def review(before: str | None, after: str | None) -> FileReview:
    return after_edit(FileReview(before, before), after, "e")


# ---- the lines between three texts


def test_typing_elsewhere_moves_to_both_sides_and_leaves_the_names_of_hunks() -> None:
    one = review(TEXT, TEXT.replace("line 5\n", "FIVE\n").replace("line 20\n", ""))
    now = str(one.now).replace("line 10\n", "ten\n").replace("line 1\n", "zero\nline 1\n")
    two = after_typing(one, now)
    assert [h.id for h in list_hunks(two)] == [h.id for h in list_hunks(one)]
    assert two.base == TEXT.replace("line 10\n", "ten\n").replace("line 1\n", "zero\nline 1\n")
    assert not any(h.span.touched for h in list_hunks(two))


def test_a_second_edit_of_the_same_lines_is_one_hunk_against_the_first_text() -> None:
    one = review(TEXT, TEXT.replace("line 5\n", "FIVE\n"))
    two = after_edit(one, str(one.now).replace("FIVE\n", "five\n"), "e2")
    (hunk,) = list_hunks(two)
    assert (hunk.old, hunk.new) == (("line 5\n",), ("five\n",))


def test_an_edit_that_is_taken_back_by_the_next_leaves_nothing_to_decide_on() -> None:
    one = review(TEXT, TEXT.replace("line 5\n", "FIVE\n"))
    assert not after_edit(one, TEXT, "e2").open
    assert not after_typing(one, TEXT).open


def test_equal_hunks_in_one_file_have_names_of_their_own_that_stay() -> None:
    before = "x\n" + "same\nstay 1\nstay 2\nstay 3\n" * 3
    one = review(before, before.replace("same\n", "other\n"))
    names = [h.id for h in list_hunks(one)]
    assert len(set(names)) == 3
    left = after_decision(one, accept=False, ids={names[0]})
    assert [h.id for h in list_hunks(left)] == names[1:]
    left = after_decision(one, accept=True, ids={names[1]})
    assert [h.id for h in list_hunks(left)] == [names[0], names[2]]


def test_line_ends_and_a_missing_last_one_are_kept() -> None:
    before = "a\r\nb\r\nc"
    one = review(before, "a\r\nB\r\nc\r\nd")
    assert after_decision(one, accept=False).now == before
    names = [h.id for h in list_hunks(one)]
    for name in names:
        one = after_decision(one, accept=False, ids={name})
    assert one.now == before


def test_the_end_of_the_last_line_is_not_lost_beside_a_removed_end() -> None:
    one = review("x\na", "x\n")
    two = after_typing(one, "x\ny\n")
    (hunk,) = list_hunks(two)
    assert hunk.span.touched
    assert after_decision(two, accept=False, ids={hunk.id}).now == "x\na"


def test_a_file_that_the_person_took_away_has_nothing_to_decide_on() -> None:
    assert not after_typing(review(TEXT, TEXT.replace("5", "five")), None).open
    assert not after_typing(review(TEXT, None), "mine\n").open
    assert not after_typing(review(None, "made\n"), None).open


def test_made_deleted_and_binary_files_are_decided_on_as_a_whole() -> None:
    made = review(None, "a\nb\n")
    (hunk,) = list_hunks(made)
    assert after_decision(made, accept=False, ids={hunk.id}).now is None
    assert after_decision(made, accept=True, ids={hunk.id}) == FileReview("a\nb\n", "a\nb\n")
    gone = review("a\n", None)
    assert after_decision(gone, accept=False).now == "a\n"
    assert review(None, "").open
    picture = review(None, None)
    assert not picture.open
    removed = after_edit(FileReview(Blob("x"), Blob("x")), None, "e")
    assert removed.open
    assert after_decision(removed, accept=False).now == Blob("x")


def test_what_was_taken_back_is_told_to_the_model_in_its_next_turn() -> None:
    rejected = Review(decision="reject", path="a.py", hunks=2)
    restored = Restored(checkpoint_id="c", files=(FileStat(path="b.py", kind="edit"),))
    accepted = Review(decision="accept", path="c.py", hunks=1)
    begun = (
        RunStarted(prompt="go"),
        MessageEvent(role="assistant", text=Text("done")),
        RunFinished(status="completed"),
    )
    told = fold((*begun, rejected, restored, accepted)).conversation.messages[2:]
    assert ["a.py" in m.text or "b.py" in m.text for m in told] == [True, True]
    assert "c.py" not in "".join(m.text for m in told)


def test_what_was_taken_back_comes_after_the_results_of_calls_under_way() -> None:
    call = ToolCall(id="c1", tool="shell/run")
    under_way = (RunStarted(prompt="go"), MessageEvent(role="assistant", text=Text(""), calls=(call,)))
    state = fold((*under_way, Review(decision="reject", path="a.py", hunks=1)))
    assert not isinstance(state.conversation.messages[-1], UserMessage)
    assert len(state.conversation.queued) == 1


def test_checks_that_passed_before_something_was_taken_back_prove_nothing() -> None:
    call = ToolCall(id="c1", tool="shell/run", args={"command": "pytest"})
    run = (
        RunStarted(prompt="go"),
        MessageEvent(role="assistant", text=Text(""), calls=(call,)),
        ToolCallEvent(id="c1", tool="shell/run", args=call.args),
        ToolResponse(id="c1", tool="shell/run", ok=True, result="", data={"exitCode": 0}),
    )
    assert not find_unproven_checks(["pytest"], fold(run).done)
    assert not find_unproven_checks(
        ["pytest"], fold((*run, Review(decision="accept", path="a", hunks=1))).done
    )
    assert find_unproven_checks(["pytest"], fold((*run, Review(decision="reject", path="a", hunks=1))).done)


# ---- hunks of an edit that is not made yet

TWO = TEXT.replace("line 3\n", "THREE\n").replace("line 25\n", "")
PATCH = Patch(
    files=(
        FileChange(path="a.txt", kind="edit", old=TEXT, new=TWO),
        FileChange(path="-- odd.txt", kind="create", new="-- a line\n++ another\n@@ a third\n"),
        FileChange(path="empty", kind="create", new=""),
        FileChange(path="old", kind="rename", old="x\n", new="x\n", to="new"),
        FileChange(path="moved", kind="rename", old="x\ny\n", new="x\nz\n", to="to"),
        FileChange(path="gone", kind="delete", old="--- a/b\n-- \n", new=None),
    )
)


def test_hunks_are_numbered_in_the_order_of_the_diff() -> None:
    shown = parse_hunks(render_patch(PATCH))
    assert len(shown) == 7
    firsts = [part.head.splitlines()[0] for part in shown]
    assert firsts[:3] == ["--- a/a.txt", "--- a/a.txt", "--- /dev/null"]
    assert firsts[3:6] == ["diff --git a/empty b/empty", "diff --git a/old b/new", "diff --git a/moved b/to"]
    assert "THREE" in shown[0].body
    assert "line 25" in shown[1].body
    assert "@@ a third" in shown[2].body
    assert "gone" in shown[6].head


@for_each(
    ("hunks", "paths"),
    [
        ((0,), {"a.txt": "edit"}),
        ((1, 2), {"a.txt": "edit", "-- odd.txt": "create"}),
        ((3, 4), {"empty": "create", "old": "rename"}),
        ((5, 6), {"moved": "rename", "gone": "delete"}),
        ((0, 1, 2, 3, 4, 5, 6), {change.path: change.kind for change in PATCH.files}),
    ],
)
def test_only_the_chosen_hunks_are_left(hunks: tuple[int, ...], paths: dict[str, str]) -> None:
    part = select_hunks(PATCH, ChosenHunks(render_patch(PATCH), hunks))
    assert not isinstance(part, Refusal)
    assert {change.path: change.kind for change in part.patch.files} == paths
    for change in part.patch.files:
        if change.path == "a.txt":
            assert ("THREE" in str(change.new)) == (0 in hunks)
            assert ("line 25" in str(change.new)) == (1 not in hunks)
    assert len(hunks) == 7 or len(parse_hunks(render_patch(part.left_out))) == 7 - len(hunks)


def test_what_was_left_out_is_told_with_the_persons_words() -> None:
    wanted = ChosenHunks(render_patch(PATCH), (0, 2, 3, 4, 5, 6), "line 25 is needed")
    part = select_hunks(PATCH, wanted)
    assert not isinstance(part, Refusal)
    text = render_left_out(part, wanted)
    assert "They said: line 25 is needed" in text
    assert "-line 25\n" in text
    assert "THREE" not in "\n".join(line for line in text.splitlines() if line.startswith(("+", "-")))


def test_an_edit_that_is_no_longer_the_one_that_was_shown_is_refused() -> None:
    other = Patch(files=(FileChange(path="a.txt", kind="edit", old="new\n" + TEXT, new="new\n" + TWO),))
    refused = select_hunks(other, ChosenHunks(render_patch(Patch(files=PATCH.files[:1])), (0,)))
    assert isinstance(refused, Refusal)
    assert "changed since" in refused.text


def test_only_edits_of_texts_can_be_chosen_from() -> None:
    assert count_choices("files/patch", render_patch(PATCH)) == 7
    assert count_choices("files/delete", render_patch(PATCH)) == 0
    assert count_choices("shell/run", "@@ -1 +1 @@\n-a\n+b\n") == 0
    notebook = Patch(files=(FileChange(path="n.ipynb", kind="create", new="x\n"),))
    assert count_choices("files/write", render_patch(notebook)) == 0


@for_each(
    ("decision", "hunks", "wrong"),
    [
        ("allow_once", (0, 1), ""),
        ("allow_always", (1,), ""),
        ("allow_once", None, ""),
        ("reject_once", (0,), "You can select hunks only"),
        ("allow_once", (), "No hunk"),
        ("allow_once", (2,), "Valid hunks are 0 to 1"),
        ("allow_once", (-1,), "Valid hunks are 0 to 1"),
    ],
)
def test_a_choice_must_fit_what_was_asked(
    decision: ApprovalDecision, hunks: tuple[int, ...] | None, wrong: str
) -> None:
    asked = ApprovalAsked(
        approval_id="a", kind="edit", tool="files/edit", args={}, preview=Text(""), why=Text(""), hunks=2
    )
    given = ApprovalGiven(approval_id="a", decision=decision, hunks=hunks)
    assert explain_invalid_choice(asked, given).startswith(wrong)
    assert bool(explain_invalid_choice(asked, given)) == bool(wrong)
    if hunks:
        assert explain_invalid_choice(asked.model_copy(update={"hunks": 0}), given)
