"""The wire contract: every custom method with its params and result, and the events that stream."""

from __future__ import annotations

from typing import TypeAlias

from daiku.api.base import PROTOCOL, Id, Nothing, TextResult, Token
from daiku.api.editor import (
    EditorDiagnostic,
    EditorDiagnosticsParams,
    EditorDiagnosticsResult,
    EditorLocation,
    EditorLocationsResult,
    EditorPlaceParams,
    EditorSaveParams,
)
from daiku.api.languagemodel import (
    CallPart,
    EditorModel,
    EditorModelsResult,
    ImagePart,
    LanguageModelMessage,
    LanguageModelParams,
    LanguageModelResult,
    LanguageModelTool,
    Part,
    ResultPart,
    TextPart,
    ThinkingPart,
)
from daiku.api.offers import (
    AgentInfo,
    AgentsResult,
    ModelOffer,
    ModelsResult,
    ProviderState,
    ToolInfo,
    ToolsResult,
)
from daiku.api.opening import ClientOffer, InitializationOptions, ServerOffer
from daiku.api.plans import (
    CheckpointInfo,
    CheckpointListResult,
    CheckpointRef,
    FilesResult,
    PlanRef,
    PlanUpdateParams,
)
from daiku.api.runs import (
    AnswerParams,
    ApproveParams,
    ChatParams,
    CodeParams,
    CodeResult,
    CommandsParams,
    CommandsResult,
    PlanParams,
    PlanResult,
    ResearchParams,
    ResearchResult,
    ResumeParams,
    RunRef,
    RunStart,
    SteerParams,
)
from daiku.api.sessions import (
    ChunkRecord,
    ExportFormat,
    SessionExportParams,
    SessionForkParams,
    SessionGetParams,
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionNewParams,
    SessionRef,
)
from daiku.domain.base import Wire
from daiku.domain.handovers import CommandOutcome
from daiku.domain.plans import Plan
from daiku.domain.runs import RunResult
from daiku.domain.sessions import Session

Result: TypeAlias = type[Wire] | None

REQUESTS: dict[str, tuple[type[Wire], Result]] = {
    "daiku/chat": (ChatParams, RunResult),
    "daiku/plan": (PlanParams, PlanResult),
    "daiku/research": (ResearchParams, ResearchResult),
    "daiku/code": (CodeParams, CodeResult),
    "daiku/run": (CommandsParams, CommandsResult),
    "daiku/resume": (ResumeParams, RunResult),
    "daiku/pause": (RunRef, RunResult),
    "daiku/cancel": (RunRef, RunResult),
    "daiku/steer": (SteerParams, None),
    "daiku/approve": (ApproveParams, None),
    "daiku/answer": (AnswerParams, None),
    "daiku/session/new": (SessionNewParams, Session),
    "daiku/session/list": (SessionListParams, SessionListResult),
    "daiku/session/get": (SessionGetParams, SessionGetResult),
    "daiku/session/delete": (SessionRef, None),
    "daiku/session/fork": (SessionForkParams, Session),
    "daiku/session/export": (SessionExportParams, TextResult),
    "daiku/plan/get": (PlanRef, Plan),
    "daiku/plan/update": (PlanUpdateParams, Plan),
    "daiku/plan/approve": (PlanRef, Plan),
    "daiku/checkpoint/list": (SessionRef, CheckpointListResult),
    "daiku/checkpoint/restore": (CheckpointRef, FilesResult),
    "daiku/models": (Nothing, ModelsResult),
    "daiku/tools": (Nothing, ToolsResult),
    "daiku/agents": (Nothing, AgentsResult),
}
"""Client to server: method -> (params, result); None is `null`."""

CLIENT_REQUESTS: dict[str, tuple[type[Wire], Result]] = {
    "daiku/languageModel": (LanguageModelParams, LanguageModelResult),
    "daiku/languageModel/list": (Nothing, EditorModelsResult),
    "daiku/editor/diagnostics": (EditorDiagnosticsParams, EditorDiagnosticsResult),
    "daiku/editor/definition": (EditorPlaceParams, EditorLocationsResult),
    "daiku/editor/references": (EditorPlaceParams, EditorLocationsResult),
    "daiku/editor/save": (EditorSaveParams, None),
}
"""Server to client, only what the client offered in `initializationOptions.client`."""

COMMANDS: tuple[str, ...] = (
    "daiku.newChat", "daiku.plan", "daiku.research", "daiku.generateCode", "daiku.runCommands",
    "daiku.explain", "daiku.fix", "daiku.writeTests", "daiku.document", "daiku.review", "daiku.commitMessage",
    "daiku.undo", "daiku.stop", "daiku.resume", "daiku.doctor",
)  # fmt: skip
"""What `workspace/executeCommand` carries out in the server; the client's own commands are not here."""

__all__ = [
    "CLIENT_REQUESTS",
    "COMMANDS",
    "PROTOCOL",
    "REQUESTS",
    "AgentInfo",
    "AgentsResult",
    "AnswerParams",
    "ApproveParams",
    "CallPart",
    "ChatParams",
    "CheckpointInfo",
    "CheckpointListResult",
    "CheckpointRef",
    "ChunkRecord",
    "ClientOffer",
    "CodeParams",
    "CodeResult",
    "CommandOutcome",
    "CommandsParams",
    "CommandsResult",
    "EditorDiagnostic",
    "EditorDiagnosticsParams",
    "EditorDiagnosticsResult",
    "EditorLocation",
    "EditorLocationsResult",
    "EditorModel",
    "EditorModelsResult",
    "EditorPlaceParams",
    "EditorSaveParams",
    "ExportFormat",
    "FilesResult",
    "Id",
    "ImagePart",
    "InitializationOptions",
    "LanguageModelMessage",
    "LanguageModelParams",
    "LanguageModelResult",
    "LanguageModelTool",
    "ModelOffer",
    "ModelsResult",
    "Nothing",
    "Part",
    "PlanParams",
    "PlanRef",
    "PlanResult",
    "PlanUpdateParams",
    "ProviderState",
    "ResearchParams",
    "ResearchResult",
    "ResultPart",
    "ResumeParams",
    "RunRef",
    "RunStart",
    "ServerOffer",
    "SessionExportParams",
    "SessionForkParams",
    "SessionGetParams",
    "SessionGetResult",
    "SessionListParams",
    "SessionListResult",
    "SessionNewParams",
    "SessionRef",
    "SteerParams",
    "TextPart",
    "TextResult",
    "ThinkingPart",
    "Token",
    "ToolInfo",
    "ToolsResult",
]
