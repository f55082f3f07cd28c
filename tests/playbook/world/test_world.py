"""The simulated world in short: that it is drawn, real and blind, and that who learns in it does better than who does not."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cases import for_each
from tests.playbook.world.__main__ import main
from tests.playbook.world.actor import Actor
from tests.playbook.world.arms import ARMS, ROWS
from tests.playbook.world.attempts import Attempt, Task
from tests.playbook.world.course import COURSES, Course, passed_in, wrong_texts
from tests.playbook.world.curves import drawing
from tests.playbook.world.drawn import HALF_WAY, TRIES, drawn
from tests.playbook.world.reading import read
from tests.playbook.world.report import Results, bounds, share
from tests.playbook.world.repository import Repository

SEED = 1000
"""Worlds from 1000 on are for whoever works on this; those of the report are 0 to 19."""


class Says(NamedTuple):
    """An arm that gives the same advice to every task."""

    texts: tuple[str, ...]
    name: str = "says"

    def advice(self, task: Task) -> tuple[str, ...]:
        return self.texts

    def learn(self, attempt: Attempt) -> None:
        pass


def test_of_the_commands_that_seem_likely_one_passes_and_no_output_names_it(tmp_path: Path) -> None:
    """Whatever is tried, nothing but a right command says what is right; after the change another one passes."""
    world = drawn(SEED)
    repository = Repository(tmp_path / "repository", world)
    for later in (False, True):
        right = {each.name: each.later if later else each.right for each in world.conventions}
        repository.lay_out(right)
        for convention in (each for each in world.conventions if each.kind == "command"):
            ended = {command: repository.really_run(command) for command in convention.likely}
            assert [command for command, each in ended.items() if each.code == 0] == [right[convention.name]]
            for command, each in ended.items():
                assert right[convention.name] not in each.output.replace(command, "")
                assert repository.run(command) == repository.run(command) == each


def test_a_world_is_its_seed() -> None:
    assert drawn(SEED) == drawn(SEED)
    one, other = ({each.right for each in drawn(seed).conventions} for seed in (SEED, SEED + 1))
    assert one.isdisjoint(other)


def test_what_is_tried_does_not_depend_on_what_is_right(tmp_path: Path) -> None:
    world = drawn(SEED)
    repository = Repository(tmp_path / "repository", world)
    actor = Actor(repository)
    task, convention = next(each for each in world.tasks if each[1].kind == "command")
    tried = [each.action for each in actor.work(task, convention, convention.right, ())]
    for right in convention.likely:
        repository.lay_out({each.name: each.right for each in world.conventions} | {convention.name: right})
        again = [each.action for each in actor.work(task, convention, right, ())]
        assert again == (tried if right not in again else again)
        assert all(a == b for a, b in zip(again, tried, strict=False))


READINGS = [
    ("Run the {what} by `{right}`.", True),
    ("[ab-00001] For {what} use `{wrong}`; `{right}` fails here.", False),
    ("For {what}: {right}", True),
    ("Never run `{right}` for {what}.", False),
    ("Use `{right}`.", False),
    ("Run the {what} by `{right}; rm -rf /`.", False),
]


@for_each(("text", "follows"), READINGS)
def test_the_actor_reads_advice_as_people_do(text: str, follows: bool) -> None:
    convention = next(
        each for each in drawn(SEED).conventions if each.kind == "command" and len(each.about) == 2
    )
    purpose, area = (min(group) for group in convention.about)
    wrong = next(each for each in convention.likely if each != convention.right)
    found = read(text.format(what=f"{purpose} of {area}", right=convention.right, wrong=wrong), convention)
    # A command names its purpose and its part itself: then no other word has to.
    named = found is not None and convention.right in found.wanted
    assert named is follows or (text == "Use `{right}`." and named)


def test_with_right_advice_every_task_is_passed_and_with_wrong_advice_fewer(tmp_path: Path) -> None:
    """The world can be mastered by what its prompt says, and by nothing else."""
    world = drawn(SEED, 36)
    right = tuple(
        f"{' '.join(min(group) for group in each.about)}: `{each.right}`" for each in world.conventions
    )
    assert passed_in(world, Says(right), Course(), tmp_path / "right") == "1" * 36
    nothing = passed_in(world, Says(()), Course(), tmp_path / "nothing")
    misled = passed_in(world, Says(wrong_texts(world, 60)), Course(), tmp_path / "misled")
    assert misled.count("1") < nothing.count("1") < 18


@pytest.mark.slow
def test_learning_lifts_the_share_of_passed_tasks(tmp_path: Path) -> None:
    """Point 2 of issue 12 in short. Without learning, or with a reflector that is off, nothing changes."""
    assert main(["--seeds", "1000-1002", "--tasks", "96", "--rows", "off;on;without reflector", "--out", str(tmp_path / "r.json")]) == 0  # fmt: skip
    rows = Results.model_validate_json((tmp_path / "r.json").read_text()).rows
    off, on = share(rows["off"], 60, 96).middle, share(rows["on"], 60, 96).middle
    assert off <= 45
    assert on >= off + 30
    assert rows["without reflector"] == rows["off"]
    assert rows["on"][0][:8] == rows["off"][0][:8]


@pytest.mark.slow
def test_wrong_bullets_are_put_to_rest_by_the_counters(tmp_path: Path) -> None:
    """Half way twenty wrong texts come; with counters they do no lasting harm."""
    shares: list[float] = []
    for name in ("on", "without counters"):
        world, arm = drawn(SEED, 132), ARMS[name](SEED)
        passed = passed_in(world, arm, COURSES["wrong"], tmp_path / name, half_way=84)
        shares.append(share((passed,), 96, 132).middle)
    assert shares[0] >= shares[1] + 10


def test_a_missed_bound_is_told_and_fails_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report can fail: rows in which nothing is learnt, or everything is forgotten, miss their bounds."""
    passed = "0110100100" * 20
    results = Results(
        seeds=(1, 2), tasks=200, rows=dict.fromkeys(("off", "on", "on, flipped"), (passed, passed))
    )
    assert [each.kept for each in bounds(results)] == [True, False, False, True]
    forgot = ("1" * HALF_WAY + passed[HALF_WAY:],) * 2
    worse = results.with_row("on, wrong", forgot).with_row("on, changed", forgot).with_row("off", forgot)
    assert [each.kept for each in bounds(worse)] == [False, False, False, False, False, False]
    (tmp_path / "r.json").write_text(worse.model_dump_json())
    assert main(["--seeds", "1-2", "--draw", "--out", str(tmp_path / "r.json")]) == 1
    assert "**MISSED**: on: from at most 40 %" in capsys.readouterr().out
    assert drawing(worse).count("<path") > 20


def test_the_rows_name_arms_and_courses_that_there_are() -> None:
    assert {row.arm for row in ROWS} <= ARMS.keys()
    assert {row.course for row in ROWS} <= COURSES.keys()
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert TRIES / 8 <= 0.4
