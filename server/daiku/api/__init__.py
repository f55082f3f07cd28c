"""The wire contract: every custom method with its params and result, and the events that stream."""

# Types are imported to be found here.
# pyright: reportUnusedImport=false

from __future__ import annotations

from typing import TypeAlias

from daiku.api.base import PROTOCOL, Id, Nothing, TextResult, Token
from daiku.api.changes import (
    ChangedFile,
    ChangeHunk,
    ChangesParams,
    ChangesResult,
    CheckpointRef,
    DecideParams,
    OriginalParams,
    OriginalResult,
    RestoreResult,
)
from daiku.api.editor import (
    EditNotebookParams,
    EditNotebookResult,
    EditorCell,
    EditorDiagnostic,
    EditorDiagnosticsParams,
    EditorDiagnosticsResult,
    EditorFileParams,
    EditorLocation,
    EditorLocationsResult,
    EditorNotebook,
    EditorPlaceParams,
    EditorSaveParams,
    NewCell,
)
from daiku.api.grants import Grant, GrantRef, GrantsResult
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
    DoctorFinding,
    DoctorResult,
    ModelOffer,
    ModelsResult,
    ProviderState,
    ServerState,
    ToolInfo,
    ToolsResult,
)
from daiku.api.opening import ClientOffer, InitializationOptions, ServerOffer
from daiku.api.plans import (
    CheckpointInfo,
    CheckpointListResult,
    PlanImportParams,
    PlanRef,
    PlanRunParams,
    PlanRunResult,
    PlanUpdateParams,
)
from daiku.api.playbook import (
    AcceptedDelta,
    BulletObservation,
    PlaybookAddParams,
    PlaybookChange,
    PlaybookDeltasParams,
    PlaybookDeltasResult,
    PlaybookListParams,
    PlaybookListResult,
    PlaybookPlace,
    PlaybookRef,
    PlaybookReviewParams,
    PlaybookReviewResult,
    PlaybookSearchParams,
    PlaybookSearchResult,
    PlaybookShowResult,
    PlaybookUpdateParams,
    PlaybookWatchParams,
    PlaybookWatchResult,
    RefusedDelta,
    ShownDelta,
)
from daiku.api.runs import (
    AnswerParams,
    ApproveParams,
    ChatParams,
    CodeParams,
    CodeResult,
    CommandsParams,
    CommandsResult,
    DocumentParams,
    DocumentResult,
    GenerateParams,
    GenerateResult,
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
    EarlierChunks,
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
from daiku.api.traces import TraceResult, TraceSpan
from daiku.api.work import (
    WorkItemRef,
    WorkListParams,
    WorkListResult,
    WorkPlace,
    WorkWatchParams,
    WorkWatchResult,
)
from daiku.domain.base import Wire
from daiku.domain.work.handovers import CommandOutcome

Result: TypeAlias = type[Wire] | None

CLIENT_REQUESTS: dict[str, tuple[type[Wire], Result]] = {
    "daiku/languageModel": (LanguageModelParams, LanguageModelResult),
    "daiku/languageModel/list": (Nothing, EditorModelsResult),
    "daiku/editor/diagnostics": (EditorDiagnosticsParams, EditorDiagnosticsResult),
    "daiku/editor/definition": (EditorPlaceParams, EditorLocationsResult),
    "daiku/editor/references": (EditorPlaceParams, EditorLocationsResult),
    "daiku/editor/save": (EditorSaveParams, None),
    "daiku/editor/notebook": (EditorFileParams, EditorNotebook),
    "daiku/editor/editNotebook": (EditNotebookParams, EditNotebookResult),
}
"""Server to client, only what the client offered in `initializationOptions.client`."""

COMMANDS: tuple[str, ...] = (
    "daiku.newChat", "daiku.plan", "daiku.research", "daiku.generateCode", "daiku.runCommands",
    "daiku.explain", "daiku.fix", "daiku.writeTests", "daiku.document", "daiku.review", "daiku.commitMessage",
    "daiku.undo", "daiku.stop", "daiku.resume", "daiku.doctor",
)  # fmt: skip
"""What `workspace/executeCommand` carries out in the server; the client's own commands are not here."""
