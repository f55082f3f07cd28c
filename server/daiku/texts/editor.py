"""What a plain editor shows to a person, in English and Japanese."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Texts:
    """Buttons and titles; `{}` is filled in."""

    allow: str
    always: str
    reject: str
    ask: dict[str, str]
    no_answer: str
    nobody_answered: str
    working: str
    thinking: str
    cut: str


EN = Texts(
    allow="Allow",
    always="Always allow",
    reject="Reject",
    ask={
        "edit": "Daiku wants to change files.",
        "command": "Daiku wants to run a command.",
        "network": "Daiku wants to reach the network.",
        "mcp": "Daiku wants to use a tool of another server.",
        "plan": "Daiku asks whether to carry out this plan.",
    },
    no_answer="No answer",
    nobody_answered="The person gave no answer. Decide yourself and say what you assumed.",
    working="Daiku",
    thinking="Thinking",
    cut="… {} more characters",
)
JA = Texts(
    allow="許可",
    always="常に許可",
    reject="拒否",
    ask={
        "edit": "Daiku がファイルを変更しようとしています。",
        "command": "Daiku がコマンドを実行しようとしています。",
        "network": "Daiku がネットワークに接続しようとしています。",
        "mcp": "Daiku がほかのサーバーのツールを使おうとしています。",
        "plan": "この計画を実行してよいか確認してください。",
    },
    no_answer="回答しない",
    nobody_answered="The person gave no answer. Decide yourself and say what you assumed.",
    working="Daiku",
    thinking="考えています",
    cut="… 残り {} 文字",
)


def texts(locale: str) -> Texts:
    """The texts for a locale such as `ja`, `ja-JP`, `en-US`."""
    return JA if locale.lower().replace("_", "-").split("-")[0] == "ja" else EN


def shortened(text: str, limit: int, words: Texts) -> str:
    """`text`, its end cut where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[:limit] + "\n" + words.cut.format(len(text) - limit)
