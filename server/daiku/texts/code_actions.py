"""Titles of code actions and what the commands behind them ask for, in English and Japanese."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionTexts:
    """`fix_one` and `fix_all` are filled in; the second half is what a person sees themselves ask."""

    fix_one: str
    fix_all: str
    explain_title: str
    review_title: str
    tests_title: str
    document_title: str
    refactor_title: str
    translate_title: str

    explain: str
    fix: str
    fix_terminal: str
    tests: str
    document: str
    review: str
    refactor: str
    translate: str
    commit: str


EN = ActionTexts(
    fix_one="Fix with Daiku: {}",
    fix_all="Fix all {} problems here with Daiku",
    explain_title="Explain with Daiku",
    review_title="Review this file with Daiku",
    tests_title="Write tests with Daiku",
    document_title="Document with Daiku",
    refactor_title="Refactor with Daiku…",
    translate_title="Translate comments with Daiku",
    explain="Explain this code: what it does, how, and what to watch out for.",
    fix="Find what is wrong here, fix it, and check that it works.",
    fix_terminal="The last command in the terminal failed. Find out why, fix it, and check that it works.",
    tests="Write tests for this code in the way of this project, and run them.",
    document="Write the documentation that this code lacks; change nothing else.",
    review="Review this code, or the uncommitted changes where no code is given:"
    " correctness first, with file, line and severity. Change nothing.",
    refactor="Refactor this code: make it simpler and clearer without changing what it does.",
    translate="Translate the comments of this code into English; change nothing else.",
    commit="Write the commit message for these changes.",
)
JA = ActionTexts(
    fix_one="Daiku で修正: {}",
    fix_all="ここの {} 件の問題をすべて Daiku で修正",
    explain_title="Daiku で説明",
    review_title="このファイルを Daiku でレビュー",
    tests_title="Daiku でテストを作成",
    document_title="Daiku でドキュメントを作成",
    refactor_title="Daiku でリファクタリング…",
    translate_title="コメントを Daiku で翻訳",
    explain="このコードが何をどのように行うか、注意点も含めて説明してください。",
    fix="ここの問題を見つけて修正し、正しく動くことを確認してください。",
    fix_terminal="ターミナルの最後のコマンドが失敗しました。原因を調べて修正し、正しく動くことを確認してください。",
    tests="このプロジェクトの流儀に沿ってこのコードのテストを書き、実行してください。",
    document="このコードに足りないドキュメントを書いてください。ほかは変更しないでください。",
    review="このコード (指定がなければ未コミットの変更) をレビューしてください。正しさを最優先に、"
    "ファイル、行、重大度を示してください。変更はしないでください。",
    refactor="動作を変えずに、このコードをより簡潔でわかりやすくリファクタリングしてください。",
    translate="このコードのコメントを日本語に翻訳してください。ほかは変更しないでください。",
    commit="この変更のコミットメッセージを書いてください。",
)


def action_texts(locale: str) -> ActionTexts:
    """The texts for a locale such as `ja`, `ja-JP`, `en-US`."""
    return JA if locale.lower().replace("_", "-").split("-")[0] == "ja" else EN
