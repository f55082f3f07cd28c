"""Prompt library (R1.91): templates by id in several languages, rendered from typed variables in a sandbox."""

from daiku.prompts.library import Problem, Prompts, TemplateInfo, Variables, prompts_folder, render

__all__ = ["Problem", "Prompts", "TemplateInfo", "Variables", "prompts_folder", "render"]
