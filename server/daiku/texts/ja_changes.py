"""What is said of reviewing changes and bringing files back, in Japanese."""

from __future__ import annotations

CHANGES: tuple[tuple[str, str], ...] = (
    ("{what} no longer as shown: decided on already, or changed since.",
     "表示されたときの内容ではなくなっています（{what}）。すでに決定済みか、その後変更されました。"),
    ("This change is", "この変更"),
    ("{count} of these changes are", "{count} 件の変更"),
    ("What is there now:", "現在の内容:"),
    ("Hunks can be chosen only of an edit that is allowed.", "ハンクを選べるのは、許可する編集だけです。"),
    ("This can only be allowed or rejected as a whole.", "これは全体として許可または却下することしかできません。"),
    ("No hunk was chosen: reject the edit instead.", "ハンクが選ばれていません。編集を却下してください。"),
    ("There are hunks 0 to {last}.", "ハンクは 0 から {last} までです。"),
    ("{count} old checkpoints went: there is no more room for them.",
     "古いチェックポイント {count} 件を削除しました。保存できる量を超えたためです。"),
)  # fmt: skip
