"""Whatever fails between us and GitLab, at whichever call: the end is the same, and nothing is there twice."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daiku.domain.items.forge import PASSING, ForgeRefusal
from daiku.domain.items.item import ForgeIntent, MarkReady, OpenRequest, PostComment, SetState, ShowProgress
from daiku.items.gitlab.source import GitLabSource
from tests.work.gitlab.sources import Clock, key, source_of
from tests.work.gitlab.test_find import issue
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.server import Fault, running
from tests.work.gitlabfake.state import Project

KEY = key("gitlab:group/name#1")
BRANCH = "daiku/1-x"
INTENTS: tuple[ForgeIntent, ...] = (
    SetState(state="processing"),
    ShowProgress(text="- [ ] one"),
    PostComment(text="Which licence?"),
    SetState(state="waiting"),
    SetState(state="processing"),
    ShowProgress(text="- [x] one"),
    OpenRequest(branch=BRANCH, base="main", title="Add it", text="For #1"),
    MarkReady(branch=BRANCH),
    PostComment(text="Done."),
    SetState(state="done"),
)
FAULTS = {
    "500": Fault(500),
    "502": Fault(502),
    "503 with a pause": Fault(503, headers={"Retry-After": "30"}),
    "429": Fault(429, headers={"Retry-After": "60"}),
    "429 without a time": Fault(429),
    "429 with nonsense": Fault(429, headers={"Retry-After": "soon"}),
    "reset": Fault(),
    "applied, then no answer": Fault(applied=True),
    "applied, then 502": Fault(502, applied=True),
    "applied, then 429": Fault(429, applied=True),
    "applied, then nonsense": Fault(200, applied=True),
}


async def carry_out(source: GitLabSource, clock: Clock) -> None:
    """As the worker does: an intent of which nobody knows what became is begun again, and looks first."""
    for number, intent in enumerate(INTENTS):
        for attempt in range(12):
            done = await source.apply(KEY, f"{number}", intent, again=attempt > 0)
            if not isinstance(done, ForgeRefusal):
                break
            assert done.kind in PASSING, done
            clock.now += done.retry_after + 1
        else:
            raise AssertionError(f"{intent} was never done")


def end_of(project: Project) -> object:
    """What people see when it is over."""
    (made,) = project.issues.values()
    return (
        made.row["labels"],
        [note["body"] for note in made.notes],
        [(event["action"], event["label"]["name"]) for event in made.events],
        [(r.row["title"], r.row["description"], r.row["state"]) for r in project.requests.values()],
    )


async def worked(yard: GitLabYard, name: str, fault: Fault | None, at: int, *, reads: bool) -> object:
    """What is there at the end, with `fault` at call number `at` (of all, or of those that change something)."""
    forge, calls = yard.forge, [0]
    forge.state.projects.clear()
    project = yard.project("group/name")
    issue(yard, project)

    def faulty(method: str, _path: str) -> Fault | None:
        calls[0] += reads or method != "GET"
        return fault if calls[0] == at and (reads or method != "GET") else None

    forge.fault = faulty
    clock = Clock()
    async with source_of(yard, clock=clock) as source:
        await carry_out(source, clock)
    assert calls[0] >= at, name
    return end_of(project)


@pytest.mark.parametrize("case", FAULTS)
async def test_a_fault_at_any_changing_call_changes_nothing_in_the_end(
    gitlab_forge: GitLabYard, case: str
) -> None:
    """R2.45: a comment is there once."""
    expected = await worked(gitlab_forge, "none", None, 0, reads=False)
    changes = len(gitlab_forge.forge.calls("changes"))
    assert changes == len(INTENTS)
    for at in range(1, changes + 1):
        assert await worked(gitlab_forge, case, FAULTS[case], at, reads=False) == expected, at


@pytest.mark.slow
@pytest.mark.parametrize("case", FAULTS)
async def test_a_fault_at_any_call_at_all_changes_nothing_in_the_end(
    gitlab_forge: GitLabYard, case: str
) -> None:
    if case.endswith("nonsense") and FAULTS[case].status == 200:
        return  # a read that is answered with nonsense is no trouble that passes
    expected = await worked(gitlab_forge, "none", None, 0, reads=True)
    calls = len(gitlab_forge.forge.heard)
    for at in range(1, calls + 1):
        assert await worked(gitlab_forge, case, FAULTS[case], at, reads=True) == expected, at


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=15)
@given(st.dictionaries(st.integers(1, 60), st.sampled_from(sorted(FAULTS)), max_size=8))
def test_faults_of_many_kinds_one_after_the_other_change_nothing_in_the_end(faults: dict[int, str]) -> None:
    def run(faults: dict[int, str]) -> object:
        with running() as forge:
            yard = GitLabYard(forge, Path())
            project = yard.project("group/name")
            issue(yard, project)
            calls = count(1)

            def faulty(method: str, _path: str) -> Fault | None:
                fault = FAULTS.get(faults.get(next(calls), ""))
                return Fault(502) if fault and fault.status == 200 and method == "GET" else fault

            forge.fault = faulty

            async def all_of_it() -> None:
                clock = Clock()
                async with source_of(yard, clock=clock) as source:
                    await carry_out(source, clock)

            asyncio.run(all_of_it())
            return end_of(project)

    assert run(faults) == run({})


async def test_a_token_that_is_sent_back_is_not_told(gitlab_forge: GitLabYard) -> None:
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    gitlab_forge.forge.fault = lambda _method, _path: Fault(400, says="PRIVATE-TOKEN: glpat-bot")
    async with source_of(gitlab_forge) as source:
        refusal = await source.find()
    assert isinstance(refusal, ForgeRefusal)
    assert ("PRIVATE-TOKEN" in refusal.message, "glpat" in refusal.message) == (True, False)


async def test_reads_are_tried_again_three_times_and_changes_never(gitlab_forge: GitLabYard) -> None:
    """R2.74: what passes by itself."""
    issue(gitlab_forge, gitlab_forge.project("group/name"))
    clock = Clock()
    gitlab_forge.forge.fault = lambda _method, _path: Fault(502)
    async with source_of(gitlab_forge, clock=clock) as source:
        assert isinstance(await source.find(), ForgeRefusal)
    assert (len(gitlab_forge.forge.heard), clock.slept) == (4, [0.5, 1.0, 2.0])
