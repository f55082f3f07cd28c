"""Work on labelled items, for fronts: the sources that the settings name, a worker, and one attempt at an item."""

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
from daiku.items.kept.asking import Keeping, keep_before_steps
from daiku.items.parts import WorkerParts
from daiku.items.record import Claim, ItemRecord
from daiku.items.rules.hidden import strip_hidden
from daiku.items.source import ItemSource
from daiku.items.workers.alive import own_worker, release_worker
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
from daiku.tools.shell.process import reaper_argv
from daiku.trace.stores import open_stores
from daiku.workspace.disk import DiskWorkspace
from daiku.workspace.repository import may_be_repository

logger = logging.getLogger(__name__)
TOKENS = (
    *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"),
    *("GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN", "GITLAB_ACCESS_TOKEN", "CI_JOB_TOKEN", "CI_REGISTRY_PASSWORD"),
    *("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
)
"""Variables that may hold a token of a forge: an attempt gets none of them."""
LONGEST = 14 * 86_400.0
"""Seconds that one attempt may take in all."""
LONGEST_ERROR = 4_000
"""Characters of what an attempt wrote to stderr that the log keeps."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is worked: `folder` is where the settings were read, `items` the folder of Markdown items (None: none),
    `only` the one source that is worked (None: all that the settings name). `tell` hears of every item that changed,
    `warn` of what the worker itself met; `language` is that of comments; `redact` takes secrets out of
    what is written down, those too that are made while it works."""

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


def sources_of(work: Work) -> Mapping[SourceName, ItemSource]:
    """The sources that are worked: the one that is named, else those of the settings. Raises UsageError."""
    config = work.config
    if work.only == "files" or (work.only is None and work.items is not None):
        if work.items is None:
            raise _usage(text("worker.needs_dir"))
        if not may_be_repository(work.folder):
            raise _usage(text("worker.no_repository", folder=str(work.folder)))
        labels, language = config.work.labels, work.language
        return {"files": FolderSource(work.items, work.folder, labels, strip_hidden, language)}
    found: dict[SourceName, ItemSource] = {}
    if config.github.repositories and work.only in (None, "github"):
        found["github"] = _github(work)
    if config.gitlab.projects and work.only in (None, "gitlab"):
        found["gitlab"] = _gitlab(work)
    if not found:
        raise _usage(text("worker.no_source"))
    return found


def _github(work: Work) -> ItemSource:
    settings = work.config.github
    _check_names("github", "github.repositories", settings.repositories, "owner/name")
    name = settings.app_key_env if settings.app_id else settings.token_env
    if not work.environ.get(name, "").strip():
        raise _usage(text("worker.needs_token", name=name, forge="GitHub"))
    from daiku.items.github.source import GitHubSource  # when used

    labels, cache = work.config.work.labels, work.home / "github-labels.json"
    return GitHubSource(settings, labels, work.environ, work.redact.learn, strip_hidden, cache=cache)


def _gitlab(work: Work) -> ItemSource:
    settings = work.config.gitlab
    _check_names("gitlab", "gitlab.projects", settings.projects, "group/name")
    token = work.environ.get(settings.token_env, "").strip()
    if not token:
        raise _usage(text("worker.needs_token", name=settings.token_env, forge="GitLab"))
    from daiku.items.gitlab.source import GitLabSource  # when used

    return GitLabSource(settings, SecretStr(token), work.config.work.labels, strip=strip_hidden)


def _check_names(source: SourceName, setting: str, names: tuple[str, ...], example: str) -> None:
    """Raises UsageError for the first that can name no repository: it would be looked through by nobody."""
    for name in names:
        if read_key(f"{source}:{name}#1") is None:
            raise _usage(text("worker.no_name", setting=setting, name=name, example=example))


async def work_items(
    work: Work, sources: Mapping[SourceName, ItemSource], stopping: Event, *, once: bool
) -> bool:
    """Work the items of the sources until none is left (`once`) or `stopping` is set. Return True if each is done or
    waits for a person. Raises UsageError, DaikuError."""
    stores = open_stores(work.config.storage.place(work.home), work.redact)
    items = ItemStore(stores.database, redact=work.redact)
    intents = IntentStore(stores.database, items, work.redact)
    name, lock = own_worker(work.home)
    parts = WorkerParts(
        config=work.config,
        home=work.home,
        items=items,
        intents=intents,
        sources=sources,
        start=partial(_start, _without_tokens(work), work.folder),
        tell=work.tell,
        name=name,
        evidence=partial(evidence_of_session, stores.journal),
        allowed=partial(allowed_paths, stores.journal),
        ready=partial(_has_model, work.config),
        warn=work.warn,
        contexts=ContextFiles(work.home, items, intents, stores.journal),
        language=work.language,
        concurrency=work.concurrency,
        stopping=stopping,
    )
    worker = Worker(parts)
    try:
        if once:
            return await worker.once()
        await worker.keep_on()
        return True
    finally:
        for each in sources.values():
            await each.aclose()
        release_worker(work.home, name, lock)
        stores.close()


def _has_model(config: Config) -> None:
    """Raises UsageError where there is no model to work with: no item is the worse for it."""
    try:
        Models(config.llm).choose()
    except DaikuError as wrong:
        raise UsageError(wrong.failure.model_copy(update={"kind": "usage"})) from wrong


def _without_tokens(work: Work) -> Mapping[str, str]:
    """What an attempt's process is given of the environment: all but the tokens of forges."""
    forges = work.config.github, work.config.gitlab
    left_out = {*TOKENS, work.config.github.app_key_env, *(each.token_env for each in forges)}
    return {name: value for name, value in work.environ.items() if name not in left_out}


async def _start(environ: Mapping[str, str], where: Path, claim: Claim, place: Path) -> RunResult | None:
    """Run the attempt in a process of its own, which ends when this one does."""
    # -P: where it is started may be a repository of strangers, whose modules are none of ours.
    argv = [sys.executable, "-P", "-m", "daiku", "worker", "--attempt", claim.item]
    argv += ["--fence", str(claim.fence), "--place", str(place), "-C", str(where)]
    done = await run_program(reaper_argv(argv), where, environ, None, MAX_LIST_BYTES, seconds=LONGEST)
    try:
        return RunResult.model_validate_json(done.text.strip().rpartition("\n")[2])
    except ValidationError:
        said = done.errors.strip()[-LONGEST_ERROR:]
        logger.warning("%s: the attempt ended with %d. %s %s", claim.item, done.code, done.failure, said)
        return None


async def attempt_item(
    config: Config, home: Path, folder: Path, claim: Claim, place: Path, language: str
) -> RunResult:
    """Work one item in its tree, in this process, with the permissions of `folder`. Raises DaikuError."""
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
            keep_before_steps(app.registry, Keeping(intents, claim, _in_vain(app, record, claim)))
        changes = partial(_changes_of, home / "mirrors", place)
        attempt = Attempt(app.runs, items, intents, claim, config, language, changes)
        working = asyncio.create_task(attempt.work())
        contexts = ContextFiles(home, items, intents, app.journal)
        return await contexts.mirror_until_done(claim.item, working, lambda: attempt.model_prompt)
    finally:
        await app.aclose()


async def _changes_of(mirrors: Path, place: Path, base: str) -> TreeChanges | None:
    """Return what the tree at `place` has changed since `base`; None, which is logged, if git cannot tell."""
    changes = await diff_work_tree(mirrors, place, base)
    if isinstance(changes, GitRefusal):
        logger.warning("%s", changes.message)
        return None
    return changes


def _in_vain(app: App, record: ItemRecord, claim: Claim) -> frozenset[str]:
    """The calls that were under way on a machine whose work tree is lost."""
    if record.facts.lost != claim.fence:
        return frozenset()
    return open_calls(app.journal, record.shown.session_id)


def _usage(message: Text) -> UsageError:
    return UsageError(Failure(kind="usage", message=message))
