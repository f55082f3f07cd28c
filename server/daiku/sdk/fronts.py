"""What the fronts (editor, terminal, HTTP, ACP, evaluation) start, steer and read runs by: what the Runner stands on.

A front imports nothing of `daiku.runs` or `daiku.app` itself: what it may use stands here, and nothing else.
"""

from __future__ import annotations

from daiku.app import App, Given, build
from daiku.runs import Listener, RunRequest, Runs, brief_from
from daiku.runs.documents import document_request, is_untitled, reflection_request
from daiku.runs.recorded.history import evidence_of_session, states_of_runs
from daiku.runs.review.decisions import RestoreOutcome
from daiku.runs.review.views import changed_everywhere, changed_files, diff_of, restore_result

__all__ = [
    "App",
    "Given",
    "Listener",
    "RestoreOutcome",
    "RunRequest",
    "Runs",
    "brief_from",
    "build",
    "changed_everywhere",
    "changed_files",
    "diff_of",
    "document_request",
    "evidence_of_session",
    "is_untitled",
    "reflection_request",
    "restore_result",
    "states_of_runs",
]
