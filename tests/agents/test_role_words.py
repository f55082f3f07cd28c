"""What a role says of its own is in the person's language; what the model said is left alone; thoughts are no forms."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from daiku.app import build
from daiku.domain.chunks import Chunk
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.agents.acting import act, app_with, said
from tests.runs.playing import Watch

JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
BLOCK = "File: `a.py`:\n```py\nx = 1\n```"


async def spoken_in_japanese(folder: Path, agent: str, *lines: dict[str, Any]) -> tuple[str, list[str], str]:
    """What a Japanese person is told by a run: how it ended, its messages, what was streamed."""
    (folder / "project").mkdir()
    script = folder / "script.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in lines))
    config = Config.model_validate(
        {
            "llm": {"model": f"scripted/{script}"},
            "sandbox": {"mode": "off"},
            "research": {"engine": "searxng", "base_url": "http://127.0.0.1:9"},
        }
    )
    workspace = DiskWorkspace((folder / "project",))
    app = build(config, workspace=workspace, home=folder / "home", locale="ja")
    watch = Watch()

    def shown(chunk: Chunk) -> None:
        watch(chunk.in_language("ja"))

    result = await app.runs.run(RunRequest("やって", agent=agent, approvals="all"), shown)
    await app.aclose()
    streamed = "".join(json.loads(c.data)["text"] for c in watch.chunks if c.type == "delta")
    return result.in_language("ja").text, said(watch), streamed


@pytest.mark.parametrize(
    ("agent", "lines", "last"),
    [
        ("coder", [{"text": BLOCK}], "変更しました。"),
        ("coder", [{"text": "思いません。"}] * 2, "思いません。"),
        ("runner", [{"text": '{"commands": []}'}], "実行するものはありません。"),
        ("runner", [{"text": '{"commands": ["true"]}'}], "- `true`: 終了コード 0"),
        (
            "runner",
            [{"text": '{"commands": ["cat x"]}'}, {"text": '{"action": "stop"}'}],
            "ここでは直せません。",
        ),
        ("researcher", [{"text": '{"queries": [], "ask_user": ""}'}], "調べる必要のあることはありません。"),
    ],
)
async def test_the_last_words_are_in_the_persons_language(
    tmp_path: Path, agent: str, lines: list[dict[str, Any]], last: str
) -> None:
    text, messages, streamed = await spoken_in_japanese(tmp_path, agent, *lines)
    assert (text, messages[-1]) == (last, last)
    for english in ("The changes", "Nothing", "exit code", "mended"):
        assert english not in streamed


async def test_notes_of_what_was_odd_are_in_the_persons_language(tmp_path: Path) -> None:
    twice = f"The changes are made.\n\n{BLOCK}\n{BLOCK}"
    _, messages, _ = await spoken_in_japanese(tmp_path, "coder", {"text": twice})
    assert messages[0].startswith("The changes are made.\n"), "a model's own words are left alone"
    assert messages[0].endswith("注: a.py: 二度書かれているので、最後のものを使います")


async def test_a_run_that_gives_up_says_so_in_the_persons_language(tmp_path: Path) -> None:
    wrong = [{"text": '{"commands": ["cat a", "never"]}'}]
    wrong += [{"text": json.dumps({"action": "command", "command": f"cat {n}"})} for n in "bc"]
    text, messages, _ = await spoken_in_japanese(tmp_path, "runner", *wrong)
    assert text == messages[-1]
    assert text.startswith("`cat c` は 2 回修復しても失敗します。\n\n- `cat a`: 終了コード 1\n")
    assert "未実行: `never`" in text


async def test_what_was_not_found_on_the_web_is_told_in_the_persons_language(tmp_path: Path) -> None:
    text, _, _ = await spoken_in_japanese(
        tmp_path, "researcher", {"text": '{"queries": ["nothing found"], "ask_user": ""}'}
    )
    assert "**nothing found**" in text
    assert "- 見つかりませんでした" in text
    assert all(JAPANESE.search(line) for line in text.split("\n") if line and not line.startswith("**"))


# -- thoughts ------------------------------------------------------------------------------

PLAN = """Project Name: p
Your Reply to the Human Prompter: Sure.
Current Focus: f
Plan:
- [ ] Step 1: right
Summary: s"""
THOUGHTS = {
    "planner": ("Plan:\n- [ ] Step 1: wrong", PLAN),
    "researcher": ('Maybe {"queries": ["wrong"], "ask_user": ""}?', '{"queries": [], "ask_user": "right"}'),
    "coder": ("File: `wrong.py`:\n```py\nx = 1\n```", "File: `right.py`:\n```py\nx = 1\n```"),
    "runner": ('Maybe {"commands": ["touch wrong.py"]}?', '{"commands": ["touch right.py"]}'),
}


@pytest.mark.parametrize(
    "marks", ["<think>{}</think>\n", "<thinking>\n{}\n</thinking>\n\n", "[THINK]{}[/THINK]\n"]
)
@pytest.mark.parametrize("agent", THOUGHTS)
async def test_what_a_model_only_thinks_is_no_form(tmp_path: Path, agent: str, marks: str) -> None:
    thought, answer = THOUGHTS[agent]
    app = app_with(tmp_path, {"text": marks.format(thought) + answer})
    result, state, _ = await act(app, agent)
    assert result.status == "completed"
    done = json.dumps(
        [
            [p.name for p in (tmp_path / "project").iterdir()],
            [step.name for plan in state.plans.all for step in plan.steps],
            list(state.research.queries),
            state.research.ask_user,
        ]
    )
    assert "right" in done
    assert "wrong" not in done
