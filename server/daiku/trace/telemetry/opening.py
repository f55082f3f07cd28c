"""Opens the trace that settings ask for, and says what ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.trace.telemetry.endpoint import OTLP_HEADERS, headers_of

if TYPE_CHECKING:
    from daiku.trace.telemetry.logger import TraceLogger


def open_trace(
    folder: Path | None, endpoint: str, content: bool, environ: Mapping[str, str]
) -> TraceLogger | None:
    """The trace of this process's runs: files in `folder`, and spans where an `endpoint` is set; None: neither."""
    if folder is None and not endpoint:
        return None
    from daiku.trace.telemetry.logger import TraceLogger  # when used

    headers = headers_of(environ.get(OTLP_HEADERS, ""))
    return TraceLogger(folder, otlp_endpoint=endpoint, otlp_headers=headers, content=content)


def end_of_trace(trace: TraceLogger | None, given: TraceLogger | None) -> Callable[[], object]:
    """What ends a trace with its App: one that was given stays open."""
    if trace is None:
        return bool
    return trace.flush if trace is given else trace.close
