"""Japanese for what is wrong with a role's reply, and for how a role ends."""

from __future__ import annotations

# fmt: off
ROLES: tuple[tuple[str, str], ...] = (
    # planner
    ("no plan was proposed", "計画が提案されていません"),
    ("no new plan was proposed", "新しい計画が提案されていません"),
    ("the plan is cut off: make it shorter", "計画が途中で切れています。短くしてください"),
    ('the reply must sound like a person and not begin with "As an AI"',
     '返答は人の言葉らしく書き、"As an AI" で始めないでください'),
    # coder
    ("there is no file in it: give whole files as ``File: `path`:`` followed by a fenced code block, a unified diff or SEARCH/REPLACE blocks, or `No change: <why>`",
     "ファイルがありません。``File: `path`:`` とコードブロックでファイル全体を書くか、unified diff か SEARCH/REPLACE ブロック、または `No change: <理由>` で答えてください"),
    ("the reply is cut off: write fewer files at once, and go on where it ended",
     "返答が途中で切れています。一度に書くファイルを減らし、切れたところから続けてください"),
    # runner
    ("`{command}` still fails after {count} repairs.", "`{command}` は {count} 回修復しても失敗します。"),
    ("See what it printed, and say how to go on.", "出力を確認し、どう続けるかを指示してください。"),
    ('"command" is missing: the command to run', '"command"（実行するコマンド）がありません'),
    ("a patch needs the change below it: a path and SEARCH/REPLACE blocks, a diff or whole files",
     "パッチには変更内容が必要です。パスと SEARCH/REPLACE ブロック、diff、またはファイル全体を書いてください"),
    ("`{command}` failed (exit code {code}) and was not repaired.", "`{command}` は失敗し（終了コード {code}）、修復されていません。"),
    ("`{command}` failed and was not repaired.", "`{command}` は失敗し、修復されていません。"),
    ("`{command}` hides its exit code: run it without what stands behind it",
     "`{command}` は終了コードを隠しています。後ろに付けたものを外して実行してください"),
    ("The changes are made.", "変更しました。"),
    ("Nothing was changed.", "何も変更していません。"),
    ("Nothing has to be run.", "実行するものはありません。"),
    ("It cannot be mended here.", "ここでは直せません。"),
    ("Nothing needs to be looked up.", "調べる必要のあることはありません。"),
    ("- `{command}`: exit code {code}", "- `{command}`: 終了コード {code}"),
    ("- `{command}`: not run", "- `{command}`: 実行していません"),
    ("- `{command}`: started", "- `{command}`: 開始しました"),
    ("Not run: {names}", "未実行: {names}"),
    ("{path}: its code fence is never closed; the reply may be cut off", "{path}: コードブロックが閉じていません。返答が途中で切れた可能性があります"),
    ("{path}: given twice, the last one counts", "{path}: 二度書かれているので、最後のものを使います"),
    # forms
    ("there is no JSON in the reply", "返答に JSON がありません"),
    ("the JSON must be an object with {keys}", "JSON は {keys} を持つオブジェクトでなければなりません"),
    ('"{name}" is missing', '"{name}" がありません'),
    ('"{name}" is empty', '"{name}" が空です'),
    ('"{name}" must be a list', '"{name}" はリストでなければなりません'),
    ('"{name}" must be a list of steps', '"{name}" はステップのリストでなければなりません'),
    ('"{name}" must be a text', '"{name}" はテキストでなければなりません'),
    ('item {number} of "{name}" must be a text', '"{name}" の {number} 番目はテキストでなければなりません'),
    ('"action" must be "command", "patch" or "stop"', '"action" は "command"、"patch"、"stop" のいずれかでなければなりません'),
    ("The researcher's reply has no ask_user: taken as no question.", "調査役の返答に ask_user がありません。質問なしとして扱います。"),
    # reporter
    ("there is nothing to report about", "報告することがありません"),
    ("there is no reference {names}; there are: {known}", "参照 {names} はありません。あるのは {known} です"),
    ("the report lacks its text", "報告に本文がありません"),
    ("the report lacks its claims", "報告に項目がありません"),
)
