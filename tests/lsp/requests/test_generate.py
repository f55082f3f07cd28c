"""`daiku/generate`: a Trajectory whatever is asked, the model asked by a run that is on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from daiku import api
from daiku.domain.playbook import Delta, PlaybookScope
from daiku.playbook.repository import open_playbooks
from daiku.trace.stores import open_stores
from tests.lsp.conftest import connected

Script = Callable[..., str]


async def test_a_query_is_answered_by_a_run_on_record(workspace: Path, script: Script) -> None:
    """R3.1, R3.3, R3.30: the Trajectory in camelCase, all of it; the run streams and stands in a session."""
    model = script({"text": "Use a token bucket."})
    async with connected(workspace) as server:
        params = {"query": "Limit rates.", "dataset": "appworld", "model": model, "partialResultToken": "t"}
        made = await server.client.request("daiku/generate", params)
        assert list(made) == [
            "query",
            "dataset",
            "generatedAnswer",
            "reasoningSteps",
            "usedBulletIds",
            "status",
            "errorMessage",
            "createdAt",
        ]
        api.GenerateResult.model_validate(made)
        assert (made["status"], made["errorMessage"]) == ("success", None)
        assert made["generatedAnswer"] == "Use a token bucket."
        chunks = server.client.chunks("t")
        assert [c["type"] for c in chunks if c["type"] != "delta"] == [
            "run_started",
            "agent_start",
            "message",
            "usage",
            "agent_end",
            "run_finished",
        ]
        assert {c["agent"] for c in chunks} == {"generator"}
        assert chunks[0]["data"]["prompt"] == "Limit rates."
        assert "## Task\nLimit rates.\n" in chunks[0]["data"]["told"]
        stored = await server.client.request("daiku/session/get", {"sessionId": chunks[0]["session"]})
        assert stored["session"]["title"] == "Limit rates."
        assert [c["seq"] for c in stored["chunks"]] == [c["seq"] for c in chunks if c["type"] != "delta"]


@pytest.mark.parametrize(
    ("query", "dataset", "stage"),
    [("", "default", "input"), ("q", "../x", "input"), ("q", "a\x00", "input"), ("q", "default", "model")],
)
async def test_what_cannot_be_answered_is_a_failure_and_no_error(
    workspace: Path, query: str, dataset: str, stage: str
) -> None:
    """R3.37, R3.38, C3.12, C3.13: only a model that fails was asked at all."""
    async with connected(workspace) as server:
        params = {
            "query": query,
            "dataset": dataset,
            "model": "scripted/none.jsonl",
            "partialResultToken": "t",
        }
        made = await server.client.request("daiku/generate", params)
        assert (made["status"], made["generatedAnswer"]) == ("failure", "")
        assert made["errorMessage"].startswith(f"{stage}: ")
        assert (made["query"], made["dataset"]) == (query, dataset)
        if stage == "input":
            assert server.client.chunks("t") == []
            assert (await server.client.request("daiku/session/list", {}))["sessions"] == []


async def test_wrong_types_are_refused(workspace: Path) -> None:
    """R3.34: by the wire, with every problem."""
    async with connected(workspace) as server:
        wrong = await server.client.refused("daiku/generate", {"query": 1})
        assert (wrong.code, len(wrong.data)) == (-32602, 2)


async def test_a_run_that_is_cancelled_is_a_failure(workspace: Path, script: Script) -> None:
    """R3.38: by `daiku/cancel`; steps are told in the client's language."""
    slow = script({"text": "word " * 500, "delay_ms": 20})
    async with connected(workspace, client={"approvals": True, "locale": "ja"}) as server:
        params = {"query": "q", "dataset": "default", "model": slow, "partialResultToken": "t"}
        waiting = asyncio.ensure_future(server.client.request("daiku/generate", params))
        await server.client.until(lambda: [c for c in server.client.chunks("t") if c["type"] == "delta"])
        await server.client.request("daiku/cancel", {"runId": server.client.chunks("t")[0]["run"]})
        made = await waiting
        assert made["status"] == "failure"
        assert made["errorMessage"] == "model: 実行は完了しませんでした（cancelled）。"
        assert made["reasoningSteps"][0] == "プレイブックの教訓は 0 件です。"


async def test_a_trusted_workspace_has_templates_of_its_own(workspace: Path, script: Script) -> None:
    """R3.12, R3.39, C3.13: `.daiku/prompts/generator/<dataset>.txt`; those of strangers are not used."""
    folder = workspace / ".daiku" / "prompts" / "generator"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("Mine: {query}{context}", "utf-8")
    for trusted, told in ((True, "Mine: q"), (False, "以下の知識ベース")):
        async with connected(workspace, trusted=trusted) as server:
            params = {
                "query": "q",
                "dataset": "mine",
                "model": script({"text": "ok"}),
                "partialResultToken": "t",
            }
            await server.client.request("daiku/generate", params)
            assert server.client.chunks("t")[0]["data"]["told"].startswith(told)


def learn(home: Path, workspace: Path, *contents: str, scope: PlaybookScope = "repository") -> list[str]:
    """Put bullets into the playbook of the workspace's repository, or of the person; their ids."""
    stores = open_stores(home / "daiku.db", str)
    try:
        kept = open_playbooks(stores.database, (workspace,))
        store = kept.user if scope == "user" else kept.repository
        assert store is not None
        section = "project_conventions"
        done = [
            store.apply(Delta(id="", type="add", scope=scope, section=section, content=content))
            for content in contents
        ]
        return [each.bullet_id for each in done if isinstance(each, Delta)]
    finally:
        stores.close()


async def test_it_reads_the_workspaces_playbook_and_the_persons(
    workspace: Path, script: Script, daiku_home: Path
) -> None:
    """R3.2, R3.8, C3.5: where the person trusts the workspace, and where playbooks are to be read at all."""
    [ours] = learn(daiku_home, workspace, "Limit rates with a token bucket.")
    [mine] = learn(daiku_home, workspace, "Limit rates per user.", scope="user")
    for more, known in (
        ({}, [ours, mine]),
        ({"trusted": False}, [mine]),
        ({"settings": {"playbook": {"enabled": False}}}, []),
    ):
        async with connected(workspace, **more) as server:
            model = script({"text": "ok"})
            params = {"query": "How to limit rates?", "dataset": "default", "model": model}
            made = await server.client.request("daiku/generate", params | {"partialResultToken": "t"})
            assert made["errorMessage"] is None
            assert sorted(made["usedBulletIds"]) == sorted(known)
            told = server.client.chunks("t")[0]["data"]["told"]
            assert ("token bucket" in told, "per user" in told) == (ours in known, mine in known)


async def test_used_are_those_that_the_model_names(workspace: Path, script: Script, daiku_home: Path) -> None:
    """C3.5, R3.19: of what was retrieved, which stands in the journal and once in what the model reads."""
    one, two = learn(daiku_home, workspace, "Limit rates with a token bucket.", "Limit rates per user.")
    async with connected(workspace) as server:
        model = script({"text": f"A bucket [{one}], and [pc-00099]."})
        params = {"query": "How to limit rates?", "dataset": "default", "model": model}
        made = await server.client.request("daiku/generate", params | {"partialResultToken": "t"})
        assert made["usedBulletIds"] == [one]
        assert two in " ".join(made["reasoningSteps"])
        session = server.client.chunks("t")[0]["session"]
        stored = (await server.client.request("daiku/session/get", {"sessionId": session}))["chunks"]
        assert [(each["id"], each["version"]) for each in stored[0]["data"]["lessons"]] == [
            (two, 1),  # the shorter text: the same word counts more in it
            (one, 1),
        ]
        assert stored[-1]["data"]["usedBullets"] == [one]


async def test_a_request_that_is_taken_back_cancels_its_run(workspace: Path, script: Script) -> None:
    """R3.38: who takes the request back is told that it was cancelled, and the run has ended."""
    slow = script({"text": "word " * 500, "delay_ms": 20})
    async with connected(workspace) as server:
        params = {"query": "q", "dataset": "default", "model": slow, "partialResultToken": "t"}
        params["workDoneToken"] = "bar"
        waiting = asyncio.ensure_future(server.client.refused("daiku/generate", params))
        await server.client.until(lambda: [c for c in server.client.chunks("t") if c["type"] == "delta"])
        asked = next(iter(server.client._waiting))
        server.client.notify("$/cancelRequest", {"id": asked})
        assert (await waiting).code == -32800
        assert server.client.chunks("t")[-1]["data"]["status"] == "cancelled"


async def test_a_model_that_says_nothing_is_asked_again_and_then_a_failure(
    workspace: Path, script: Script
) -> None:
    """R3.37: it is a run's rule that an empty reply is none; what `invoke` gives back is an answer whatever it is."""
    async with connected(workspace) as server:
        params = {"query": "q", "dataset": "default", "model": script({"text": ""}, {"text": ""})}
        made = await server.client.request("daiku/generate", params)
        assert (made["status"], made["generatedAnswer"]) == ("failure", "")
        assert made["errorMessage"].startswith("model: ")
        params["model"] = script({"text": ""}, {"text": "At last."}, name="again.jsonl")
        made = await server.client.request("daiku/generate", params)
        assert (made["status"], made["generatedAnswer"]) == ("success", "At last.")


@pytest.mark.parametrize(
    "query", ["\x00", "a\x00b\x1b[2J", "\ud800x", "{query} {context} {{", "語" * 350_000, "\u202e\u200b"]
)
async def test_any_query_is_asked_as_it_is(workspace: Path, script: Script, query: str) -> None:
    """R3.36, R3.38, C3.3: over the wire, through the journal, to the model."""
    async with connected(workspace) as server:
        params = {"query": query, "dataset": "default", "model": script({"text": "ok"})}
        made = await server.client.request("daiku/generate", params | {"partialResultToken": "t"})
        assert (made["status"], made["errorMessage"]) == ("success", None)
        known = query.replace("\ud800", "\ufffd")
        assert made["query"] == known
        assert f"## タスク\n{known}\n" in server.client.chunks("t")[0]["data"]["told"]
