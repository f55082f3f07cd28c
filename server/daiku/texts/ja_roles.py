"""Japanese for what is wrong with a role's reply, and for how a role ends."""

from __future__ import annotations

# fmt: off
ROLES: tuple[tuple[str, str], ...] = (
    # planner
    # coder
    # runner
    ("- `{command}`: exit code {code}", "- `{command}`: 終了コード {code}"),
    ("- `{command}`: not run", "- `{command}`: 実行していません"),
    ("- `{command}`: started", "- `{command}`: 開始しました"),
    # forms
    ("the JSON must be an object with {keys}", "JSON は {keys} を持つオブジェクトでなければなりません"),
    ('"{name}" is missing', '"{name}" がありません'),
    ('"{name}" is empty', '"{name}" が空です'),
    ('"{name}" must be a list', '"{name}" はリストでなければなりません'),
    ('"{name}" must be a list of steps', '"{name}" はステップのリストでなければなりません'),
    ('"{name}" must be a text', '"{name}" はテキストでなければなりません'),
    ('item {number} of "{name}" must be a text', '"{name}" の {number} 番目はテキストでなければなりません'),
    ('"action" must be "command", "patch" or "stop"', '"action" は "command"、"patch"、"stop" のいずれかでなければなりません'),
    # reporter
)
