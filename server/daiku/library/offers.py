"""What every front offers to choose from (models, tools, agents), and how each forgets a session."""

from __future__ import annotations

import asyncio

from daiku import api
from daiku.app import App
from daiku.domain.errors import DaikuError
from daiku.texts.text import render


async def models_of(app: App, language: str) -> api.ModelsResult:
    """Every model that can be used, and why the other providers cannot."""
    offered = await app.models()
    try:
        selected: str | None = app.llm.resolve("").name
    except DaikuError:
        selected = None
    told = (m.model_copy(update={"trait": render(m.trait, language)}) for o in offered for m in o.models)
    return api.ModelsResult(
        models=tuple(api.ModelOffer(id=f"{m.provider}/{m.name}", **m.model_dump()) for m in told),
        providers=tuple(
            api.ProviderState(
                provider=o.provider,
                usable=o.error is None,
                error=o.error,
                origin=app.plugged.origin("provider", o.provider),
            )
            for o in offered
        ),
        selected=selected,
    )


def tools_of(app: App) -> api.ToolsResult:
    """Every tool, and how the configured MCP servers stand; none is started."""
    fields = ("name", "description", "parameters", "effect")
    return api.ToolsResult(
        tools=tuple(
            api.ToolInfo(**{f: getattr(s, f) for f in fields}, origin=app.plugged.origin("tool", s.name))
            for s in app.tools()
        ),
        servers=tuple(api.ServerState(**dict(report)) for report in app.servers.reports()),
    )


def agents_of(app: App) -> api.AgentsResult:
    """Every agent that can be asked by name."""
    return api.AgentsResult(
        agents=tuple(
            api.AgentInfo(
                name=a.name,
                description=a.description,
                tools=a.patterns,
                origin=app.plugged.origin("agent", a.name),
            )
            for a in app.agents()
        )
    )


async def delete_session(app: App, session: str) -> None:
    """Forget a session and all that is kept of it. Raises UsageError: unknown, or a run of it is in progress."""
    app.journal.delete_session(session)
    await asyncio.to_thread(app.checkpoints.forget, session)
    services = app.runs.services
    if services.outputs is not None:
        await asyncio.to_thread(services.outputs.forget, session)
    if services.trace is not None:
        services.trace.forget(session)
        await asyncio.to_thread(services.trace.flush)
