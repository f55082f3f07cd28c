"""What is said of tasks and of work side by side, in Japanese."""

from __future__ import annotations

TASKS: tuple[tuple[str, str], ...] = (
    ("task {number}: {why}", "タスク {number}: {why}"),
    ("Tasks are carried out in act mode only.", "タスクを実行できるのは act モードだけです。"),
    ("Step “{name}” is completed; reopen it if it must be done again.",
     "ステップ「{name}」は完了しています。やり直すには、再び開いてください。"),
    ("Step “{name}” has to wait for: {names}.", "ステップ「{name}」は次のステップの完了待ちです: {names}"),
    ("Step “{name}” has no tasks yet: task/generate_list makes them.",
     "ステップ「{name}」にはまだタスクがありません。task/generate_list が作成します。"),
    ("The tasks cannot be run: {why}.", "タスクを実行できません（{why}）。"),
    ("One after the other, not side by side: {why}.", "並行ではなく、順番に実行します（{why}）。"),
    ("A piece of work is done again on top of the others: {why}.",
     "作業の一部を、他の変更の上でやり直します（{why}）。"),
    ("its copy of the project was lost in a restart", "再起動でプロジェクトの複製が失われました"),
    ("its copy of the project could not be used ({detail})", "プロジェクトの複製を使えませんでした（{detail}）"),
    ("it ended {status} in its copy of the project", "プロジェクトの複製での作業が {status} で終わりました"),
    ("files that are no text were changed ({names})", "テキストでないファイルが変更されました（{names}）"),
    ("its changes do not fit what the others changed", "他の変更と衝突しています"),
    ("approvals are {mode}; with edits granted it could be at once",
     "承認が {mode} です。編集が許可されていれば同時に実行できます"),
    ("no copy of the project could be made ({detail})", "プロジェクトの複製を作れませんでした（{detail}）"),
    ("the workspace has more than one folder", "ワークスペースに複数のフォルダーがあります"),
    ("no folder is open", "フォルダーが開かれていません"),
    ("the folder is no git repository that can be used", "フォルダーが、使える Git リポジトリではありません"),
    ("the repository has no commit yet", "リポジトリにまだコミットがありません"),
    ("the repository has submodules", "リポジトリにサブモジュールがあります"),
    ("there are changes that are not committed ({name} and {count} more)",
     "コミットされていない変更があります（{name} ほか {count} 件）"),
    ("there are changes that are not committed ({name})", "コミットされていない変更があります（{name}）"),
)  # fmt: skip
