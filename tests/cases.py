"""Many cases in one test: a loop that names the case that failed, and how many examples a property takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any

import pytest
from hypothesis import settings

Test = Callable[..., None]


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], *, at_once: int = 1
) -> Callable[[Test], Test]:
    """Runs a test for every case, also after one that failed; a failure has a note with its case.

    It is written like `pytest.mark.parametrize`, and several of them multiply alike. A test id of its own costs
    more than most of these tests: this is for cases that need no fixture each. Cases that mostly wait for processes
    run side by side, in `at_once` threads.
    """
    several = not isinstance(names, str)
    keys = names if several else (names,)
    every = tuple(cases)
    if not every:
        raise ValueError(f"no case of {keys}")

    def decorate(test: Test) -> Test:
        if iscoroutinefunction(test):
            raise TypeError(f"{test.__name__} would not run: the loop calls it and awaits nothing")

        @wraps(test)
        def each(**others: Any) -> None:
            def run(case: Any) -> BaseException | None:
                try:
                    test(**others, **dict(zip(keys, case if several else (case,), strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # every case is tried; all are raised below
                    error.add_note(f"{', '.join(keys)} = {case!r}")
                    return error
                return None

            if at_once == 1:
                results = list(map(run, every))
            else:
                with ThreadPoolExecutor(at_once) as pool:
                    results = list(pool.map(run, every))
            failed = [error for error in results if error is not None]
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(every)} cases", failed)

        rest = [p for name, p in signature(test).parameters.items() if name not in keys]
        shown: Any = each
        shown.__signature__ = signature(test).replace(parameters=rest)
        return each

    return decorate


def examples(number: int) -> int:
    """So many examples of a property; in the fast loop (the profile `quick`) no more than that gives every property."""
    most = settings().max_examples
    return min(number, most) if settings.get_current_profile_name() == "quick" else number
