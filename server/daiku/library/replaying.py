"""Replay of recorded runs without a model; separate from `fronts` because only `daiku sessions replay` needs it."""

from __future__ import annotations

from daiku.run.recorded.replay import Replayed, replay

__all__ = ["Replayed", "replay"]
