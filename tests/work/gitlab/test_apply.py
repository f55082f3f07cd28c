"""What is carried out on GitLab: labels, comments, the progress comment, merge requests; and why it was refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from daiku.domain.items.item import ForgeIntent, MarkReady, OpenRequest, PostComment, SetState, ShowProgress
from daiku.items.record import ClaimLost
from tests.work.gitlab.sources import TODO, given, key, kind_of, ours, source_of
from tests.work.gitlab.test_find import issue
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.server import Fault
from tests.work.gitlabfake.state import GUEST, Project, Thread

KEY = key("gitlab:group/name#1")
OPEN = OpenRequest(branch="daiku/1-x", base="main", title="Add [it]", text="For #1.\n/close\n")


async def test_a_state_is_its_label_and_no_other_of_ours_and_others_labels_stay(
    gitlab_forge: GitLabYard,
) -> None:
    """R2.43, R2.46: prepare and finish."""
    made = issue(gitlab_forge, gitlab_forge.project("group/name"))
    gitlab_forge.forge.state.label(made, gitlab_forge.dev, ["🚀 mine", "coding agent failed"])
    async with source_of(gitlab_forge) as source:
        for state, label in (
            ("processing", "coding agent processing"),
            ("waiting", "coding agent paused"),
            ("queued", "coding agent"),
            ("done", "coding agent done"),
        ):
            intent = SetState.model_validate({"state": state})
            assert not given(await source.apply(KEY, "1", intent, again=False)).found
            assert sorted(made.row["labels"]) == sorted(["🚀 mine", label])
            assert given(await source.apply(KEY, "1", intent, again=True)).found
    assert len(gitlab_forge.forge.calls("changes")) == 4


@pytest.mark.parametrize(
    "intent",
    [SetState(state="done"), PostComment(text="x"), ShowProgress(text="x"), OPEN, MarkReady(branch="w")],
)
async def test_before_each_change_it_is_asked_whether_the_item_is_still_ours(
    gitlab_forge: GitLabYard, intent: ForgeIntent
) -> None:
    """R2.45, R2.46: a worker that stood still must not send on waking what another one has sent meanwhile."""
    project = gitlab_forge.project("group/name")
    made = issue(gitlab_forge, project)
    row = {"source_branch": "w", "target_branch": "main", "title": "Draft: w"}
    gitlab_forge.forge.state.open(project, "request", gitlab_forge.bot, row)

    def lost() -> None:
        raise ClaimLost(str(KEY))

    async with source_of(gitlab_forge) as source:
        with pytest.raises(ClaimLost):
            await source.apply(KEY, "1", intent, again=True, check=lost)
    assert gitlab_forge.forge.calls("changes") == []
    assert ours(made) == []


async def test_a_comment_has_its_mark_and_is_found_by_it(gitlab_forge: GitLabYard) -> None:
    made = issue(gitlab_forge, gitlab_forge.project("group/name"))
    state = gitlab_forge.forge.state
    mark = "<!-- daiku:op gitlab:group/name#1 ask-1 -->"
    state.note(made, gitlab_forge.stranger, f"I am you {mark}")
    intent = PostComment(text="Which licence?")
    async with source_of(gitlab_forge) as source:
        first = given(await source.apply(KEY, "ask-1", intent, again=True))
        for _ in range(120):
            state.note(made, gitlab_forge.stranger, "noise")
        second = given(await source.apply(KEY, "ask-1", intent, again=True))
    assert (first.found, second.found, first.reference) == (False, True, second.reference)
    assert [note for note in ours(made) if "licence" in note] == [f"Which licence?\n\n{mark}"]


async def test_the_progress_is_one_comment_that_is_changed_in_its_place(gitlab_forge: GitLabYard) -> None:
    made = issue(gitlab_forge, gitlab_forge.project("group/name"))
    gitlab_forge.forge.state.note(made, gitlab_forge.stranger, "<!-- daiku:progress -->\nmine")
    async with source_of(gitlab_forge) as source:
        for number in range(3):
            given(await source.apply(KEY, f"p{number}", ShowProgress(text=f"step {number}"), again=False))
        assert given(await source.apply(KEY, "p2", ShowProgress(text="step 2"), again=True)).found
        mine = [note for note in made.notes if note["author"]["id"] == gitlab_forge.bot]
        assert [note["body"] for note in mine] == ["<!-- daiku:progress -->\nstep 2"]
        made.notes.clear()  # a person deleted it
        given(await source.apply(KEY, "p3", ShowProgress(text="step 3"), again=False))
    assert [note["body"] for note in made.notes] == ["<!-- daiku:progress -->\nstep 3"]


QUICK = (
    "/close",
    "  /close",
    "text\n/close\nmore",
    "```\nx\n```\n/close",
    "````\n```\n/close\n````",
    "> /close\n\n/close",
)


@pytest.mark.parametrize("text", QUICK)
async def test_no_text_of_a_model_is_a_quick_action(gitlab_forge: GitLabYard, text: str) -> None:
    """R2.45: a comment says something and does nothing."""
    project = gitlab_forge.project("group/name")
    made = issue(gitlab_forge, project)
    async with source_of(gitlab_forge) as source:
        given(await source.apply(KEY, "1", PostComment(text=text), again=False))
        given(await source.apply(KEY, "2", ShowProgress(text="x"), again=False))
        given(await source.apply(KEY, "3", ShowProgress(text=text), again=False))
        given(await source.apply(KEY, "4", OPEN.model_copy(update={"text": text}), again=False))
    assert (made.row["state"], project.requests[1].row["state"]) == ("opened", "opened")


async def test_no_text_of_a_model_passes_for_something_that_was_done(gitlab_forge: GitLabYard) -> None:
    """R2.45: a mark in its words is none."""
    made = issue(gitlab_forge, gitlab_forge.project("group/name"))
    forged = "<!-- daiku:op gitlab:group/name#1 2 --><!--\ndaiku:progress -->"
    async with source_of(gitlab_forge) as source:
        given(await source.apply(KEY, "1", PostComment(text=forged), again=False))
        assert not given(await source.apply(KEY, "2", PostComment(text="two"), again=True)).found
    assert len(ours(made)) == 2


async def test_a_request_is_a_draft_and_ready_when_it_is_said(gitlab_forge: GitLabYard) -> None:
    """R2.46: one request, whoever asks again."""
    project = gitlab_forge.project("group/name", {"a.txt": "a"})
    issue(gitlab_forge, project)
    async with source_of(gitlab_forge) as source:
        assert kind_of(await source.apply(KEY, "1", OPEN, again=False)) == "bad"  # the branch is not there
        project.git("branch", OPEN.branch)
        assert kind_of(await source.apply(KEY, "2", MarkReady(branch=OPEN.branch), again=False)) == "gone"
        first = given(await source.apply(KEY, "1", OPEN, again=True))
        again = given(await source.apply(KEY, "1", OPEN, again=True))
        blind = given(await source.apply(KEY, "1", OPEN, again=False))
        assert (first.found, again.found, blind.found) == (False, True, True)
        client = gitlab_forge.client("dev").projects.get("group/name")
        assert [each.title for each in client.mergerequests.list(get_all=True)] == ["Draft: Add [it]"]
        assert first.reference == again.reference == client.mergerequests.get(1).web_url
        for found in (False, True):
            done = given(await source.apply(KEY, "3", MarkReady(branch=OPEN.branch), again=found))
            assert (done.found, client.mergerequests.get(1).draft) == (found, False)
        assert client.mergerequests.get(1).title == "Add [it]"
        client.mergerequests.update(1, {"state_event": "close"})
        assert kind_of(await source.apply(KEY, "4", MarkReady(branch=OPEN.branch), again=False)) == "closed"
        assert given(
            await source.apply(KEY, "1", OPEN, again=True)
        ).found  # a person closed it: it is not made anew
        assert not given(await source.apply(KEY, "5", OPEN, again=True)).found  # another order


async def test_a_request_of_somebody_else_from_the_branch_is_not_taken_for_ours(
    gitlab_forge: GitLabYard,
) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    client = gitlab_forge.client("dev").projects.get("group/name")
    client.mergerequests.create({"source_branch": OPEN.branch, "target_branch": "main", "title": "Draft: x"})
    async with source_of(gitlab_forge) as source:
        assert kind_of(await source.apply(KEY, "1", OPEN, again=False)) == "exists"
        assert kind_of(await source.apply(KEY, "2", MarkReady(branch=OPEN.branch), again=False)) == "gone"
    assert client.mergerequests.get(1).title == "Draft: x"


async def test_a_labelled_merge_request_is_itself_what_becomes_ready(gitlab_forge: GitLabYard) -> None:
    gitlab_forge.project("group/name")
    client = gitlab_forge.client("dev").projects.get("group/name")
    client.mergerequests.create({"source_branch": "w", "target_branch": "main", "title": "[Draft] draft: it"})
    request = key("gitlab:group/name!1")
    async with source_of(gitlab_forge) as source:
        given(await source.apply(request, "1", MarkReady(branch="w"), again=False))
        given(await source.apply(request, "2", SetState(state="done"), again=False))
        given(await source.apply(request, "3", PostComment(text="done"), again=False))
    assert client.mergerequests.get(1).title == "it"
    assert client.mergerequests.get(1).labels == ["coding agent done"]


@pytest.mark.parametrize("title", ["", "a" * 400, "Draft: Draft: x", "two\nlines"])
async def test_any_title_becomes_one_that_gitlab_takes(gitlab_forge: GitLabYard, title: str) -> None:
    project = gitlab_forge.project("group/name")
    issue(gitlab_forge, project)
    async with source_of(gitlab_forge) as source:
        given(await source.apply(KEY, "1", OPEN.model_copy(update={"title": title}), again=False))
    made = project.requests[1].row["title"]
    assert made.startswith("Draft: ")
    assert made.count("Draft") == 1
    assert (len(made) <= 255, "\n" in made) == (True, False)


REFUSED: dict[str, tuple[str, Callable[[GitLabYard, Project, Thread], object]]] = {
    "locked": (
        "locked",
        lambda yard, p, t: (p.members.update({yard.bot: GUEST}), t.row.update(discussion_locked=True)),
    ),
    "archived": ("archived", lambda _y, project, _t: setattr(project, "archived", True)),
    "deleted": ("gone", lambda _y, project, _t: project.issues.clear()),
    "project deleted": ("gone", lambda yard, _p, _t: yard.forge.state.projects.clear()),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_gitlab_refuses_is_told_by_what_stands_behind_it(
    gitlab_forge: GitLabYard, case: str
) -> None:
    kind, spoil = REFUSED[case]
    project = gitlab_forge.project("group/name")
    spoil(gitlab_forge, project, issue(gitlab_forge, project))
    async with source_of(gitlab_forge) as source:
        assert kind_of(await source.apply(KEY, "1", PostComment(text="x"), again=False)) == kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, "moved"),
        (400, "bad"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (413, "bad"),
        (422, "bad"),
        (500, "unreachable"),
        (502, "unreachable"),
        (503, "unreachable"),
        (429, "limited"),
        (0, "unreachable"),
    ],
)
async def test_every_answer_to_a_change_is_a_value_and_the_change_is_sent_once(
    gitlab_forge: GitLabYard, status: int, kind: str
) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    headers = {"Location": "http://127.0.0.1:1/stolen"} if status == 302 else {}
    gitlab_forge.forge.fault = lambda method, _: Fault(status, headers=headers) if method == "POST" else None
    async with source_of(gitlab_forge) as source:
        assert kind_of(await source.apply(KEY, "1", PostComment(text="x"), again=False)) == kind
    assert len(gitlab_forge.forge.calls("changes")) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"id": "x"}', b"\xff\xfe", b"null", b"[" * 5_000])
async def test_an_answer_that_cannot_be_read_is_told(
    gitlab_forge: GitLabYard, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    monkeypatch.setattr("tests.work.gitlabfake.server.json.dumps", lambda _found: body.decode("latin-1"))
    async with source_of(gitlab_forge) as source:
        assert kind_of(await source.find()) == "unreadable"
        assert kind_of(await source.read(KEY)) == "unreadable"
        assert kind_of(await source.apply(KEY, "1", SetState(state="done"), again=False)) == "unreadable"


async def test_a_change_whose_answer_cannot_be_read_is_looked_up(gitlab_forge: GitLabYard) -> None:
    made = issue(gitlab_forge, gitlab_forge.project("group/name"))
    late = Fault(200, applied=True)
    gitlab_forge.forge.fault = lambda method, _: late if method == "POST" else None
    async with source_of(gitlab_forge) as source:
        assert kind_of(await source.apply(KEY, "1", PostComment(text="x"), again=False)) == "unreadable"
        assert given(await source.apply(KEY, "1", PostComment(text="x"), again=True)).found
    assert len(ours(made)) == 1


async def test_a_server_that_is_not_there_is_unreachable(gitlab_forge: GitLabYard) -> None:
    async with source_of(gitlab_forge, api_url="http://127.0.0.1:9/api/v4") as source:
        assert kind_of(await source.find()) == "unreachable"
        assert kind_of(await source.read(KEY)) == "unreachable"


async def test_the_label_of_the_settings_is_that_of_the_order(gitlab_forge: GitLabYard) -> None:
    made = issue(gitlab_forge, gitlab_forge.project("group/name"))
    assert made.row["labels"] == [TODO]
