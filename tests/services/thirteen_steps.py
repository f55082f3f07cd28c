"""Who plays the model in seed 4's example: thirteen steps in Japanese, in native calls or in action lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.services.models import Said

Json = dict[str, Any]
GOAL = "ゲームを実装する"
PACKAGE = '{"name": "game", "version": "1.0.0"}\n'
PAGE = "<!doctype html>\n<title>ゲーム</title>\n"
INSTALL = "mkdir -p node_modules/engine && cp package.json node_modules/engine/package.json"
CHECK = "python3 -m json.tool package.json"
TASKS: list[Json] = [
    {"operation": "file_ops.write", "args": {"path": "package.json", "content": PACKAGE}},
    {"operation": "file_ops.write_file", "args": {"path": "index.html", "content": PAGE}},
    {"operation": "shell/run", "args": {"command": INSTALL}, "reasoning": "依存関係"},
]
PLAN = f"""Project Name: ゲーム実装

Your Reply to the Human Prompter: 三つのステップで作ります。

Current Focus: ブラウザゲーム

Plan:
- [ ] Step 1: 環境構築
  Check: `{CHECK}`
- [ ] Step 2: コア実装
- [ ] Step 3: テスト

Summary: ブラウザで遊べる小さなゲーム。
"""
PROPOSAL = "ゲーム実装の計画を提案します。1. 環境構築 2. コア実装 3. テスト。この計画で進めますか?"
YES = "はい、お願いします"
REPORT = {
    "status": "completed",
    "succeeded": 3,
    "failed": 0,
    "summary": "package.jsonを作成し、依存関係をインストールしました。",
    "cause": "",
    "next_action": "ステップ2に進む。",
}
DONE = (
    "ステップ1『環境構築』が完了しました。package.jsonを作成し、依存関係をインストールしました。"
    "次にステップ2『コア実装』に進みますか?"
)


def native(*calls: tuple[str, Json]) -> Said:
    return Said(calls=[(re.sub(r"[./]", "__", name), args) for name, args in calls])


def action_list(*calls: tuple[str, Json]) -> Said:
    actions = [{"operation": name, "args": args} for name, args in calls]
    return Said([json.dumps({"comment": "", "actions": actions}, ensure_ascii=False)])


Form = Callable[..., Said]


def words(text: str, form: Form) -> Said:
    """An answer: as it is, or as the empty action list that only answers (C4.10)."""
    if form is native:
        return Said([text])
    return Said([json.dumps({"comment": text, "actions": []}, ensure_ascii=False)])


def model(form: Form) -> Callable[[list[Json]], Said]:
    """Who plays the model: it tells from the system prompt which role it is asked in."""

    def answer(messages: list[Json]) -> Said:
        system = str(messages[0]["content"])
        if "now you plan" in system:
            told = sum(m["role"] == "assistant" for m in messages)
            return Said([PLAN]) if not told else words("三つのステップの計画です。", form)
        if "break one step" in system:
            return Said([json.dumps({"tasks": TASKS}, ensure_ascii=False)])
        if "report on tasks" in system:
            return Said([json.dumps(REPORT, ensure_ascii=False)])
        turn = sum(m["role"] == "assistant" for m in messages)
        return [
            form(("plan_tool.propose", {"goal": GOAL})),
            words(PROPOSAL, form),
            form(("task_tool.generate_list", {"step_id": "step_001"})),
            form(("task_loop.run", {"task_list": TASKS})),
            words(DONE, form),
        ][turn]

    return answer
