"""Long work in a small window, or at a price: few summaries, no refused request, half the cost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.chunks import Chunk
from daiku.domain.config import ToolProtocol
from daiku.domain.events import Compacted, ToolResponse
from daiku.domain.held import Pruned
from daiku.domain.messages import ToolMessage
from daiku.models.adapter import LLMAdapter
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.rules.calls.findtools import SMALL_WINDOW
from daiku.run.rules.calls.toolnames import wire_name
from tests.runs.playing import Watch
from tests.runs.windowed import Played, app_over, price_of

Json = dict[str, Any]
told = partial(print, file=sys.stderr)
"""Figures, which `pytest -s` shows."""
Step = Sequence[tuple[str, Json]]
MODULES = ("cart", "till", "stock", "orders")


def module(name: str, functions: int = 14) -> str:
    """A module of about 900 tokens, with one wrong operator in each function."""
    head = f'"""The {name} of the shop."""\n\nfrom decimal import Decimal\n'
    parts = (
        f"\ndef {name}_{n}(prices: list[Decimal], rate: Decimal) -> Decimal:\n"
        f'    """The {name} number {n}, rounded to whole cents."""\n'
        f"    total = sum(prices, Decimal({n}))\n"
        f"    return (total - rate).quantize(Decimal('0.01'))\n"
        for n in range(functions)
    )
    return "\n".join([head, *parts])


def check(name: str) -> str:
    """A command that prints what a failing test run of 25 lines prints."""
    return f"python3 check.py {name}"


CHECK = """
import sys
name = sys.argv[1]
text = open(f"{name}.py").read()
wrong = text.count("total - rate")
print("============================= test session starts ==============================")
for n in range(14):
    print(f"tests/test_{name}.py::test_{name}_{n} {'FAILED' if n < wrong else 'PASSED'}    [{n * 7:3d}%]")
print("=================================== FAILURES ===================================")
for n in range(min(wrong, 3)):
    print(f"E       AssertionError: {name}_{n}([1, 2], 3) is {n - 3}, expected {n + 3}")
print(f"=========== {wrong} failed, {14 - wrong} passed in 0.12s ===========")
sys.exit(bool(wrong))
"""


def job() -> list[Step]:
    """Twenty-four steps: for each of four modules it is looked for, read, changed, tried, changed, tried again."""
    steps: list[Step] = []
    for name in MODULES:
        edits = [
            {
                "search": f"Decimal({n}))\n    return (total - rate)",
                "replace": f"Decimal({n}))\n    return (total + rate)",
            }
            for n in range(14)
        ]
        steps += [
            [("search/text", {"pattern": name})],
            [("files/read", {"path": f"{name}.py"})],
            [("files/edit", {"path": f"{name}.py", "edits": edits[:7]})],
            [("shell/run", {"command": check(name)})],
            [("files/edit", {"path": f"{name}.py", "edits": edits[7:]})],
            [("shell/run", {"command": check(name)})],
        ]
    return steps


def shop(folder: Path) -> None:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "check.py").write_text(CHECK)
    for name in MODULES:
        (project / f"{name}.py").write_text(module(name))


def kinds(chunks: Sequence[Chunk], kind: type[Any]) -> list[Any]:
    return [c.event for c in chunks if isinstance(c.event, kind)]


FIVE = ["files__read", "files__edit", "files__write", "search__text", "shell__run"]


@pytest.mark.parametrize("window", [8192, 16_384])
@pytest.mark.parametrize("protocol", ["native", "action_list", "command"])
async def test_a_job_of_24_steps_takes_at_most_four_summaries_in_a_small_window(
    tmp_path: Path, protocol: ToolProtocol, window: int
) -> None:
    """With the prompt and the tools that the product itself chooses for the window."""
    shop(tmp_path)
    played = Played(job(), window=window, protocol=protocol, end="All four modules add the rate now.")
    app, watch = app_over(tmp_path, played, window=window), Watch()
    result = await app.runs.run(RunRequest("Mend the shop: rates are added.", approvals="all"), watch)
    if protocol == "native" and window < SMALL_WINDOW:
        assert sorted(wire_name(spec.name) for spec in played.requests[0].tools) == sorted(FIVE)
    assert (result.status, result.text) == ("completed", "All four modules add the rate now.")
    done = kinds(watch.chunks, ToolResponse)
    assert len(done) == 24
    assert [r.ok for r in done].count(False) == 4, [r.result[:200] for r in done if not r.ok]
    for name in MODULES:
        assert "total - rate" not in (tmp_path / f"project/{name}.py").read_text()
    told(
        f"{protocol} {window}: {len(played.summaries)} summaries, {len(kinds(watch.chunks, Pruned))} times shortened,"
        f" prefix {played.sizes[0]}, largest {max(played.sizes)}, refused {played.refused}"
    )
    assert len(played.summaries) <= 4
    assert played.refused == 0
    assert max(played.sizes) <= window
    again = await replay(app.journal.chunks(result.session_id))
    assert again.difference is None, again.difference
    await app.aclose()


async def test_what_a_summary_is_made_of_fits_the_window_too(tmp_path: Path) -> None:
    """Long files are written in a window of 8k: their texts stand in the calls, not in results."""
    (tmp_path / "project").mkdir()
    steps: list[Step] = [
        [("files/write", {"path": f"f{n}.py", "content": f"value_{n} = [1, 2, 3]\n" * 450})] for n in range(8)
    ]
    played = Played(steps, window=8192)
    app, watch = app_over(tmp_path, played, window=8192), Watch()
    result = await app.runs.run(RunRequest("Write them.", approvals="all"), watch)
    assert (result.status, played.refused) == ("completed", 0)
    assert played.summaries
    assert max(played.summaries) < 8192 * 0.7
    last = kinds(watch.chunks, Compacted)[-1]
    assert last.files_changed[:2] == ("f0.py", "f1.py")
    assert "Files changed until then: f0.py, f1.py" in played.requests[-1].messages[0].text
    await app.aclose()


async def test_ten_results_that_are_too_much_are_cut_before_they_are_sent(tmp_path: Path) -> None:
    """Ten reads side by side, 70,000 tokens, in a window that the settings say is 32,768."""
    project = tmp_path / "project"
    project.mkdir()
    for n in range(10):
        (project / f"f{n}.txt").write_text("".join(f"needle-{n} word {i} of the file\n" for i in range(560)))
    reads = [("files/read", {"path": f"f{n}.txt"}) for n in range(10)]
    played = Played([reads], window=32_768)
    app, watch = app_over(tmp_path, played, window=32_768), Watch()
    result = await app.runs.run(RunRequest("Compare the ten files.", approvals="all"), watch)
    assert result.status == "completed"
    assert (played.refused, played.summaries) == (0, [])
    results = [m for m in played.requests[-1].messages if isinstance(m, ToolMessage)]
    assert len(results) == 10
    whole = [m for m in results if "Left out" not in m.text]
    assert whole == results[-len(whole) :], "the newest are kept"
    assert [m.text.count("word ") for m in whole] == [560] * len(whole)
    assert all("files__read" in m.text for m in results[: -len(whole)])
    (pruned,) = kinds(watch.chunks, Pruned)
    assert pruned.before_tokens > 60_000
    assert abs(pruned.after_tokens - played.sizes[-1]) < 0.1 * played.sizes[-1]
    again = await replay(app.journal.chunks(result.session_id))
    assert again.difference is None, again.difference
    await app.aclose()


WINDOWS = {"gpt-6.1-sol": 1_050_000, "claude-haiku-5-5": 1_000_000, "gemini-2.5-pro": 1_048_576}


@pytest.mark.slow  # whole runs of 200 steps
@pytest.mark.parametrize("model", WINDOWS)
async def test_a_long_run_costs_at_most_half_where_a_model_has_a_price_step(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred steps of 7,000 tokens; before, a conversation was condensed at four fifths of the window only."""
    for n in range(200):
        (tmp_path / "project").mkdir(exist_ok=True)
        (tmp_path / f"project/f{n}.py").write_text(
            "".join(f"value_{n}_{i} = total({i}, rate)\n" for i in range(700))
        )
    steps: list[Step] = [[("files/read", {"path": f"f{n}.py"})] for n in range(200)]
    costs: dict[str, float] = {}
    for rule in ("step", "window"):
        if rule == "window":
            monkeypatch.setattr(LLMAdapter, "price_step", 0)
        played = Played(steps, window=WINDOWS[model])
        app, watch = app_over(tmp_path, played, model=model), Watch()
        result = await app.runs.run(RunRequest("Look at all of it.", approvals="all"), watch)
        await app.aclose()
        assert result.status == "completed"
        assert played.refused == 0
        costs[rule] = price_of(played.usages, model)
        told(
            f"{model}, {rule}: ${costs[rule]:.2f}, {len(played.summaries)} summaries, largest {max(played.sizes):,}"
        )
    assert costs["step"] <= costs["window"] / 2
