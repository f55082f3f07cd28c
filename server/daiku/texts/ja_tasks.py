"""What is said of plans that cannot be worked, of tasks and of work side by side, in Japanese."""

from __future__ import annotations

TASKS: tuple[tuple[str, str], ...] = (
    ("The plan has no steps.", "計画にステップがありません。"),
    ("The plan has {count} open steps; at most {most} are allowed.",
     "計画に未完了のステップが {count} 個あります。最大 {most} 個までです。"),
    ("A step has no name.", "名前のないステップがあります。"),
    ("Two steps have the id {step}: {names}.", "ID {step} のステップが複数あります: {names}"),
    ("“{name}” depends on {step}, which is none of the steps.",
     "「{name}」が依存する {step} は、計画のステップにありません。"),
    ("“{name}” waits for itself.", "「{name}」が自分自身を待っています。"),
    ("These steps wait for one another: {names}.", "次のステップが互いを待っています: {names}"),
    ("depends_on names {step}, which {count} steps are called: give each its own number.",
     "depends_on の {step} という名前のステップが {count} 個あります。それぞれに固有の番号を付けてください。"),
    ("depends_on names {step}, which is none of the steps.", "depends_on の {step} は、計画のステップにありません。"),
    ("task {number}: {why}", "タスク {number}: {why}"),
    ("Tasks are carried out in act mode only.", "タスクを実行できるのは act モードだけです。"),
    ("Step “{name}” is completed; reopen it if it must be done again.",
     "ステップ「{name}」は完了しています。やり直すには、再び開いてください。"),
    ("Step “{name}” has to wait for: {names}.", "ステップ「{name}」は次のステップの完了待ちです: {names}"),
    ("Step “{name}” has no tasks yet: task/generate_list makes them.",
     "ステップ「{name}」にはまだタスクがありません。task/generate_list が作成します。"),
    ("the workspace has more than one folder", "ワークスペースに複数のフォルダーがあります"),
    ("no folder is open", "フォルダーが開かれていません"),
    ("the folder is no git repository that can be used", "フォルダーが、使える Git リポジトリではありません"),
    ("the repository has no commit yet", "リポジトリにまだコミットがありません"),
    ("the repository has submodules", "リポジトリにサブモジュールがあります"),
    ("there are changes that are not committed ({name} and {count} more)",
     "コミットされていない変更があります（{name} ほか {count} 件）"),
    ("there are changes that are not committed ({name})", "コミットされていない変更があります（{name}）"),
)  # fmt: skip
