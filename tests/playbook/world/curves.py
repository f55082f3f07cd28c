"""The curves of a report as SVG: for each row the median over worlds of the share that was passed, and the quarters around it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tests.playbook.world.report import WINDOW, Results, Share, curve

PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("With the playbook and without it", ("off", "on", "on, 200 tokens", "on, flipped", "all that could be known")),
    ("What happens at task 100", ("on", "on, wrong", "on, changed", "off, changed")),
    ("What each piece is worth", ("on", "without counters", "without merging", "without reflector")),
    ("Wrong bullets at task 100, without a piece", ("on, wrong", "without counters, wrong", "without merging, wrong")),
    ("Changed conventions at task 100, without a piece", ("on, changed", "without counters, changed", "without merging, changed")),
    ("Beside others, in the same worlds", ("on", "off", "notes of half an hour", "ACE", "ACE, what passed too", "SkillOpt-Sleep", "SkillOpt-Sleep, gate off", "SkillOpt-Sleep, what passed too")),
    ("Beside others, when conventions change at task 100", ("on, changed", "off, changed", "notes of half an hour, changed", "ACE, changed", "SkillOpt-Sleep, changed")),
    ("Beside others, with 20 wrong texts at task 100, or a fifth of all outcomes flipped", ("on, wrong", "ACE, wrong", "SkillOpt-Sleep, wrong", "on, flipped", "ACE, flipped", "SkillOpt-Sleep, flipped")),
)  # fmt: skip
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700", "#57606a", "#bf3989", "#0a7ea4")
WIDE, HIGH, LEFT, TOP, LINE = 760, 250, 46, 34, 17


def drawing(results: Results) -> str:
    """One picture with a panel for each group of rows; rows that no panel names have one of their own."""
    named = {name for _, names in PANELS for name in names}
    others = tuple(name for name in results.rows if name not in named)
    groups = [*PANELS, ("Other memories, in the same worlds", ("on", "off", *others))] if others else PANELS
    parts: list[str] = []
    top = 0
    for title, names in groups:
        known = [name for name in names if name in results.rows]
        parts.append(f'<g transform="translate(0 {top})">{_panel(title, known, results)}</g>')
        top += TOP + HIGH + 40 + LINE * len(known)
    size = f'width="{WIDE + LEFT + 20}" height="{top}" viewBox="0 0 {WIDE + LEFT + 20} {top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return f'{head}\n<rect width="100%" height="100%" fill="#ffffff"/>\n{"".join(parts)}</svg>\n'


def _panel(title: str, names: Sequence[str], results: Results) -> str:
    lines = [f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>\n']
    for percent in range(0, 101, 20):
        y = _y(percent)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{LEFT + WIDE}" stroke="#d0d7de"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>\n')
    for task in range(0, results.tasks + 1, WINDOW):
        x = LEFT + WIDE * task / results.tasks
        lines.append(f'<text x="{x:.1f}" y="{TOP + HIGH + 16}" text-anchor="middle">{task}</text>')
    for number, name in enumerate(names):
        shares = curve(results.rows[name], results.tasks)
        colour = COLOURS[number % len(COLOURS)]
        lines.append(_curve(shares, colour, results.tasks))
        y = TOP + HIGH + 36 + LINE * number
        lines.append(f'<path d="M{LEFT} {y - 4}h24" stroke="{colour}" stroke-width="3"/>')
        lines.append(f'<text x="{LEFT + 32}" y="{y}">{escape(name)}</text>\n')
    return "".join(lines)


def _curve(shares: Sequence[Share], colour: str, tasks: int) -> str:
    places = [LEFT + WIDE * (at * WINDOW + WINDOW / 2) / tasks for at in range(len(shares))]
    over = [f"{x:.1f} {_y(each.high):.1f}" for x, each in zip(places, shares, strict=True)]
    under = [f"{x:.1f} {_y(each.low):.1f}" for x, each in zip(places, shares, strict=True)]
    middle = [f"{x:.1f} {_y(each.middle):.1f}" for x, each in zip(places, shares, strict=True)]
    spread = f'<path d="M{" L".join((*over, *reversed(under)))}Z" fill="{colour}" opacity="0.12"/>'
    return f'{spread}<path d="M{" L".join(middle)}" fill="none" stroke="{colour}" stroke-width="2.2"/>\n'


def _y(percent: float) -> float:
    return TOP + HIGH * (1 - percent / 100)
