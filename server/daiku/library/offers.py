"""Models, tools, and agents that every front lists, and the deletion of a session."""

from __future__ import annotations

import asyncio

from daiku import api
from daiku.app import App
from daiku.domain.errors import DaikuError
from daiku.texts.text import render


async def models_of(app: App, language: str) -> api.ModelsResult:
    """Return every usable model, and the providers with their errors."""
    offers = await app.models()
    try:
        selected: str | None = app.llm.resolve("").name
    except DaikuError:
        selected = None
    models = (m.model_copy(update={"trait": render(m.trait, language)}) for o in offers for m in o.models)
    return api.ModelsResult(
        models=tuple(api.ModelOffer(id=f"{m.provider}/{m.name}", **m.model_dump()) for m in models),
        providers=tuple(
            api.ProviderState(
                provider=o.provider,
                usable=o.error is None,
                error=o.error,
                origin=app.plugged.origin("provider", o.provider),
            )
            for o in offers
        ),
        selected=selected,
    )


def tools_of(app: App) -> api.ToolsResult:
    """Return every tool and the status of the configured MCP servers; none is started."""
    fields = ("name", "description", "parameters", "effect")
    return api.ToolsResult(
        tools=tuple(
            api.ToolInfo(**{f: getattr(s, f) for f in fields}, origin=app.plugged.origin("tool", s.name))
            for s in app.tools()
        ),
        servers=tuple(api.ServerState(**dict(report)) for report in app.servers.list_reports()),
    )


def agents_of(app: App) -> api.AgentsResult:
    """Return every agent that can be requested by name."""
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
    """Delete a session with its files. Raises UsageError if it is unknown, or a run of it is active."""
    app.journal.delete_session(session)
    await asyncio.to_thread(app.checkpoints.forget, session)
    services = app.runs.services
    if services.outputs is not None:
        await asyncio.to_thread(services.outputs.forget, session)
    if services.trace is not None:
        services.trace.forget(session)
        await asyncio.to_thread(services.trace.flush)
