"""Which of the tools that are not sent a request needs, told in a few lines beside the request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.domain.runs import Mode
from daiku.domain.tools import ToolSpec
from daiku.domain.work.plans import Plan
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.patterns import lazy

MOST = 10
"""Tools that are told of at once; the rest is found."""
SHORT = 200
"""Characters of a description that is told whole."""

_BY_WORDS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
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
    """Describe the `deferred` tools that `request` needs in this mode and with these plans, a line each.
    `by_find` False: the model calls them by name, not by tools/call."""
    if not deferred:
        return ""
    names = dict.fromkeys((*_by_state(mode, plans), *_by_words(request)))
    if not names:
        return ""
    specs = {spec.name: spec for spec in deferred}
    wanted = [specs[name] for name in names if name in specs][:MOST]
    if not wanted:
        return ""
    from daiku.run.rules.calls.findtools import HOW  # when used
    from daiku.run.rules.calls.jsonargs import usage_of  # when used

    how = HOW if by_find else "Call them by these names."
    lines = (f"- {wire_name(s.name)} {usage_of(s.parameters)}: {_in_short(s.description)}" for s in wanted)
    return "\n".join((f"Further tools that may serve this request. {how}", *lines))


def _by_state(mode: Mode, plans: Sequence[Plan]) -> tuple[str, ...]:
    statuses = {plan.status for plan in plans}
    found: tuple[str, ...] = ("plan/propose",) if mode == "plan" else ()
    if "draft" in statuses:
        found += ("plan/approve", "plan/get")
    if mode == "act" and statuses & {"approved", "in_progress", "failed"}:
        found += ("plan/update_step", "task/generate_list", "task_loop/run", "plan/get")
    return found


def _by_words(request: str) -> tuple[str, ...]:
    return tuple(tool for words, tools in _BY_WORDS if words.search(request) for tool in tools)


def _in_short(description: str) -> str:
    """The description where it is short, else its first sentence."""
    whole = " ".join(description.split())
    return whole if len(whole) <= SHORT else whole.partition(". ")[0].removesuffix(".") + "."
