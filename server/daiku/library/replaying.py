"""Recorded runs played again without a model; apart from `fronts`, as only `daiku sessions replay` needs it."""

from __future__ import annotations

from daiku.run.recorded.replay import Replayed, replay

__all__ = ["Replayed", "replay"]
