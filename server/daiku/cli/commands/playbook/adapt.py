"""`daiku playbook adapt`: what waits is tried on runs on record, with it and without, and kept or refused by a rule."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from daiku.cli.app_setup import folder_of, settings_for, tell_notices
from daiku.cli.ask import keyboard
from daiku.cli.commands.playbook.opening import as_row, print_json
from daiku.cli.display.adaptations import case_lines, plan_lines, result_lines, trial_line
from daiku.cli.display.term import Terminal, human_stream, person_present, terminal
from daiku.cli.interrupts import stop_on_interrupt
from daiku.cli.main import CANCELLED, FAILED, usage, write_output
from daiku.cli.options import place_options
from daiku.core.guard.redact import Redactor
from daiku.core.playbook.gate.budget import bound_of
from daiku.core.playbook.gate.rule import Rule
from daiku.dataclass import dataclass, replace
from daiku.sdk.adapting.report import Adaptation, AdaptationPlan, TrialMade
from daiku.settings import secrets_of
from daiku.settings.config import Config
from daiku.settings.trust import is_trusted
from daiku.texts.terminal import locale_of, say

if TYPE_CHECKING:
    from daiku.sdk.adapting.gate import Gate


@dataclass(frozen=True, slots=True)
class AdaptOptions:
    """What was said on the command line."""

    cases: int
    repeat: int
    max_cost: float | None
    dry_run: bool
    offline: bool
    yes: bool
    folder: str | None
    as_json: bool


@click.command("adapt", help=say("help.playbook.adapt"))
@click.option(
    "--cases",
    type=click.IntRange(1, 1000),
    default=Rule().cases,
    show_default=True,
    metavar="N",
    help=say("help.adapt.cases"),
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=Rule().rounds,
    show_default=True,
    metavar="N",
    help=say("help.adapt.repeat"),
)
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help=say("help.adapt.max_cost"))
@click.option("--dry-run", is_flag=True, help=say("help.adapt.dry_run"))
@click.option("--offline", is_flag=True, help=say("help.adapt.offline"))
@click.option("--yes", "-y", is_flag=True, help=say("help.adapt.yes"))
@place_options
def adapt(**options: Any) -> int:
    from daiku.sdk.adapting.gate import open_gate  # when used

    chosen = AdaptOptions(**options)
    place = folder_of(chosen.folder)
    loaded, home = settings_for(place)
    tell_notices(loaded)
    if why := _why_nothing_is_learnt(loaded.config):
        raise usage(why)
    if not chosen.dry_run and chosen.max_cost is None and not person_present():
        raise usage(say("adapt.nobody"))
    redact = Redactor(secrets_of(loaded.config, os.environ))
    locale = locale_of(os.environ)
    trusted = chosen.dry_run or is_trusted(home, place)  # a dry run only reads
    with open_gate(loaded.config, home, place, redact, trusted=trusted, locale=locale) as gate:
        return asyncio.run(_adapted(chosen, gate))


def _why_nothing_is_learnt(config: Config) -> str:
    if not config.playbook.enabled:
        return say("adapt.disabled")
    return say("adapt.off") if config.playbook.learn == "off" else ""


async def _adapted(chosen: AdaptOptions, gate: Gate) -> int:
    from daiku.sdk.adapting.planning import planned  # when used

    people, rule = human_stream(), Rule(cases=chosen.cases, rounds=chosen.repeat)
    plan = await planned(gate, rule, offline=chosen.offline, dry=chosen.dry_run)
    chosen = replace(chosen, max_cost=bound_of(chosen.max_cost, plan.estimated_cost))
    if chosen.dry_run:
        _show_plan(chosen, plan)
        return 0
    _write(people, *plan_lines(plan, chosen.max_cost, people))
    if (
        plan.trials
        and not chosen.yes
        and person_present()
        and not await keyboard.confirm(people, say("adapt.go_on"))
    ):
        found = Adaptation(plan=plan, ended="declined", max_cost=chosen.max_cost)
    else:
        found = await _until_stopped(chosen, gate, plan, people)
    if chosen.as_json:
        print_json(as_row(found))
    else:
        write_output("".join(line + "\n" for line in result_lines(found, terminal(sys.stdout))))
    if found.ended == "cannot_try":
        return FAILED
    return CANCELLED if found.ended == "interrupted" else 0


def _show_plan(chosen: AdaptOptions, plan: AdaptationPlan) -> None:
    if chosen.as_json:
        print_json(as_row(plan))
        return
    out = terminal(sys.stdout)
    lines = (*plan_lines(plan, chosen.max_cost, out), *case_lines(plan, out))
    write_output("".join(line + "\n" for line in lines))


async def _until_stopped(
    chosen: AdaptOptions, gate: Gate, plan: AdaptationPlan, people: Terminal
) -> Adaptation:
    from daiku.sdk.adapting.trying import adapt as tried  # when used

    stopped = asyncio.Event()

    def tell(made: TrialMade) -> None:
        _write(people, trial_line(made, people))

    restore = stop_on_interrupt(stopped)
    try:
        return await tried(gate, plan, chosen.max_cost, tell, stopped)
    finally:
        restore()


def _write(people: Terminal, *lines: str) -> None:
    for line in lines:
        people.write(line + "\n")
