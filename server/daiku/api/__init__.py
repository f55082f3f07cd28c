"""The wire contract: every custom method with its params and result, and the events that stream."""

# Types are imported to be found here.
# pyright: reportUnusedImport=false

from __future__ import annotations

from typing import TypeAlias

from daiku.api.base import PROTOCOL, Id, Nothing, TextResult, Token
from daiku.api.editor import (
    CallPart,
    EditNotebookParams,
    EditNotebookResult,
    EditorCell,
    EditorDiagnostic,
    EditorDiagnosticsParams,
    EditorDiagnosticsResult,
    EditorFileParams,
    EditorLocation,
    EditorLocationsResult,
    EditorModel,
    EditorModelsResult,
    EditorNotebook,
    EditorPlaceParams,
    EditorSaveParams,
    ImagePart,
    LanguageModelMessage,
    LanguageModelParams,
    LanguageModelResult,
    LanguageModelTool,
    NewCell,
    Part,
    ResultPart,
    TextPart,
    ThinkingPart,
)
from daiku.api.offers import (
    AgentInfo,
    AgentsResult,
    ClientOffer,
    DoctorFinding,
    DoctorResult,
    InitializationOptions,
    ModelOffer,
    ModelsResult,
    ProviderState,
    ServerOffer,
    ServerState,
    ToolInfo,
    ToolsResult,
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
    CheckpointInfo,
    CheckpointListResult,
    CodeParams,
    CodeResult,
    CommandsParams,
    CommandsResult,
    DocumentParams,
    DocumentResult,
    GenerateParams,
    GenerateResult,
    PlanImportParams,
    PlanParams,
    PlanRef,
    PlanResult,
    PlanRunParams,
    PlanRunResult,
    PlanUpdateParams,
    ResearchParams,
    ResearchResult,
    ResumeParams,
    RunRef,
    RunStart,
    SteerParams,
    WorkItemRef,
    WorkListParams,
    WorkListResult,
    WorkPlace,
    WorkWatchParams,
    WorkWatchResult,
)
from daiku.api.sessions import (
    ChangedFile,
    ChangeHunk,
    ChangesParams,
    ChangesResult,
    CheckpointRef,
    ChunkRecord,
    DecideParams,
    EarlierChunks,
    ExportFormat,
    Grant,
    GrantRef,
    GrantsResult,
    OriginalParams,
    OriginalResult,
    RestoreResult,
    SessionExportParams,
    SessionForkParams,
    SessionGetParams,
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionNewParams,
    SessionRef,
    TraceResult,
    TraceSpan,
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
