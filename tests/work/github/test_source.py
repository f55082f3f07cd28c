"""GitHub as a source against a small stateful fake: who is believed, and that everything happens once."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemKey, OpenRequest, Outcome, PostComment, SetState, ShowProgress
from daiku.items.github.source import GitHubSource
from daiku.items.record import ClaimLost
from daiku.settings.config import GitHubSettings, WorkLabels

T0, T1 = "2026-11-23T08:00:00Z", "2026-11-23T09:00:00Z"
KEY = ItemKey(source="github", kind="issue", repository="o/r", name="1")


class Forge:
    """One repository with one issue; `fault` is what becomes of the next change: an HTTP status, or lost after it."""

    def __init__(self) -> None:
        self.labels, self.actor = ["coding agent", "🐛 bug, urgent"], "owner"
        self.writers = {"owner"}
        self.comments: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = []
        self.issue: dict[str, Any] = {"state": "open", "locked": False, "body": "Do it.", "title": "T"}
        self.repo: dict[str, Any] = {"archived": False, "permissions": {"push": True}}
        self.edited: str | None = None
        self.fault: int | str = ""
        self.calls: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.calls.append(f"{request.method} {request.url.path}")
        if request.method != "GET" and "graphql" not in request.url.path:
            fault, self.fault = self.fault, ""
            if isinstance(fault, int):
                return httpx2.Response(fault, headers={"retry-after": "7"}, json={"message": "no"})
            done = self.change(request)
            if fault == "lost":
                raise httpx2.ReadTimeout("gone")
            return done
        return self.look(request)

    def look(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/repos/o/r")
        owner = {"login": "owner", "type": "User"}
        match path.strip("/").split("/"):
            case [""]:
                data: Any = {
                    "full_name": "o/r",
                    "clone_url": "https://github.com/o/r.git",
                    "default_branch": "main",
                }
                data |= self.repo
            case ["user"]:
                data = {"login": "owner"}
            case ["graphql"]:
                data = {"data": {"nodes": [{"id": "I1", "lastEditedAt": self.edited, "editor": None}]}}
            case ["issues"]:
                etag = f'"{self.labels!a}"'
                if request.headers.get("if-none-match") == etag:
                    return httpx2.Response(304)
                return httpx2.Response(200, json=[self.whole()], headers={"etag": etag})
            case ["issues", "1"]:
                data = self.whole()
            case ["issues", "1", "events"]:
                actor = {"login": self.actor, "type": "User"}
                label = {"name": "coding agent"}
                data = [{"id": 5, "event": "labeled", "actor": actor, "created_at": T1, "label": label}]
            case ["issues", "1", "labels"]:
                data = [{"name": name} for name in self.labels]
            case ["issues", "1", "comments"]:
                data = self.comments
            case ["collaborators", name, "permission"]:
                data = {
                    "permission": "write" if name in self.writers else "read",
                    "user": owner | {"login": name},
                }
            case ["pulls"]:
                data = self.pulls
            case _:
                return httpx2.Response(404, json={"message": "Not Found"})
        return httpx2.Response(200, json=data)

    def whole(self) -> dict[str, Any]:
        user = {"login": "stranger", "type": "User"}
        labels = [{"name": name} for name in self.labels]
        return {"number": 1, "node_id": "I1", "user": user, "labels": labels, "updated_at": T1} | self.issue

    def change(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/repos/o/r")
        sent = json.loads(request.content or b"{}")
        if path == "/issues/1/comments":
            row = {"id": len(self.comments) + 1, "node_id": "", "user": {"login": "owner"}, "created_at": T1}
            self.comments.append(row | {"updated_at": T1, "body": sent["body"]})
            return httpx2.Response(201, json=self.comments[-1])
        if path.startswith("/issues/comments/"):
            row = self.comments[int(path.rpartition("/")[2]) - 1]
            row["body"] = sent["body"]
            return httpx2.Response(200, json=row)
        if path == "/issues/1/labels":
            self.labels += sent["labels"]
            return httpx2.Response(200, json=[])
        if request.method == "DELETE":
            self.labels.remove(path.rpartition("/")[2])
            return httpx2.Response(200, json=[])
        if any(pull["head"]["ref"] == sent["head"] for pull in self.pulls):
            return httpx2.Response(422, json={"message": "Validation Failed", "errors": [{"code": "custom"}]})
        end = {"ref": sent["head"], "sha": "a"}
        pull = {"number": 2, "html_url": "u/2", "state": "open", "body": sent["body"], "head": end}
        self.pulls.append(pull | {"draft": sent["draft"], "base": {"ref": sent["base"]}})
        return httpx2.Response(201, json=self.pulls[-1])


@pytest.fixture
def forge() -> Forge:
    return Forge()


def new_source(forge: Forge, cache: Path | None = None) -> GitHubSource:
    return GitHubSource(
        GitHubSettings(repositories=("o/r",)),
        WorkLabels(),
        {"GITHUB_TOKEN": "ghp_secret"},
        lambda secret: None,
        lambda words: (words, False),
        httpx2.AsyncClient(transport=httpx2.MockTransport(forge)),
        cache,
    )


@pytest.fixture
async def source(forge: Forge):
    async with aclosing(new_source(forge)) as source:
        yield source


async def test_an_idle_look_is_one_call_and_still_names_what_is_to_be_worked(
    forge: Forge, source: GitHubSource
) -> None:
    first = await source.find()
    forge.calls.clear()
    assert await source.find() == first
    assert not isinstance(first, ForgeRefusal)
    assert [str(item.key) for item in first] == ["github:o/r#1"]
    assert forge.calls == ["GET /repos/o/r/issues"]


async def calls_of_start(forge: Forge, cache: Path) -> list[str]:
    """Return the calls of the first look of a worker, without `GET /repos/o/r/`."""
    forge.calls.clear()
    async with aclosing(new_source(forge, cache)) as source:
        found = await source.find()
    assert not isinstance(found, ForgeRefusal)
    assert [(each.key, each.labelled_at) for each in found] == [(KEY, T1)]
    return [each.removeprefix("GET /repos/o/r/") for each in forge.calls]


ASKED = ["issues", "issues/1/events", "collaborators/owner/permission"]


async def test_a_start_asks_nothing_of_items_that_have_not_changed(forge: Forge, tmp_path: Path) -> None:
    """B23.7: 1,000 labelled items are no 1,000 calls of each start by cron."""
    cache = tmp_path / "labels.json"
    assert await calls_of_start(forge, cache) == ASKED
    assert await calls_of_start(forge, cache) == ["issues"]
    forge.issue["updated_at"] = "2026-11-23T10:00:00Z"
    assert await calls_of_start(forge, cache) == ASKED


@pytest.mark.parametrize("content", [b"", b"{", b'{"label": "coding agent", "repositories": 5}'])
async def test_a_cache_that_cannot_be_read_is_asked_anew(
    forge: Forge, tmp_path: Path, content: bytes
) -> None:
    """B23.7"""
    cache = tmp_path / "labels.json"
    cache.write_bytes(content)
    assert await calls_of_start(forge, cache) == ASKED
    assert await calls_of_start(forge, cache) == ["issues"]


async def test_a_cache_that_cannot_be_written_stops_nothing(forge: Forge, tmp_path: Path) -> None:
    """B23.7"""
    for _ in range(2):
        assert await calls_of_start(forge, tmp_path / "missing" / "labels.json") == ASKED


async def test_the_answers_for_another_label_do_not_count(forge: Forge, tmp_path: Path) -> None:
    """B23.7"""
    cache = tmp_path / "labels.json"
    await calls_of_start(forge, cache)
    text = cache.read_text("utf-8")
    cache.write_text(text.replace('"label":"coding agent"', '"label":"another"'), "utf-8")
    assert await calls_of_start(forge, cache) == ASKED


async def test_a_refused_label_is_judged_again_by_each_start(forge: Forge, tmp_path: Path) -> None:
    """B23.7: its author may have got write access."""
    forge.actor = "stranger"
    for refused in ("forge.untrusted", "forge.untrusted", ""):
        if not refused:
            forge.writers.add("stranger")
        async with aclosing(new_source(forge, tmp_path / "labels.json")) as source:
            found = await source.find()
        assert not isinstance(found, ForgeRefusal)
        assert [each.refused.id if each.refused else "" for each in found] == [refused]


async def test_a_look_that_breaks_off_keeps_what_it_found_out(
    forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B23.7: the next look goes on behind it, also when the limit of calls ends each look."""
    looked, count = forge.look, 5

    def look(request: httpx2.Request) -> httpx2.Response:
        match request.url.path.removeprefix("/repos/o/r/").split("/"):
            case ["issues"]:
                return httpx2.Response(200, json=[forge.whole() | {"number": n} for n in range(1, count + 1)])
            case ["issues", _, "events"]:
                if sum("events" in each for each in forge.calls) > 2:
                    return httpx2.Response(403, headers={"retry-after": "60"}, json={"message": "limit"})
                event = {"id": 5, "event": "labeled", "actor": {"login": "owner"}, "created_at": T1}
                return httpx2.Response(200, json=[event | {"label": {"name": "coding agent"}}])
            case _:
                return looked(request)

    monkeypatch.setattr(forge, "look", look)
    counts: list[int] = []
    for _ in range(3):
        forge.calls.clear()
        async with aclosing(new_source(forge, tmp_path / "labels.json")) as started:
            items = await started.find()
        counts.append(0 if isinstance(items, ForgeRefusal) else len(items))
    assert counts == [0, 0, count]


@pytest.mark.parametrize("actor", ["stranger", "helper[bot]"])
async def test_a_label_set_by_somebody_without_write_access_counts_for_nothing(
    forge: Forge, source: GitHubSource, actor: str
) -> None:
    """B23.14: it is found with the reason, so that whoever waits for it can see it."""
    forge.actor = actor
    found = await source.find()
    assert not isinstance(found, ForgeRefusal)
    assert [(each.key, each.refused.id) for each in found] == [(KEY, "forge.untrusted")]
    read = await source.read(KEY)
    assert isinstance(read, ForgeRefusal)
    assert read.kind == "untrusted"


async def test_of_our_own_comments_nothing_is_asked(forge: Forge, source: GitHubSource) -> None:
    """B23.7: an item that waits costs two calls a look, however much was written before."""
    row = {
        "node_id": "N",
        "created_at": T1,
        "updated_at": "2026-11-23T10:00:00Z",
        "body": "<!-- daiku:progress -->",
    }
    forge.comments = [row | {"id": n, "user": {"login": "owner", "type": "User"}} for n in range(3)]
    old = {"id": 9, "user": {"login": "stranger"}, "body": "Before the last look.", "created_at": T0}
    forge.comments.append(row | old)
    await source.news(KEY, "", "")
    forge.calls.clear()
    news = await source.news(KEY, T1, "")
    assert not isinstance(news, ForgeRefusal)
    assert news.said == ()
    assert forge.calls == ["GET /repos/o/r/issues/1", "GET /repos/o/r/issues/1/comments"]


@pytest.mark.parametrize(("edited", "trusted"), [(None, True), (T0, True), (T1, False)])
async def test_a_strangers_text_is_an_instruction_only_as_it_stood_when_it_was_labelled(
    forge: Forge, source: GitHubSource, edited: str | None, trusted: bool
) -> None:
    forge.edited = edited
    read = await source.read(KEY)
    if trusted:
        assert not isinstance(read, ForgeRefusal)
        assert read.body_trusted
    else:
        assert isinstance(read, ForgeRefusal)
        assert read.kind == "untrusted"


@pytest.mark.parametrize(
    ("issue", "repo", "kind"),
    [
        ({"state": "closed"}, {}, "closed"),
        ({"locked": True}, {}, "locked"),
        ({"body": " "}, {}, "empty"),
        ({"body": "x" * 1_000_001}, {}, "too_large"),
        ({}, {"archived": True}, "archived"),
        ({}, {"permissions": {"push": False}}, "forbidden"),
        ({}, {"full_name": "o/other"}, "moved"),
    ],
)
async def test_what_cannot_be_worked_is_refused_for_its_reason(
    forge: Forge, source: GitHubSource, issue: dict[str, Any], repo: dict[str, Any], kind: str
) -> None:
    forge.issue |= issue
    forge.repo |= repo
    read = await source.read(KEY)
    assert isinstance(read, ForgeRefusal)
    assert read.kind == kind


@pytest.mark.parametrize("fault", [500, 502, 429, 403, "lost"])
@pytest.mark.parametrize(
    "intent",
    [
        SetState(state="processing"),
        PostComment(text="Hello."),
        ShowProgress(text="- [ ] one"),
        OpenRequest(branch="daiku/1", base="main", title="T", text="Done."),
    ],
)
async def test_what_failed_or_was_lost_and_is_tried_again_is_done_once(
    forge: Forge, source: GitHubSource, fault: int | str, intent: Any
) -> None:
    forge.fault = fault
    first = await source.apply(KEY, "op-1", intent, again=False)
    assert isinstance(first, ForgeRefusal)
    assert first.kind == ("limited" if fault in (403, 429) else "unreachable")
    if first.kind == "limited":
        assert 6 < first.retry_after <= 7
        changes = len(forge.calls)
        assert isinstance(await source.apply(KEY, "op-1", intent, again=True), ForgeRefusal)
        assert len(forge.calls) == changes, "nothing is sent while GitHub asks for a pause"
        source._wire._clock = lambda: 1e12
    done = await source.apply(KEY, "op-1", intent, again=True)
    assert isinstance(done, Outcome)
    match intent:
        case SetState():
            assert forge.labels == ["🐛 bug, urgent", "coding agent processing"]
        case OpenRequest():
            assert len(forge.pulls) == 1
        case _:
            assert len(forge.comments) == 1


@pytest.mark.parametrize(
    "intent",
    [
        SetState(state="processing"),
        PostComment(text="Hello."),
        ShowProgress(text="- [ ] one"),
        OpenRequest(branch="daiku/1", base="main", title="T", text="Done."),
    ],
)
async def test_before_each_change_it_is_asked_whether_the_item_is_still_ours(
    forge: Forge, source: GitHubSource, intent: Any
) -> None:
    """R2.40, R2.41: a worker that stood still must not send on waking what another one has sent meanwhile."""

    def lost() -> None:
        raise ClaimLost(str(KEY))

    before = list(forge.labels)
    with pytest.raises(ClaimLost):
        await source.apply(KEY, "op-1", intent, again=True, check=lost)
    assert (forge.comments, forge.pulls, forge.labels) == ([], [], before)


async def test_a_token_goes_to_no_other_host(source: GitHubSource) -> None:
    assert isinstance(await source.access(KEY, "https://evil.example/o/r.git"), ForgeRefusal)
    assert isinstance(await source.access(KEY, "http://github.com/o/r.git"), ForgeRefusal)
    access = await source.access(KEY, "https://github.com/o/r.git")
    assert not isinstance(access, ForgeRefusal)
    assert access.secret.get_secret_value() == "ghp_secret"
