"""Ranking of a repository's files by who refers to whom."""

from __future__ import annotations

import pytest

from daiku.core.code.repomap import Tag, rank, render_map


def define(name: str, line: int = 1, indent: int = 0) -> Tag:
    return Tag(name, "function", line, f"def {name}():", is_definition=True, indent=indent)


def use(name: str) -> Tag:
    return Tag(name, "call", 1, "", is_definition=False)


def test_what_many_use_ranks_above_what_nobody_uses() -> None:
    tags = {
        "core": [define("engine"), define("spare", 2)],
        **{f"u{i}": [use("engine"), define(f"f{i}")] for i in range(5)},
    }
    ranks = rank(tags)
    assert ranks["core"]["engine"] > 5 * ranks["core"]["spare"]
    assert ranks["core"]["engine"] > max(ranks[f"u{i}"][f"f{i}"] for i in range(5))


def test_a_name_that_everyone_defines_says_nothing() -> None:
    tags = {f"f{i}": [define("run_it"), use("run_it")] for i in range(30)}
    tags["user"] = [use("run_it")]
    ranks = rank(tags)
    assert max(max(names.values(), default=0) for names in ranks.values()) < 0.01


def test_focus_pulls_towards_what_it_uses() -> None:
    tags = {
        "a": [define("left_part")],
        "b": [define("right_part")],
        "x": [use("left_part")],
        "y": [use("right_part")],
    }
    assert rank(tags, ["x"])["a"]["left_part"] > rank(tags, ["x"])["b"]["right_part"]
    assert rank(tags, ["y"])["b"]["right_part"] > rank(tags, ["y"])["a"]["left_part"]


def test_ranks_do_not_grow_or_vanish() -> None:
    tags = {f"f{i}": [define(f"n{i}"), use(f"n{(i + 1) % 9}"), use(f"n{(i * 2) % 9}")] for i in range(9)}
    assert sum(sum(names.values()) for names in rank(tags).values()) == pytest.approx(1, abs=0.1)
    assert rank({}) == {}


def test_the_map_keeps_its_budget_and_the_order_of_lines() -> None:
    tags = {
        "core": [define("a_name", 3, 4), define("b_name", 1)],
        "user": [use("a_name"), use("a_name"), use("b_name")],
    }
    assert render_map(tags, (), 100) == "core:\n    1 def b_name():\n    3     def a_name():"
    assert render_map(tags, (), 10) == "core:\n    3     def a_name():"
    assert render_map(tags, ("core",), 100) == ""
