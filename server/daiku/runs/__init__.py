"""Runs: start, cancel, pause, resume, steer, approve, answer, replay; the same for every front."""

from daiku.runs.nested.briefing import brief_from
from daiku.runs.request import RunRequest
from daiku.runs.runs import Listener, Runs
from daiku.runs.services import RunServices

__all__ = ["Listener", "RunRequest", "RunServices", "Runs", "brief_from"]
