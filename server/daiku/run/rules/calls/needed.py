"""Deferred tools that a request needs, described in a few lines next to the request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.domain.runs import Mode
from daiku.domain.tools import ToolSpec
from daiku.domain.work.plans import Plan
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.patterns import lazy

MOST = 10
"""Tools described at once, at most."""
SHORT = 200
"""Characters of a description that is included completely."""

_TOOLS_BY_PATTERN: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (lazy(words, re.IGNORECASE), tools)
    for words, tools in (
        (r"\bplan(s|ning)?\b|計画|プランを", ("plan/propose",)),
        (
            r"\bcommit(s|ted|ting)?\b|\bgit\b|\bstaged?\b|コミット|ギット",
            ("git/status", "git/diff", "git/log", "git/commit"),
        ),
        (r"\bdiff(s|erences?)?\b|what (has )?changed|差分|変更点", ("git/status", "git/diff")),
        (r"\b(history|blame)\b|履歴", ("git/log",)),
        (
            r"in parallel|side by side|\b(sub-?)?agents?\b|\bdelegate|hand (it |this |them )?over|並行|並列|エージェント|手分け|任せ",
            ("agent/parallel", "agent/handoff"),
        ),
        (
            r"https?://|\bresearch\b|\b(the|on|inter)[ -]?(web|net)\b|\bonline\b|\bweb ?(site|page|search)|ウェブ|インターネット|ネットで|ネット検索|リサーチ",
            ("web/search", "web/fetch", "web/research"),
        ),
        (r"\b(rename|move)\b|リネーム|移動|名前を変", ("files/move",)),
        (r"\b(delete|remove)\b.{0,40}\bfiles?\b|ファイル.{0,20}(削除|消)", ("files/delete",)),
        (
            r"\b(defined?|definitions?|references?|callers?|usages?)\b|定義|参照|呼び出し元",
            ("editor/definition", "editor/references", "search/symbols"),
        ),
        (r"\b(diagnostics?|warnings?)\b|診断|警告", ("editor/diagnostics",)),
        (
            r"\b(remember(s|ed)?|forget|forgot(ten)?|keep in mind)\b|覚え|記憶|忘れ",
            ("memory/remember", "memory/search", "memory/forget"),
        ),
        (r"\bplaybook\b|\b(lessons?|conventions?|pitfalls?)\b|プレイブック|教訓|規約", ("playbook/search",)),
    )
)


def needed_tools(
    request: str,
    mode: Mode,
    deferred: Sequence[ToolSpec],
    plans: Sequence[Plan] = (),
    *,
    by_find: bool = True,
) -> str:
    """Describe the `deferred` tools that `request` needs in this mode and with these plans, one line each.

    `by_find=False`: the model calls them by name, without tools/call.
    """
    if not deferred:
        return ""
    names = dict.fromkeys((*_names_by_state(mode, plans), *_names_by_words(request)))
    if not names:
        return ""
    specs = {spec.name: spec for spec in deferred}
    needed = [specs[name] for name in names if name in specs][:MOST]
    if not needed:
        return ""
    from daiku.run.rules.calls.findtools import HOW  # when used
    from daiku.run.rules.calls.jsonargs import usage_of  # when used

    instruction = HOW if by_find else "Call them by these names."
    lines = (f"- {wire_name(s.name)} {usage_of(s.parameters)}: {_shorten(s.description)}" for s in needed)
    return "\n".join((f"Further tools that may serve this request. {instruction}", *lines))


def _names_by_state(mode: Mode, plans: Sequence[Plan]) -> tuple[str, ...]:
    statuses = {plan.status for plan in plans}
    names: tuple[str, ...] = ("plan/propose",) if mode == "plan" else ()
    if "draft" in statuses:
        names += ("plan/approve", "plan/get")
    if mode == "act" and statuses & {"approved", "in_progress", "failed"}:
        names += ("plan/update_step", "task/generate_list", "task_loop/run", "plan/get")
    return names


def _names_by_words(request: str) -> tuple[str, ...]:
    return tuple(tool for words, tools in _TOOLS_BY_PATTERN if words.search(request) for tool in tools)


def _shorten(description: str) -> str:
    """Return a short description unchanged, else its first sentence."""
    description_line = " ".join(description.split())
    return (
        description_line
        if len(description_line) <= SHORT
        else description_line.partition(". ")[0].removesuffix(".") + "."
    )
