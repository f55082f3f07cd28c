"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import daiku
from daiku.texts.rules.patterns import lazy


def test_a_pattern_is_compiled_when_it_is_used_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[str]()
    compile_ = re.compile

    def counted(pattern: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(pattern)
        return compile_(pattern, flags)

    monkeypatch.setattr(re, "compile", counted)
    word = lazy(r"wo(r)d", re.IGNORECASE)
    assert compiled == []
    assert [word.search("A WORD") is not None for _ in range(3)] == [True] * 3
    assert compiled == [r"wo(r)d"], "once, however often it is used"
    assert word.sub("x", "word") == "x"
    assert word.pattern == r"wo(r)d"


@pytest.mark.slow  # it imports every module
def test_every_pattern_of_the_product_compiles() -> None:
    kind = type(lazy(""))
    found = 0
    for module in pkgutil.walk_packages(daiku.__path__, "daiku."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, kind):
                re.compile(value.pattern, value.flags)
                found += 1
    assert found > 100
