"""Opening and closing of the trace that the settings request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.trace.telemetry.endpoint import OTLP_HEADERS, parse_headers

if TYPE_CHECKING:
    from daiku.trace.telemetry.logger import TraceLogger


def open_trace(
    folder: Path | None, endpoint: str, content: bool, environ: Mapping[str, str]
) -> TraceLogger | None:
    """Return the trace of this process: files in `folder`, and spans for `endpoint`; None if neither is set."""
    if folder is None and not endpoint:
        return None
    from daiku.trace.telemetry.logger import TraceLogger  # when used

    headers = parse_headers(environ.get(OTLP_HEADERS, ""))
    return TraceLogger(folder, otlp_endpoint=endpoint, otlp_headers=headers, content=content)


def closer_of_trace(trace: TraceLogger | None, external: TraceLogger | None) -> Callable[[], object]:
    """Return the function that ends the trace with its App; an `external` trace stays open."""
    if trace is None:
        return bool
    return trace.flush if trace is external else trace.close
