"""Trials of lessons: the state of a project when a run began, runs that can be done again, and what a trial showed."""

from daiku.domain.trials.cases import Arm, Case, Check, CheckEnd, Trial
from daiku.domain.trials.starts import ChangedFile, NotKept, ProjectStart

__all__ = ["Arm", "Case", "ChangedFile", "Check", "CheckEnd", "NotKept", "ProjectStart", "Trial"]
