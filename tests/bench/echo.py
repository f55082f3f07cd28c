"""One request and its answer over stdio, against stock pygls: the median and the slow end."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from tests.bench.client import EMPTY, OURS, Client, started
from tests.bench.measure import Row

QUESTION = {"sessionId": "ses_0"}
BATCH = 100


def echo(*, quick: bool) -> list[Row]:
    """Both servers live side by side and are asked in turn. Ours answers what its contract has: a
    request that is read, checked, routed and refused, the session being unknown."""
    batches = 5 if quick else 20
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with started(EMPTY, home) as stock, started(OURS, home) as ours:
            for client in (stock, ours):
                client.initialize(home)
                client.tell("initialized", {})
            theirs, own = list[float](), list[float]()
            _batch(stock, "bench/echo", {"text": "warm"})
            _batch(ours, "daiku/session/get", QUESTION)
            for _ in range(batches):
                theirs += _batch(stock, "bench/echo", {"text": "hello"})
                own += _batch(ours, "daiku/session/get", QUESTION)
    (p50, p99), (their50, their99) = _ends(own), _ends(theirs)
    return [
        Row("echo over stdio, p50", their50 * 1000, p50 * 1000, 0.55, "ms", None, "stock pygls"),
        Row("echo over stdio, p99", their99 * 1000, p99 * 1000, 0.4, "ms", None, "stock pygls"),
    ]


def _batch(client: Client, method: str, params: object) -> list[float]:
    found = list[float]()
    for _ in range(BATCH):
        began = perf_counter()
        client.answer(method, params)
        found.append(perf_counter() - began)
    return found


def _ends(found: list[float]) -> tuple[float, float]:
    """The 50th and the 99th percentile."""
    cuts = quantiles(found, n=100)
    return cuts[49], cuts[98]
