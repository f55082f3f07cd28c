"""Looking around: sessions, traces, models, tools, settings, the doctor."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import AgentStart, RunStarted, ToolCallEvent
from daiku.trace.journal import Journal

Script = Callable[..., str]
Daiku = Callable[..., Any]
LOOK = {"text": "Looking.", "calls": [{"tool": "shell/run", "args": {"command": "echo hello"}}]}
DONE = {"text": "Done."}


@pytest.fixture
def session(script: Script, daiku: Daiku) -> str:
    return daiku("run", "--model", script(LOOK, DONE), "--approve", "all", "--json", "say hello").chunks()[0][
        "session"
    ]


def test_help_names_every_command(daiku: Daiku) -> None:
    for args in ([], ["--help"]):
        done = daiku(*args)
        assert done.code == 0
        for name in (
            "run",
            "chat",
            "resume",
            "sessions",
            "models",
            "tools",
            "config",
            "doctor",
            "trace",
            "lsp",
        ):
            assert f"\n  {name} " in done.out
    assert "daiku, version" in daiku("--version").out


@pytest.mark.parametrize("command", ["run", "chat", "plan", "code", "exec", "resume"])
def test_everything_that_runs_has_the_same_options(daiku: Daiku, command: str) -> None:
    text = daiku(command, "--help").out
    for option in ("-C", "--model", "--mode", "--approve", "--json", "--session", "--continue", "--max-cost"):
        assert option in text


def test_a_session_is_listed_shown_and_found(daiku: Daiku, session: str) -> None:
    assert session in daiku("sessions", "list").out
    assert session in daiku("sessions", "list", "hello").out
    assert session not in daiku("sessions", "list", "no such words").out
    (entry,) = json.loads(daiku("sessions", "list", "--json").out)
    assert (entry["sessionId"], entry["title"], entry["status"]) == (session, "say hello", "completed")
    shown = daiku("sessions", "show", session).out
    assert "> say hello" in shown
    assert "● Run echo hello" in shown


def test_a_session_is_exported_in_three_forms(daiku: Daiku, session: str) -> None:
    lines = daiku("sessions", "export", session, "--format", "jsonl").out.splitlines()
    assert json.loads(lines[0])["type"] == "run_started"
    whole = json.loads(daiku("sessions", "export", session, "--format", "json").out)
    assert whole["session"]["sessionId"] == session
    assert len(whole["chunks"]) == len(lines)
    assert daiku("sessions", "export", session).out.startswith("# say hello\n")


def test_a_replay_finds_no_difference(daiku: Daiku, session: str) -> None:
    done = daiku("sessions", "replay", session)
    assert (done.code, "no difference" in done.out) == (0, True)
    found = json.loads(daiku("sessions", "replay", session, "--json").out)
    assert (found["difference"], found["runs"]) == (None, 1)


def test_a_replay_says_what_it_does_not_compare(
    daiku: Daiku, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = json.loads(daiku("sessions", "replay", session, "--json").out)["normalised"]
    assert {"told", "model", "requests"} <= {each["name"] for each in named}
    shown = daiku("sessions", "replay", session).out
    assert all(f"{each['what']} (in {each['events']} events)" in shown for each in named)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "比較しないもの:" in daiku("sessions", "replay", session).out


def test_a_deleted_session_is_gone_with_its_trace(daiku: Daiku, session: str, daiku_home: Path) -> None:
    daiku("trace", session)
    trace = daiku_home / "traces" / f"{session}.jsonl"
    assert trace.exists()
    assert daiku("sessions", "delete", session).code == 0
    assert not trace.exists()
    assert daiku("sessions", "show", session).code == 2


def test_the_trace_has_a_line_for_each_span(daiku: Daiku, session: str, daiku_home: Path) -> None:
    done = daiku("trace", session)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["event"] for line in lines] == ["agent_start", "tool_start", "tool_end", "agent_end"]
    for line in lines:
        assert set(line) == {
            "event",
            "time",
            "session",
            "agent",
            "tool",
            "tok_prompt",
            "tok_completion",
            "duration_ms",
            "result",
        }
    assert lines[1]["tool"] == "shell/run"
    assert lines[2]["result"]["output"] == "hello\n"
    assert lines[3]["tok_completion"] > 0
    file = daiku_home / "traces" / f"{session}.jsonl"
    assert file.read_text(encoding="utf-8") == done.out
    assert done.code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_trace_file_grows_with_each_run(
    daiku: Daiku, session: str, script: Script, daiku_home: Path
) -> None:
    file = daiku_home / "traces" / f"{session}.jsonl"
    assert len(file.read_text().splitlines()) == 4
    daiku("run", "--model", script(DONE), "--session", session, "again")
    grown = file.read_text(encoding="utf-8")
    assert [json.loads(line)["event"] for line in grown.splitlines()[4:]] == ["agent_start", "agent_end"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert daiku("trace", session).out == grown


def test_models_say_why_they_cannot_be_used(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1")
    out = daiku("models").out
    assert "anthropic\n  not usable:" in out
    providers = json.loads(daiku("models", "--json").out)["providers"]
    assert {p["provider"] for p in providers} >= {"anthropic", "openai", "gemini", "ollama", "scripted"}
    assert next(p for p in providers if p["provider"] == "ollama")["error"]["message"]
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    out = daiku("models").out
    assert (
        "Anthropic には API キーが必要ですが、設定されていません。環境変数 ANTHROPIC_API_KEY を設定するか"
        in out
    )
    assert "台本の再生で、モデルは答えません" in out


def test_tools_are_listed_with_what_they_touch(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    assert "shell/run" in daiku("tools").out
    tools = json.loads(daiku("tools", "--json").out)
    assert next(t for t in tools if t["name"] == "shell/run")["effect"] == "command"


def test_settings_are_shown_with_their_source_and_without_secrets(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("DAIKU_LLM__OPENAI__HEADERS", '{"X-Key": "hide-me"}')
    (workspace / ".daiku").mkdir()
    own = workspace / ".daiku" / "config.toml"
    own.write_text('[limits]\nmax_rounds = 5\n[llm.openai]\nbase_url = "http://evil"\n')
    done = daiku("config", "show")
    assert f"max_rounds = 5  # {own}" in done.out
    assert "environment OPENAI_API_KEY" in done.out
    assert "sk-very-secret" not in done.out + done.err
    assert "hide-me" not in done.out
    assert "llm.openai.base_url ignored" in done.err
    rows = json.loads(daiku("config", "show", "--json").out)
    assert rows["limits.max_tokens"] == {"value": 0, "source": "default"}


def test_a_trusted_folder_may_set_more(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    (workspace / ".daiku").mkdir()
    (workspace / ".daiku" / "config.toml").write_text('[llm.openai]\nbase_url = "http://mine"\n')
    assert daiku("config", "trust").code == 0
    assert json.loads(daiku("config", "show", "--json").out)["llm.openai.base_url"]["value"] == "http://mine"
    (workspace / "inner").mkdir()
    assert daiku("config", "untrust").code == 0
    assert json.loads(daiku("config", "show", "--json").out)["llm.openai.base_url"]["value"] == ""


def test_the_doctor_says_what_is_wrong_and_how_to_mend_it(
    daiku: Daiku, workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1")
    (daiku_home / "loose").touch(0o644)
    (daiku_home / "loose").chmod(0o644)
    done = daiku("doctor")
    assert done.code == 1
    assert "SQLite" in done.out
    assert f"chmod go= {daiku_home / 'loose'}" in done.out
    assert "ANTHROPIC_API_KEY" in done.out
    assert "Sandbox:" in done.out


def test_the_doctor_counts_a_forge_that_cannot_be_asked_as_wrong(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    without = daiku("doctor").out
    assert "✗ Work items" not in without
    monkeypatch.setenv("DAIKU_GITHUB__REPOSITORIES", '["owner/name"]')
    done = daiku("doctor")
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("✗ Work items")]
    assert "owner/name" in line
    assert "GITHUB_TOKEN" in line
    assert "Everything is in order" not in done.out
    assert done.out.count("✗") == without.count("✗") + 1


def test_the_doctor_also_examines_settings_that_are_wrong(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("DAIKU_LIMITS__MAX_ROUNDS", "lots")
    done = daiku("doctor")
    assert done.code == 1
    assert "limits.max_rounds must be a whole number, not 'lots'" in done.out


def test_the_trace_of_a_run_under_way_is_what_there_is_of_it(daiku: Daiku, daiku_home: Path) -> None:
    journal = Journal(daiku_home / "daiku.db")
    session = journal.add_session()
    call = ToolCallEvent(id="c", tool="shell/run", args={})
    journal.writer(session).write("run_1", None, "coordinator", [RunStarted(prompt="go"), AgentStart(), call])
    journal.close()
    done = daiku("trace", session)
    assert done.code == 0
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == ["agent_start", "tool_start"]


def test_the_trace_of_a_session_that_is_not_there_is_a_wrong_argument(daiku: Daiku) -> None:
    done = daiku("trace", "ses_0000000000000000")
    assert (done.code, done.out) == (2, "")
    assert "ses_0000000000000000" in done.err
    assert len(done.err.strip().splitlines()) == 1
