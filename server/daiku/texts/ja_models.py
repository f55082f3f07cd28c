"""Japanese for what goes wrong with replies, the editor's models and commit messages."""

from __future__ import annotations

# fmt: off
MODELS: tuple[tuple[str, str], ...] = (
    ("This call was not run: the reply before was asked to be the last one, in words.", "この呼び出しは実行されませんでした。一つ前の返答は、言葉による最後の返答のはずでした。"),
    ("the arguments are no JSON object", "引数が JSON オブジェクトではありません"),
    ("the plan lacks {name}", "計画に {name} がありません"),
    ('"Your Reply to the Human Prompter" must not begin with "As an AI"', '"Your Reply to the Human Prompter" は "As an AI" で始められません'),
    ("The editor answered for its model in a wrong form.", "エディターのモデルの返答の形式が正しくありません。"),
    ("The editor's model failed.", "エディターのモデルでエラーが起きました。"),
    ("The model gave no commit message.", "モデルからコミットメッセージが返りませんでした。"),
    ("Nothing has changed: there is nothing to write a message for.", "変更がないため、書くメッセージがありません。"),
    ("Change or stage something first.", "先に何かを変更するか、ステージしてください。"),
)
