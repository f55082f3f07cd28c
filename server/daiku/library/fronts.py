"""Run API of the fronts: start, steer, and read runs.

A front never imports `daiku.run` or `daiku.app` directly; import-linter enforces this.
"""

from __future__ import annotations

from daiku.app import App, AppParts, build
from daiku.edits.review.decisions import RestoreOutcome
from daiku.edits.review.views import (
    list_changed_everywhere,
    list_changed_files,
    render_diff,
    to_restore_result,
)
from daiku.run.documents import document_request, is_untitled, reflection_request
from daiku.run.nested.briefing import brief_from
from daiku.run.recorded.history import evidence_of_session, states_of_runs
from daiku.run.request import RunRequest
from daiku.run.runs import Listener, Runs

__all__ = [
    "App",
    "AppParts",
    "Listener",
    "RestoreOutcome",
    "RunRequest",
    "Runs",
    "brief_from",
    "build",
    "document_request",
    "evidence_of_session",
    "is_untitled",
    "list_changed_everywhere",
    "list_changed_files",
    "reflection_request",
    "render_diff",
    "states_of_runs",
    "to_restore_result",
]
