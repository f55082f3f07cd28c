"""An agent's system prompt: its instructions and the project's rules; nothing that changes during a session."""

from pathlib import Path

from daiku.domain.base import Frozen
from daiku.domain.tools import EditForm
from daiku.models.families import ANY_MODEL, Family, ModelTraits
from daiku.prompts import render
from daiku.run.rules.state.context import UNTRUSTED_RULES
from daiku.team.agent import Agent, Prompt
from daiku.team.rules_files import RulesFile, read_rules


class SystemVariables(Frozen):
    """Template variables of the system prompt; constant between two turns."""

    rules: tuple[RulesFile, ...]
    has_tools: bool
    by_tools: bool = True
    """The model calls tools natively, and roles answer by tools; otherwise in their text forms."""
    offered: tuple[str, ...] = ()
    """Names of the tools sent to the model; the prompt mentions others only as searchable."""
    family: Family = "other"
    edits: EditForm = "search_replace"
    depth: int = 1
    """Depth of a draft (R1.60); other agents ignore it."""
    untrusted: str = ""
    """Text before the rules of an untrusted workspace."""
    facts: str = ""
    """Facts from the project's manifests."""
    mcp_prompt: str = ""
    """Merged `system_prompt`s of all allowed MCP servers (R2.69)."""


def render_system_prompt(
    agent: Agent,
    roots: tuple[Path, ...],
    has_tools: bool,
    mcp_prompt: str = "",
    *,
    trusted: bool = True,
    offered: tuple[str, ...] = (),
    traits: ModelTraits = ANY_MODEL,
    native: bool = True,
    depth: int = 1,
) -> str:
    """Return the system prompt, the same in every turn and mode for prompt caching. `native`: native tool calls."""
    by_tools = has_tools and native
    variables = SystemVariables(
        rules=read_rules(roots) if agent.uses_builtin_tools or isinstance(agent.instructions, Prompt) else (),
        has_tools=has_tools,
        by_tools=by_tools,
        offered=offered,
        family=traits.family,
        edits=traits.edits,
        depth=depth,
        untrusted="" if trusted else UNTRUSTED_RULES,
        facts=_load_facts(roots) if agent.knows_project else "",
        mcp_prompt=mcp_prompt,
    )
    if isinstance(agent.instructions, Prompt):
        return render(agent.instructions.id, variables)
    form = agent.answers.describe_form(by_tools) if agent.answers is not None else ""
    place = render("parts/place", variables) if variables.rules or mcp_prompt else ""
    return "\n\n".join(part for part in (agent.instructions, form, place.strip()) if part)


def _load_facts(roots: tuple[Path, ...]) -> str:
    from daiku.team.project import read_project_facts  # when used

    return read_project_facts(roots)


class NoVariables(Frozen):
    pass


def render_summary_prompt() -> str:
    """Return the prompt that asks a model to summarize a conversation."""
    return render("parts/summary", NoVariables())
