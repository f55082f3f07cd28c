"""The wire contract: every custom method with its params and result, and the events that stream."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.domain.base import JsonObject, Wire
from daiku.domain.errors import Failure
from daiku.domain.events import ApprovalDecision
from daiku.domain.messages import Image
from daiku.domain.patches import FileStat
from daiku.domain.plans import Plan, Step
from daiku.domain.research import Research
from daiku.domain.runs import ApprovalMode, ContextItem, Mode, Position, Range, RunLimits, RunResult
from daiku.domain.sessions import Session
from daiku.domain.tools import Effect

PROTOCOL = 1
"""Rises when an old client could no longer speak with a new server."""

Token: TypeAlias = int | str
Id = Annotated[str, Field(min_length=1, max_length=200)]

# ---- requests that start a run: they stream `$/progress {token: partialResultToken, value: Chunk}`


class RunStart(Wire):
    """What every request that starts or goes on with a run may carry."""

    session_id: Id | None = None
    """Absent: a new session is made."""
    model: str | None = None
    """`name` or `provider/name`; absent: as the settings say."""
    approvals: ApprovalMode | None = None
    """Absent: `ask`."""
    limits: RunLimits | None = None
    work_done_token: Token | None = None
    partial_result_token: Token | None = None


class ChatParams(RunStart):
    text: str
    mode: Mode | None = None
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()


class PlanParams(RunStart):
    goal: str
    context: tuple[ContextItem, ...] = ()


class PlanResult(RunResult):
    plan: Plan | None = None


class ResearchParams(RunStart):
    """A `question`, or the plan to find out for."""

    plan_id: Id | None = None
    question: str | None = None


class ResearchResult(RunResult, Research):
    """Queries also where nothing could be looked up."""


class CodeParams(RunStart):
    """`instruction`, or the plan (and one of its steps) to carry out."""

    instruction: str | None = None
    plan_id: Id | None = None
    step_id: Id | None = None
    context: tuple[ContextItem, ...] = ()


class CodeResult(RunResult):
    files: tuple[FileStat, ...] = ()


class CommandsParams(RunStart):
    """`commands` to run as they are, or an `instruction` that the runner turns into commands."""

    instruction: str | None = None
    commands: tuple[str, ...] = ()


class CommandOutcome(Wire):
    command: str
    exit_code: int
    output: str


class CommandsResult(RunResult):
    commands: tuple[CommandOutcome, ...] = ()


class ResumeParams(Wire):
    run_id: Id
    approvals: ApprovalMode | None = None
    work_done_token: Token | None = None
    partial_result_token: Token | None = None


# ---- a run under way


class RunRef(Wire):
    run_id: Id


class SteerParams(Wire):
    run_id: Id
    text: str


class ApproveParams(Wire):
    run_id: Id
    approval_id: Id
    decision: ApprovalDecision
    feedback: str | None = None


class AnswerParams(Wire):
    run_id: Id
    input_id: Id
    text: str


# ---- sessions


class SessionNewParams(Wire):
    title: str | None = None


class SessionListParams(Wire):
    query: str | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


class SessionListResult(Wire):
    sessions: tuple[Session, ...]


class SessionRef(Wire):
    session_id: Id


class SessionGetParams(SessionRef):
    after_seq: Annotated[int, Field(ge=0)] = 0


class ChunkRecord(Wire):
    """A Chunk as it is stored and sent; `data` by `type` in `daiku.domain.events.EVENTS`."""

    seq: int
    seq_from: int | None = None
    """Set where one chunk stands for the adjacent deltas `seqFrom`…`seq` (a slow client)."""
    time: str
    session: str
    run: str
    parent: str | None = None
    agent: str
    type: str
    data: JsonObject


class SessionGetResult(Wire):
    session: Session
    chunks: tuple[ChunkRecord, ...]


class SessionForkParams(SessionRef):
    at_seq: Annotated[int, Field(ge=0)]


ExportFormat = Literal["markdown", "json", "jsonl"]


class SessionExportParams(SessionRef):
    format: ExportFormat = "markdown"


class TextResult(Wire):
    text: str


# ---- plans and checkpoints


class PlanRef(Wire):
    plan_id: Id


class PlanUpdateParams(PlanRef):
    """What is given replaces what was there."""

    name: str | None = None
    goal: str | None = None
    summary: str | None = None
    steps: tuple[Step, ...] | None = None


class CheckpointInfo(Wire):
    checkpoint_id: str
    session_id: str
    run_id: str
    seq: int
    time: str
    files: tuple[str, ...]


class CheckpointListResult(Wire):
    checkpoints: tuple[CheckpointInfo, ...]


class CheckpointRef(Wire):
    checkpoint_id: Id


class FilesResult(Wire):
    files: tuple[FileStat, ...]


# ---- what there is


class Nothing(Wire):
    """No params."""


class ModelOffer(Wire):
    """A model that can be chosen; `id` is `provider/name`. Tokens are 0 where unknown."""

    id: str
    provider: str
    name: str
    context: int = 0
    max_output: int = 0
    tools: bool = True
    images: bool = False
    thinking: bool = False
    trait: str = ""


class ProviderState(Wire):
    """A provider, and why it cannot be used where it cannot."""

    provider: str
    usable: bool
    error: Failure | None = None


class ModelsResult(Wire):
    models: tuple[ModelOffer, ...]
    providers: tuple[ProviderState, ...]
    selected: str | None = None
    """The `id` that a request without `model` uses; absent where no provider is usable."""


class ToolInfo(Wire):
    name: str
    description: str
    parameters: JsonObject
    effect: Effect


class ToolsResult(Wire):
    tools: tuple[ToolInfo, ...]


class AgentInfo(Wire):
    name: str
    description: str
    tools: tuple[str, ...] = ()


class AgentsResult(Wire):
    agents: tuple[AgentInfo, ...]


# ---- server to client: the editor's own models (only where the client offered `languageModel`)


class TextPart(Wire):
    type: Literal["text"] = "text"
    text: str


class ThinkingPart(Wire):
    type: Literal["thinking"] = "thinking"
    text: str


class ImagePart(Wire):
    """`data` is base64."""

    type: Literal["image"] = "image"
    media_type: str
    data: str


class CallPart(Wire):
    type: Literal["call"] = "call"
    call_id: str
    name: str
    input: JsonObject


class ResultPart(Wire):
    type: Literal["result"] = "result"
    call_id: str
    text: str


Part: TypeAlias = Annotated[
    TextPart | ThinkingPart | ImagePart | CallPart | ResultPart, Field(discriminator="type")
]


class LanguageModelMessage(Wire):
    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


class LanguageModelTool(Wire):
    """`inputSchema` is JSON Schema."""

    name: str
    description: str
    input_schema: JsonObject


class LanguageModelParams(Wire):
    """The client streams `$/progress {token: partialResultToken, value: Part}` while it answers."""

    model: str
    messages: tuple[LanguageModelMessage, ...]
    tools: tuple[LanguageModelTool, ...] = ()
    partial_result_token: Token | None = None


class LanguageModelResult(Wire):
    """The whole reply, what was streamed included; tokens 0 where the editor does not tell."""

    parts: tuple[Part, ...]
    prompt_tokens: int = 0
    completion_tokens: int = 0


class EditorModel(Wire):
    """A model that the editor lends; `context` in tokens."""

    id: str
    name: str = ""
    vendor: str = ""
    family: str = ""
    context: int = 0
    tools: bool = True
    images: bool = False


class EditorModelsResult(Wire):
    models: tuple[EditorModel, ...]


# ---- server to client: what the editor knows (only where the client offered `editor`)


class EditorDiagnosticsParams(Wire):
    """Absent `uri`: of all files."""

    uri: str | None = None


class EditorDiagnostic(Wire):
    uri: str
    range: Range
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str = ""


class EditorDiagnosticsResult(Wire):
    diagnostics: tuple[EditorDiagnostic, ...]


class EditorPlaceParams(Wire):
    """`position` in the units of the negotiated position encoding, as everywhere on this wire."""

    uri: str
    position: Position


class EditorSaveParams(Wire):
    """Documents that were as on the disk before an edit of ours: commands must see the edit."""

    uris: tuple[str, ...]


class EditorLocation(Wire):
    uri: str
    range: Range


class EditorLocationsResult(Wire):
    locations: tuple[EditorLocation, ...]


# ---- initialize


class ClientOffer(Wire):
    """`initializationOptions.client`: what the client does itself."""

    approvals: bool = False
    language_model: bool = False
    editor: bool = False
    commands: bool = False
    """True: the client registers the commands itself; the server does not announce them a second time."""
    locale: str | None = None


class InitializationOptions(Wire):
    """`settings` has the shape of the TOML file (PROTOCOL 2)."""

    settings: JsonObject | None = None
    client: ClientOffer | None = None
    trusted: bool | None = None
    """False: the workspace is not trusted, its own settings file may loosen nothing. Absent: trusted."""


class ServerOffer(Wire):
    """`capabilities.experimental.daiku` of the initialize answer."""

    version: str
    protocol: int
    methods: tuple[str, ...]
    commands: tuple[str, ...]


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
