"""Work on labeled items, for fronts: the configured sources, a worker, and one attempt at an item."""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio import Event
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import SecretStr, ValidationError

from daiku.app import App, AppParts, build
from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.items.item import SourceName, WorkItem, read_key
from daiku.domain.runs import RunResult
from daiku.guard.rules.redact import Redactor
from daiku.items.attempt import Attempt
from daiku.items.contexts.files import ContextFiles
from daiku.items.files.source import FolderSource
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.kept.pushing import TreeKeeper, keep_before_steps
from daiku.items.parts import WorkerParts
from daiku.items.record import Claim, ItemRecord
from daiku.items.rules.harmless import strip_hidden
from daiku.items.source import ItemSource
from daiku.items.workers.alive import register_worker, release_worker
from daiku.items.workers.worker import Worker
from daiku.models.model import Models
from daiku.models.retries.policy import RetryPolicy
from daiku.run.recorded.history import allowed_paths, evidence_of_session, open_calls
from daiku.settings.config import Config
from daiku.team.rules.proof.tree_changes import TreeChanges
from daiku.texts.text import Text, text
from daiku.tools.git.itemtree import diff_work_tree
from daiku.tools.git.ownrun import GitRefusal
from daiku.tools.shell.capture import MAX_LIST_BYTES, run_program
from daiku.tools.shell.process import wrap_in_reaper
from daiku.trace.stores import open_stores
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.repository import may_be_repository

logger = logging.getLogger(__name__)
TOKENS = (
    *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"),
    *("GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN", "GITLAB_ACCESS_TOKEN", "CI_JOB_TOKEN", "CI_REGISTRY_PASSWORD"),
    *("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
)
"""Environment variables that may hold a forge's token, which attempts do not get."""
LONGEST = 14 * 86_400.0
"""Maximum seconds of one attempt."""
LONGEST_ERROR = 4_000
"""Maximum characters of an attempt's stderr that are logged."""


@dataclass(frozen=True, slots=True)
class Work:
    """The configuration of a worker.

    `folder`: where the settings were read. `items`: the folder of Markdown items (None: none). `only`: the
    one source to use (None: all in the settings). `tell` is called with every changed item, `warn` with the
    worker's own problems. `language`: that of comments. `redact` removes secrets from everything that is
    written, including new ones.
    """

    config: Config
    home: Path
    folder: Path
    environ: Mapping[str, str]
    tell: Callable[[WorkItem], None]
    redact: Redactor
    warn: Callable[[Text], object] = bool
    only: SourceName | None = None
    items: Path | None = None
    concurrency: int = 1
    language: str = "en"


def create_sources(work: Work) -> Mapping[SourceName, ItemSource]:
    """Return the sources to use: the one in `only`, else those of the settings. Raises UsageError."""
    config = work.config
    if work.only == "files" or (work.only is None and work.items is not None):
        if work.items is None:
            raise _build_usage_error(text("worker.needs_dir"))
        if not may_be_repository(work.folder):
            raise _build_usage_error(text("worker.no_repository", folder=str(work.folder)))
        labels, language = config.work.labels, work.language
        return {"files": FolderSource(work.items, work.folder, labels, strip_hidden, language)}
    sources: dict[SourceName, ItemSource] = {}
    if config.github.repositories and work.only in (None, "github"):
        sources["github"] = _create_github(work)
    if config.gitlab.projects and work.only in (None, "gitlab"):
        sources["gitlab"] = _create_gitlab(work)
    if not sources:
        raise _build_usage_error(text("worker.no_source"))
    return sources


def _create_github(work: Work) -> ItemSource:
    settings = work.config.github
    _check_names("github", "github.repositories", settings.repositories, "owner/name")
    name = settings.app_key_env if settings.app_id else settings.token_env
    if not work.environ.get(name, "").strip():
        raise _build_usage_error(text("worker.needs_token", name=name, forge="GitHub"))
    from daiku.items.github.source import GitHubSource  # when used

    labels, cache = work.config.work.labels, work.home / "github-labels.json"
    return GitHubSource(settings, labels, work.environ, work.redact.learn, strip_hidden, cache=cache)


def _create_gitlab(work: Work) -> ItemSource:
    settings = work.config.gitlab
    _check_names("gitlab", "gitlab.projects", settings.projects, "group/name")
    token = work.environ.get(settings.token_env, "").strip()
    if not token:
        raise _build_usage_error(text("worker.needs_token", name=settings.token_env, forge="GitLab"))
    from daiku.items.gitlab.source import GitLabSource  # when used

    return GitLabSource(settings, SecretStr(token), work.config.work.labels, strip=strip_hidden)


def _check_names(source: SourceName, setting: str, names: tuple[str, ...], example: str) -> None:
    """Raise UsageError for the first name that cannot be a repository."""
    for name in names:
        if read_key(f"{source}:{name}#1") is None:
            raise _build_usage_error(text("worker.no_name", setting=setting, name=name, example=example))


async def process_items(
    work: Work, sources: Mapping[SourceName, ItemSource], stopping: Event, *, once: bool
) -> bool:
    """Process the items of the sources until none is left (`once`) or `stopping` is set.

    Return True if each is done or waits for a person. Raises UsageError, DaikuError.
    """
    stores = open_stores(work.config.storage.place(work.home), work.redact)
    items = ItemStore(stores.database, redact=work.redact)
    intents = IntentStore(stores.database, items, work.redact)
    name, lock = register_worker(work.home)
    parts = WorkerParts(
        config=work.config,
        home=work.home,
        items=items,
        intents=intents,
        sources=sources,
        start=partial(_start, _remove_tokens(work), work.folder),
        tell=work.tell,
        name=name,
        evidence=partial(evidence_of_session, stores.journal),
        allowed=partial(allowed_paths, stores.journal),
        ready=partial(_require_model, work.config),
        warn=work.warn,
        contexts=ContextFiles(work.home, items, intents, stores.journal),
        language=work.language,
        concurrency=work.concurrency,
        stopping=stopping,
    )
    worker = Worker(parts)
    try:
        if once:
            return await worker.run_once()
        await worker.run()
        return True
    finally:
        for source in sources.values():
            await source.aclose()
        release_worker(work.home, name, lock)
        stores.close()


def _require_model(config: Config) -> None:
    """Raise UsageError if no model is configured, before an item is claimed."""
    try:
        Models(config.llm).choose()
    except DaikuError as error:
        raise UsageError(error.failure.model_copy(update={"kind": "usage"})) from error


def _remove_tokens(work: Work) -> Mapping[str, str]:
    """Return the environment of an attempt's process, without tokens of forges."""
    forges = work.config.github, work.config.gitlab
    left_out = {*TOKENS, work.config.github.app_key_env, *(forge.token_env for forge in forges)}
    return {name: value for name, value in work.environ.items() if name not in left_out}


async def _start(environ: Mapping[str, str], where: Path, claim: Claim, place: Path) -> RunResult | None:
    """Run the attempt in a child process, which ends when this one does."""
    # -P: the current folder may be a stranger's repository, whose modules must not be imported.
    argv = [sys.executable, "-P", "-m", "daiku", "worker", "--attempt", claim.item]
    argv += ["--fence", str(claim.fence), "--place", str(place), "-C", str(where)]
    result = await run_program(wrap_in_reaper(argv), where, environ, None, MAX_LIST_BYTES, seconds=LONGEST)
    try:
        return RunResult.model_validate_json(result.text.strip().rpartition("\n")[2])
    except ValidationError:
        errors = result.errors.strip()[-LONGEST_ERROR:]
        logger.warning(
            "%s: the attempt ended with %d. %s %s", claim.item, result.code, result.failure, errors
        )
        return None


async def attempt_item(
    config: Config, home: Path, folder: Path, claim: Claim, place: Path, language: str
) -> RunResult:
    """Process one item in its tree, in this process, with the permissions of `folder`. Raises DaikuError."""
    app = build(
        config,
        workspace=DiskWorkspace((place,)),
        home=home,
        own=False,
        locale=language,
        parts=AppParts(allowed_in=DiskWorkspace((folder,)).roots),
    )
    app.llm.policy = RetryPolicy(format_retries=config.work.parse_retries, strict=True)
    try:
        assert app.stores is not None, "an App that is built here has stores of its own"
        items = ItemStore(app.stores.database)
        intents = IntentStore(app.stores.database, items)
        record = items.record(claim.item)
        if record is not None and record.key.source != "files":  # a folder of this machine is lost with it
            keep_before_steps(app.registry, TreeKeeper(intents, claim, _list_lost_calls(app, record, claim)))
        changes = partial(_read_changes, home / "mirrors", place)
        attempt = Attempt(app.runs, items, intents, claim, config, language, changes)
        working = asyncio.create_task(attempt.work())
        contexts = ContextFiles(home, items, intents, app.journal)
        return await contexts.mirror_until_done(claim.item, working, lambda: attempt.model_prompt)
    finally:
        await app.aclose()


async def _read_changes(mirrors: Path, place: Path, base: str) -> TreeChanges | None:
    """Return the changes of the tree at `place` since `base`; None, which is logged, if git fails."""
    changes = await diff_work_tree(mirrors, place, base)
    if isinstance(changes, GitRefusal):
        logger.warning("%s", changes.message)
        return None
    return changes


def _list_lost_calls(app: App, record: ItemRecord, claim: Claim) -> frozenset[str]:
    """Return the ids of calls that were running on a machine whose work tree is lost."""
    if record.facts.lost != claim.fence:
        return frozenset()
    return open_calls(app.journal, record.shown.session_id)


def _build_usage_error(message: Text) -> UsageError:
    return UsageError(Failure(kind="usage", message=message))
