"""What `emulate` lacks of GitHub: requests among the issues, who may ask what, edits, drafts, branches as they are."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote

from tests.services.git_server import GitServer
from tests.services.github.proxy import Asked, Reply, Upstream

_ROLES = {"push": "write", "maintain": "write", "triage": "read", "pull": "read"}
_WRITING = frozenset({"admin", "write"})
_MISSING = Reply(404, {"message": "Not Found"})
_OF_USERS = Reply(403, {"message": "Resource not accessible by integration"})


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Additions:
    """`owner` may do everything. `edits`: who changed a text last, and when, by its node id. `labelled`: who set which
    label, by repository and number, where `emulate` keeps no account of it. `app` is the account of the App."""

    git: GitServer
    owner: str
    app: str
    tokens: dict[str, str]
    edits: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    labelled: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    checks: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """Check runs by commit."""
    archived: set[str] = field(default_factory=set[str])
    """Repositories that take no change any more."""
    lasts: float = 3600.0
    """For how many seconds a token of the App is good."""

    def __call__(self, asked: Asked, upstream: Upstream) -> Reply:
        if asked.path == "/graphql":
            reply = self._graphql(asked, upstream)
        elif asked.path == "/user" and asked.login == self.app:
            reply = _OF_USERS
        elif asked.path.endswith("/access_tokens"):
            reply = self._minted(asked, upstream)
        elif asked.parts[0] == "repos" and len(asked.parts) >= 3:
            reply = self._of_repository(asked, upstream)
        else:
            reply = self._forwarded(asked, upstream)
        return Reply(reply.status, _with_bots(reply.data), reply.headers)

    def _forwarded(self, asked: Asked, upstream: Upstream) -> Reply:
        jwt = asked.token if asked.token.startswith("eyJ") else ""
        return upstream(asked.method, asked.path, asked.query, asked.login, asked.data, jwt)

    def _of_repository(self, asked: Asked, upstream: Upstream) -> Reply:
        _, owner, name, *rest = asked.parts
        repository = f"{owner}/{name}"
        if asked.changes and repository in self.archived:
            return Reply(403, {"message": "Repository was archived so is read-only."})
        match asked.method, rest:
            case "GET", []:
                reply = self._forwarded(asked, upstream)
                return self._seen(reply, repository, pushes=self._writes(upstream, repository, asked.login))
            case "GET", ["collaborators", login, "permission"]:
                if not self._writes(upstream, repository, asked.login):
                    told = "Must have push access to view collaborator permission."
                    return Reply(403, {"message": told})
                return self._permission(upstream, repository, unquote(login))
            case "GET", ["issues"]:
                return self._issues(asked, upstream, repository)
            case "GET", ["issues", number]:
                return self._issue(asked, upstream, repository, number)
            case "GET", ["issues", number, "events"]:
                return self._events(asked, upstream, repository, number)
            case "POST", ["issues"] | ["issues", _, "labels"] | ["pulls"]:
                return self._made(asked, upstream, repository, rest)
            case "PATCH", _:
                reply = self._forwarded(asked, upstream)
                if reply.status == 200 and "body" in (asked.data or {}):
                    self.edits[reply.data["node_id"]] = (now(), asked.login)
                return reply
            case "GET", ["commits", commit, "status"]:
                return Reply(200, {"state": "pending", "statuses": [], "sha": commit, "total_count": 0})
            case "GET", ["commits", commit, "check-runs"]:
                runs = self.checks.get(commit, [])
                return Reply(200, {"total_count": len(runs), "check_runs": runs})
            case "GET", ["branches", branch]:
                head = self.git.head(repository, unquote(branch))
                return Reply(200, {"name": unquote(branch), "commit": {"sha": head}}) if head else _MISSING
            case _:
                return self._seen(self._forwarded(asked, upstream), repository)

    def _seen(self, reply: Reply, repository: str, *, pushes: bool | None = None) -> Reply:
        """The answer with addresses and commits as they are in the real repository."""

        def mend(data: Any) -> Any:
            if isinstance(data, list):
                return [mend(each) for each in data]
            if not isinstance(data, dict):
                return data
            found = {key: mend(value) for key, value in data.items()}
            if "clone_url" in found:
                found["clone_url"] = self.git.address(found["full_name"])
            if "ref" in found and "sha" in found and isinstance(found.get("repo"), dict):
                found["sha"] = self.git.head(found["repo"]["full_name"], found["ref"]) or found["sha"]
            return found

        data = mend(reply.data)
        if pushes is not None and isinstance(data, dict) and "full_name" in data:
            data["permissions"] = {"push": pushes, "pull": True, "admin": False}
            data["archived"] = repository in self.archived
        return Reply(reply.status, data, reply.headers)

    def _permission(self, upstream: Upstream, repository: str, login: str) -> Reply:
        found = upstream("GET", f"/repos/{repository}/collaborators/{login}/permission", "", self.owner)
        if found.status == 404:
            user = upstream("GET", f"/users/{login}", "", self.owner)
            if user.status != 200:
                return _MISSING
            return Reply(200, {"permission": "read", "role_name": "read", "user": user.data})
        found.data["permission"] = _ROLES.get(found.data["permission"], found.data["permission"])
        return found

    def _writes(self, upstream: Upstream, repository: str, login: str) -> bool:
        if not login:
            return False
        found = self._permission(upstream, repository, login)
        return found.status == 200 and found.data["permission"] in _WRITING

    def _issues(self, asked: Asked, upstream: Upstream, repository: str) -> Reply:
        """Issues and requests, the newest change first; all on one page, as far as tests need it."""
        reply = self._forwarded(asked, upstream)
        asks = parse_qs(asked.query)
        pulls = upstream(
            "GET", asked.path.replace("/issues", "/pulls"), "state=open&per_page=100", asked.login
        )
        if reply.status != 200 or pulls.status != 200 or "page" in asks:
            return reply
        wanted = set(",".join(asks.get("labels", [])).split(",")) - {""}
        bot = asks.get("assignee", [""])[0]
        rows = [
            *reply.data,
            *(
                _as_issue(pull)
                for pull in pulls.data
                if wanted <= {label["name"] for label in pull["labels"]}
                and (not bot or bot in [user["login"] for user in pull["assignees"]])
            ),
        ]
        rows.sort(key=lambda row: row["updated_at"], reverse=True)
        return Reply(200, rows, reply.headers)

    def _issue(self, asked: Asked, upstream: Upstream, repository: str, number: str) -> Reply:
        reply = self._forwarded(asked, upstream)
        if reply.status != 404:
            return reply
        pull = upstream("GET", f"/repos/{repository}/pulls/{number}", "", asked.login)
        return Reply(200, _as_issue(pull.data)) if pull.status == 200 else reply

    def _events(self, asked: Asked, upstream: Upstream, repository: str, number: str) -> Reply:
        reply = self._forwarded(asked, upstream)
        kept = self.labelled.get(f"{repository}/{number}", [])
        events = reply.data if reply.status == 200 else []
        if reply.status == 200 or kept:
            rows = sorted([*events, *kept], key=lambda row: row["created_at"])
            return Reply(200, rows, reply.headers)
        return reply if self._issue(asked, upstream, repository, number).status == 404 else Reply(200, [])

    def _made(self, asked: Asked, upstream: Upstream, repository: str, rest: list[str]) -> Reply:
        sent = asked.data
        if rest == ["pulls"] and (refused := self._why_no_request(asked, upstream, repository)):
            return refused
        before: set[str] = set()
        path = f"/repos/{repository}/issues/{rest[1]}" if len(rest) == 3 else ""
        is_pull = bool(path) and upstream("GET", path, "", self.owner).status == 404
        if is_pull:
            before = {row["name"] for row in upstream("GET", f"{path}/labels", "", self.owner).data}
        reply = self._seen(self._forwarded(asked, upstream), repository)
        if reply.status not in (200, 201):
            return reply
        # On opening, emulate notes no label; of requests it tells no events at all.
        if rest == ["issues"] or is_pull:
            number = rest[1] if is_pull else str(reply.data["number"])
            for label in set(sent if isinstance(sent, list) else sent.get("labels", [])) - before:
                self._note_label(repository, number, asked.login, label)
        return reply

    def _note_label(self, repository: str, number: str, login: str, label: str) -> None:
        kept = self.labelled.setdefault(f"{repository}/{number}", [])
        kept.append(
            {
                "id": time.time_ns() // 1000,
                "event": "labeled",
                "actor": {"login": login, "type": "User"},
                "created_at": now(),
                "label": {"name": label, "color": "ededed"},
            }
        )

    def _why_no_request(self, asked: Asked, upstream: Upstream, repository: str) -> Reply | None:
        sent = asked.data
        head = str(sent["head"]).rpartition(":")[2]
        told = ""
        if not self.git.head(repository, head) or not self.git.head(repository, sent["base"]):
            told = "a branch that is not there"
        elif self.git.head(repository, head) == self.git.head(repository, sent["base"]):
            told = f"No commits between {sent['base']} and {head}"
        opened = upstream("GET", f"/repos/{repository}/pulls", "state=open&per_page=100", self.owner)
        if any((row["head"]["ref"], row["base"]["ref"]) == (head, sent["base"]) for row in opened.data):
            told = f"A pull request already exists for {head}."
        errors = [{"resource": "PullRequest", "code": "custom", "message": told}]
        return Reply(422, {"message": "Validation Failed", "errors": errors}) if told else None

    def _graphql(self, asked: Asked, upstream: Upstream) -> Reply:
        if not asked.login:
            return Reply(401, {"message": "Bad credentials"})
        words, given = asked.data["query"], asked.data.get("variables", {})
        if "viewer" in words:
            return Reply(200, {"data": {"viewer": {"login": asked.login}}})
        if "markPullRequestReadyForReview" in words:
            return self._ready(upstream, given["id"], asked.login)
        nodes: list[dict[str, Any]] = [
            {"id": each, "lastEditedAt": None, "editor": None} for each in given["ids"]
        ]
        for node in nodes:
            if each := self.edits.get(node["id"]):
                node |= {"lastEditedAt": each[0], "editor": {"login": each[1]}}
        return Reply(200, {"data": {"nodes": nodes}})

    def _ready(self, upstream: Upstream, node: str, login: str) -> Reply:
        for repository in upstream("GET", f"/users/{self.owner}/repos", "per_page=100", self.owner).data:
            path = f"/repos/{repository['full_name']}/pulls"
            for pull in upstream("GET", path, "per_page=100", self.owner).data:
                if pull["node_id"] == node:
                    upstream("PATCH", f"{path}/{pull['number']}", "", login, {"draft": False})
                    return Reply(200, {"data": {"markPullRequestReadyForReview": {"clientMutationId": None}}})
        return Reply(200, {"data": None, "errors": [{"type": "NOT_FOUND"}]})

    def _minted(self, asked: Asked, upstream: Upstream) -> Reply:
        """A token of the App, of the form that GitHub gives since 2026; what it does is done by the App's account."""
        reply = self._forwarded(asked, upstream)
        if reply.status != 201:
            return reply
        short = reply.data["token"].removeprefix("ghs_")
        reply.data["token"] = (
            f"ghs_{self.app.removesuffix('[bot]')}_eyJhbGciOiJSUzI1NiJ9.eyJ{short * 6}.{short * 3}"
        )
        end = datetime.fromtimestamp(time.time() + self.lasts, UTC)
        reply.data["expires_at"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.tokens[reply.data["token"]] = self.app
        self.git.tokens["x-access-token"] = reply.data["token"]
        return reply


def _as_issue(pull: dict[str, Any]) -> dict[str, Any]:
    """A request as the list of issues shows it."""
    kept = (
        "number",
        "node_id",
        "title",
        "body",
        "state",
        "locked",
        "user",
        "labels",
        "assignees",
        "updated_at",
    )
    row = {key: pull[key] for key in kept}
    return row | {"html_url": pull["html_url"], "pull_request": {"url": pull["url"], "draft": pull["draft"]}}


def _with_bots(data: Any) -> Any:
    """Accounts of programs are of another type."""
    if isinstance(data, list):
        return [_with_bots(each) for each in data]
    if not isinstance(data, dict):
        return data
    found = {key: _with_bots(value) for key, value in data.items()}
    if str(found.get("login", "")).endswith("[bot]"):
        found["type"] = "Bot"
    return found
