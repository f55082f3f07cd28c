"""Prompt library (R1.91): templates by id in several languages, rendered from typed variables in a sandbox."""

from daiku.prompts.library import (
    Prompts,
    TemplateInfo,
    TemplateProblem,
    Variables,
    find_prompts_folder,
    render,
)

__all__ = ["Prompts", "TemplateInfo", "TemplateProblem", "Variables", "find_prompts_folder", "render"]
