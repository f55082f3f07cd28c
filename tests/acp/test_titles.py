"""Titles of tool calls in ACP: a person reads them in the editor, also where they are asked."""

from __future__ import annotations

from daiku.fronts.acp.updates import title_of


def test_a_title_shows_hidden_characters_as_escapes() -> None:
    """A23.8"""
    title = title_of("shell/run", {"command": "rm \u202ex\U000e0041\u200b \x1b[2K"}, "en")
    assert title.endswith("rm \\u202ex\\ue0041\\u200b \\u001b[2K")
