"""The prompt library (R1.91): templates by id, in several languages, filled in from typed variables in a sandbox."""

from daiku.prompts.library import Problem, Prompts, Standing, Variables, prompts_folder, render

__all__ = ["Problem", "Prompts", "Standing", "Variables", "prompts_folder", "render"]
