"""`daiku run`: what it prints where, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import Failure

Script = Callable[..., str]
Daiku = Callable[..., Any]
LOOK = {"text": "Looking.", "calls": [{"tool": "shell/run", "args": {"command": "echo from-the-shell"}}]}
DONE = {"text": "All **done**."}


def test_the_answer_goes_to_a_pipe_and_the_progress_to_stderr(script: Script, daiku: Daiku) -> None:
    done = daiku("run", "--model", script(LOOK, DONE), "--approve", "all", "look", "around")
    assert done.code == 0
    assert done.out == "All **done**.\n"
    assert "● Run echo from-the-shell" in done.err
    assert "│ from-the-shell" in done.err
    assert "done" not in done.err  # both streams often go to one log
    assert "\x1b" not in done.err


def test_json_is_one_chunk_per_line_and_nothing_else(script: Script, daiku: Daiku) -> None:
    done = daiku("run", "--model", script(LOOK, DONE), "--approve", "all", "--json", "look")
    chunks = done.chunks()
    assert [c["seq"] for c in chunks] == list(range(1, len(chunks) + 1))
    assert (chunks[0]["type"], chunks[-1]["type"]) == ("run_started", "run_finished")
    assert chunks[0]["data"]["prompt"] == "look"
    assert {"delta", "message", "tool_call", "tool_output", "tool_response", "usage"} <= {
        c["type"] for c in chunks
    }
    assert (done.code, done.err) == (0, "")


def test_what_needs_approval_and_gets_none_ends_with_4(script: Script, daiku: Daiku, workspace: Path) -> None:
    change = {"text": "Now.", "calls": [{"tool": "shell/run", "args": {"command": "touch made"}}]}
    done = daiku("run", "--model", script(change, DONE), "--json", "look")
    assert done.code == 4
    assert len(done.err.splitlines()) == 1
    assert "--approve" in done.err
    response = next(c for c in done.chunks() if c["type"] == "tool_response")
    assert response["data"]["ok"] is False
    assert not (workspace / "made").exists()


@pytest.mark.parametrize("approve", ["edits", "all"])
def test_piped_text_approves_nothing_whatever_was_granted(
    script: Script, daiku: Daiku, workspace: Path, approve: str
) -> None:
    calls = [
        {"tool": "files/write", "args": {"path": "AGENTS.md", "content": "Obey."}},
        {"tool": "user/ask", "args": {"question": "Which?"}},
        {"tool": "shell/run", "args": {"command": "touch made", "sandbox": False}},
    ]
    done = daiku(
        "run", "--model", script({"calls": calls}, DONE), "--approve", approve, "go", stdin=b"y" * 99
    )
    assert done.code == 4
    assert [p.name for p in workspace.iterdir()] == ["play.jsonl"]
    assert "Run Daiku in a terminal" in done.err
    assert "--approve edits" not in done.err


PROTECTED = {"tool": "files/write", "args": {"path": ".vscode/tasks.json", "content": "{}"}}
EDIT = {"tool": "files/write", "args": {"path": "a.py", "content": "a = 1\n"}}
COMMAND = {"tool": "shell/run", "args": {"command": "touch made"}}


@pytest.mark.parametrize(
    ("approve", "calls", "levels"),
    [
        ("none", [EDIT], ["edits", "sandbox", "all"]),
        ("none", [COMMAND], ["sandbox", "all"]),
        ("none", [EDIT, COMMAND], ["sandbox", "all"]),
        ("none", [PROTECTED], []),
        ("none", [EDIT, PROTECTED], []),
        ("edits", [PROTECTED], []),
        ("edits", [COMMAND], ["sandbox", "all"]),
        ("sandbox", [PROTECTED], []),
        ("all", [PROTECTED], []),
    ],
)
def test_only_a_level_that_covers_every_refused_call_is_advised(
    script: Script, daiku: Daiku, approve: str, calls: list[Any], levels: list[str]
) -> None:
    """A23.1"""
    done = daiku("run", "--model", script({"calls": calls}, DONE), "--approve", approve, "go")
    assert done.code == 4
    assert "Run Daiku in a terminal" in done.err
    assert [level for level in ("edits", "sandbox", "all") if f"--approve {level}" in done.err] == levels


@pytest.mark.parametrize("approve", ["all", "none"])
def test_a_log_that_says_that_nobody_was_there_does_not_end_with_4(
    script: Script, daiku: Daiku, workspace: Path, approve: str
) -> None:
    log = "Nobody is there to approve this.\nnobody is there\nunattended: approval is required\n"
    (workspace / "old.log").write_text(log)
    failing = {"text": json.dumps({"commands": ["cat old.log", "cat old.log; ls gone"]})}
    done = daiku("exec", "--model", script(*[failing] * 4), "--approve", approve, "--json", "check it")
    responses = [c["data"] for c in done.chunks() if c["type"] == "tool_response"]
    assert log.rstrip() in responses[-1]["result"]
    assert responses[-1]["outcome"] == "failed"
    assert done.code == 1


def test_a_limit_ends_with_3(script: Script, daiku: Daiku) -> None:
    done = daiku(
        "run", "--model", script(LOOK, DONE), "--approve", "all", "--max-rounds", "1", "--json", "look"
    )
    assert (done.code, len(done.err.splitlines())) == (3, 1)
    assert done.chunks()[-1]["data"]["status"] == "limit"


def test_each_resume_of_a_run_at_its_limit_goes_on_from_the_last_one(script: Script, daiku: Daiku) -> None:
    """A23.1"""
    model = script(LOOK, LOOK, DONE, {"text": "Not asked for."})
    options = ("--model", model, "--approve", "all", "--max-rounds", "1", "--json")
    run = daiku("run", *options, "look").chunks()[0]["run"]
    ends = [daiku("resume", run, *options) for _ in range(3)]
    assert [end.code for end in ends] == [3, 0, 0]
    assert [end.chunks()[-1]["data"]["text"] for end in ends] == ["Looking.", DONE["text"], DONE["text"]]
    other = daiku("run", *options, "--continue", "another").chunks()[0]["run"]
    assert daiku("resume", run, *options).chunks()[-1]["run"] != other


def test_a_run_that_was_answered_repeats_its_own_end(script: Script, daiku: Daiku) -> None:
    """A23.1"""
    options = ("--model", script(DONE, {"text": "Another."}), "--json")
    run = daiku("run", *options, "look").chunks()[0]["run"]
    assert daiku("run", *options, "--continue", "look").chunks()[-1]["data"]["text"] == "Another."
    assert daiku("resume", run, *options).chunks()[-1]["data"]["text"] == DONE["text"]


def test_a_refusal_is_not_cut_without_a_terminal(
    script: Script, daiku: Daiku, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.1"""
    model = script({"calls": [PROTECTED]}, DONE)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (
        "approval is required, but nobody is available to give it" in daiku("run", "--model", model, "go").err
    )
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, daiku("run", "--model", model, "go").err.splitlines()[:3])) <= 80


def test_a_failing_model_ends_with_1_and_one_line(script: Script, daiku: Daiku) -> None:
    model = script({"error": {"kind": "auth", "message": "The key is wrong."}})
    done = daiku("run", "--model", model, "--json", "look")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "The key is wrong." in done.err


def test_the_prompt_may_come_from_stdin(script: Script, daiku: Daiku) -> None:
    done = daiku("run", "--model", script(DONE), "--json", "-", stdin="\ufeffこんにちは\n".encode())
    assert done.code == 0
    assert done.chunks()[0]["data"]["prompt"] == "こんにちは\n"


def test_a_conversation_goes_on(script: Script, daiku: Daiku) -> None:
    model = script(DONE, {"text": "Again."})
    first = daiku("run", "--model", model, "--json", "one").chunks()
    second = daiku("run", "--model", model, "--continue", "--json", "two").chunks()
    third = daiku("run", "--model", model, "--session", first[0]["session"], "--json", "three").chunks()
    assert first[0]["session"] == second[0]["session"] == third[0]["session"]
    assert first[-1]["seq"] < second[0]["seq"]


def test_a_finished_run_repeats_its_result(script: Script, daiku: Daiku) -> None:
    run = daiku("run", "--model", script(DONE), "--json", "one").chunks()[0]["run"]
    again = daiku("resume", run)
    assert (again.code, again.out) == (0, "All **done**.\n")
    session = daiku("sessions", "list").out.split()[0]
    of_session = daiku("resume", session)
    assert (of_session.code, of_session.out) == (again.code, again.out)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["run"], 2, "Missing argument"),
        (["run", "  "], 2, "The prompt is empty"),
        (["run", "-"], 2, "The prompt is empty"),
        (["run", "hi", "-C", "nowhere"], 2, "There is no folder nowhere"),
        (["run", "hi", "-C", "file"], 2, "There is no folder file"),
        (["run", "hi", "--mode", "fly"], 2, "'fly' is not one of"),
        (["run", "hi", "--approve", "ask"], 2, "--approve ask needs a terminal"),
        (["run", "hi", "--max-cost", "-1"], 2, "--max-cost"),
        (["run", "hi", "--max-tokens", "many"], 2, "--max-tokens"),
        (["run", "hi", "--modle", "x"], 2, "--modle"),
        (["run", "hi", "--model", "nobody/x"], 2, "nobody"),
        (["run", "hi", "--model", "scripted/missing.jsonl", "--json"], 2, "missing.jsonl"),
        (["run", "hi", "--session", "ses_x", "--continue"], 2, "exclude each other"),
        (["run", "hi", "--session", "ses_x"], 2, "ses_x"),
        (["run", "hi", "--continue"], 2, "no earlier conversation"),
        (["run", "hi"], 1, "No model is available"),
        (["resume", "run_x"], 2, "run_x"),
        (["trace", "ses_x"], 2, "ses_x"),
        (["sessions", "show", "ses_x"], 2, "ses_x"),
        (["sessions", "replay", "ses_x"], 2, "ses_x"),
        (["sessions", "delete", "ses_x"], 2, "ses_x"),
        (["sessions", "export", "ses_x", "--format", "pdf"], 2, "'pdf' is not one of"),
        (["sessions", "shwo", "ses_x"], 2, "shwo"),
        (["chat", "--approve", "ask"], 2, "--approve ask needs a terminal"),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
        (["--frobnicate"], 2, "--frobnicate"),
        (["config", "trust", "nowhere"], 2, "There is no folder nowhere"),
    ],
)
def test_every_mistake_is_one_line_and_the_right_code(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(workspace)
    (workspace / "file").touch()
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1")
    done = daiku(*args)
    assert (done.code, "" if "--json" in args else done.out) == (code, "")
    assert len(done.err.splitlines()) == 1, done.err
    assert said in done.err


@pytest.mark.parametrize("stdin", [b"\xff\xfe broken", "日本".encode("shift_jis")])
def test_stdin_that_is_no_utf8_is_refused(script: Script, daiku: Daiku, stdin: bytes) -> None:
    done = daiku("run", "--model", script(DONE), "-", stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert "not UTF-8" in done.err


def test_a_wrong_setting_is_one_line_with_its_file(script: Script, daiku: Daiku, workspace: Path) -> None:
    model = script(DONE)
    (workspace / ".daiku").mkdir()
    (workspace / ".daiku" / "config.toml").write_text("[limits]\nmax_rouns = 3\n")
    done = daiku("run", "--model", model, "hi")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "limits.max_rouns is not a setting (did you mean limits.max_rounds?)" in done.err


def test_control_characters_of_a_model_never_reach_the_terminal(script: Script, daiku: Daiku) -> None:
    evil = "\x1b]0;owned\x07 and \u202egnp.exe"
    model = script(
        {"text": evil, "calls": [{"tool": "shell/run", "args": {"command": f"echo '{evil}'"}}]},
        {"text": evil},
    )
    done = daiku("run", "--model", model, "--approve", "all", "hi")
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err
    assert "\\x1b]0;owned" in done.err


def test_hidden_characters_are_escapes_in_json_chunks(script: Script, daiku: Daiku) -> None:
    """A23.8: the value of a chunk stays as it is."""
    evil = "a\u202eb\u200bc\U000e0041d\x9be"
    model = script({"text": evil})
    done = daiku("run", "--model", model, "--json", "hi")
    assert not set(evil) & set(done.out) - set("abcde")
    assert any(json.loads(line)["data"].get("text") == evil for line in done.out.splitlines())


def test_japanese_is_spoken_to_who_reads_it(
    daiku: Daiku, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "フォルダー nowhere がありません" in daiku("run", "hi", "-C", "nowhere").err


def test_the_core_speaks_japanese_to_who_reads_it(
    script: Script, daiku: Daiku, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LC_ALL")
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    model = script(LOOK)
    done = daiku("run", "--model", model, "--approve", "all", "--json", "hi")
    failed = [c["data"] for c in done.chunks() if c["type"] == "error"]
    failure = Failure.model_validate(failed[0])  # for a program: English, and what it is made from
    assert failure.message == "The script play.jsonl has no replies left (it has 1)."
    assert failure.in_language("ja").message == "台本 play.jsonl にはもう返答がありません（全 1 件）。"
    told = daiku("run", "--model", model, "--approve", "all", "hi").err
    assert "新しいセッションで再生し直すか、実際のモデルを選んでください。" in told
    assert "セッション" in daiku("sessions", "show", "sess_none").err
    assert "サンドボックス: " in daiku("doctor").out


def test_that_nobody_is_there_is_said_in_japanese_where_it_is_shown_and_kept(
    script: Script, daiku: Daiku, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    calls = [
        {"tool": "files/write", "args": {"path": "b.txt", "content": "x"}},
        {"tool": "user/ask", "args": {"question": "どれ？"}},
    ]
    done = daiku("run", "--model", script({"calls": calls}, DONE), "hi")
    assert "承認する人がいません。" in done.err
    exported = daiku("sessions", "export", daiku("sessions", "list").out.split()[0]).out
    assert "承認する人がいません。" in exported
    assert "答える人がいません。" in exported


def test_limits_of_the_command_line_win(
    script: Script, daiku: Daiku, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIKU_LIMITS__MAX_ROUNDS", "9")
    chunks = daiku("run", "--model", script(DONE), "--max-rounds", "7", "--json", "hi").chunks()
    assert chunks[0]["data"]["limits"]["maxRounds"] == 7


def test_the_mode_is_said_at_the_start(script: Script, daiku: Daiku) -> None:
    chunks = daiku(
        "run", "--model", script(LOOK, DONE), "--mode", "plan", "--approve", "all", "--json", "hi"
    ).chunks()
    assert chunks[0]["data"]["mode"] == "plan"
    assert json.dumps(chunks).count("from-the-shell\\n") == 0


def test_research_asks_the_researcher_alone(script: Script, daiku: Daiku) -> None:
    form = {"text": '{"queries": [], "ask_user": "Which database?"}'}
    done = daiku("research", "--model", script(form), "--approve", "none", "what", "is", "new?")
    assert (done.code, done.out) == (0, "Which database?\n")
    chunks = daiku("research", "--model", script(form), "--approve", "none", "--json", "what?").chunks()
    assert {c["agent"] for c in chunks} == {"researcher"}


@pytest.mark.parametrize(
    "last", [{"text": '{"action": "stop", "reason": "All fine, tests pass."}'}, {"text": "Fine."}]
)
def test_exec_ends_by_exit_codes_and_by_no_word(script: Script, daiku: Daiku, last: dict[str, Any]) -> None:
    native = {"calls": [{"tool": "shell/run", "args": {"command": "false"}}]}
    listed = {"text": '{"commands": ["sh check.sh"]}'}
    for first in (native, listed):
        done = daiku("exec", "--model", script(first, last, last, last), "--approve", "all", "check it")
        assert done.code == 1
    well = {"text": '{"commands": ["true"]}'}
    assert daiku("exec", "--model", script(well), "--approve", "all", "check it").code == 0
