"""What is said of reviewing changes and bringing files back, in Japanese."""

from __future__ import annotations

CHANGES: tuple[tuple[str, str], ...] = (
    ("Nothing of {path} is left to decide on.", "{path} に確認待ちの変更は残っていません。"),
    ("You changed these lines yourself since: they are not undone unasked.",
     "これらの行はその後ご自身で変更されています。指定なしに元へは戻しません。"),
    ("{what} no longer as shown: decided on already, or changed since.",
     "表示されたときの内容ではなくなっています（{what}）。すでに決定済みか、その後変更されました。"),
    ("This change is", "この変更"),
    ("{count} of these changes are", "{count} 件の変更"),
    ("What is there now:", "現在の内容:"),
    ("Not undone, because it ran since then:", "その後に実行されたため、元に戻せないもの:"),
    ("List the changes again.", "変更の一覧を取得し直してください。"),
    ("Nothing was done in this conversation yet.", "この会話ではまだ何も行われていません。"),
    ("Nothing was decided: the approval is still open.", "何も決定されていません。承認はまだ待っています。"),
    ("Hunks can be chosen only of an edit that is allowed.", "ハンクを選べるのは、許可する編集だけです。"),
    ("This can only be allowed or rejected as a whole.", "これは全体として許可または却下することしかできません。"),
    ("No hunk was chosen: reject the edit instead.", "ハンクが選ばれていません。編集を却下してください。"),
    ("There are hunks 0 to {last}.", "ハンクは 0 から {last} までです。"),
    ("{count} old checkpoints went: there is no more room for them.",
     "古いチェックポイント {count} 件を削除しました。保存できる量を超えたためです。"),
)  # fmt: skip
