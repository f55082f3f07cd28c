"""What a worker is shipped with: an image, a composition of services, units of systemd, a line for cron."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tests.conftest import ROOT
from tests.ship.dockerfile import Build, command_of, is_ignored, stages
from tests.ship.yamltext import read_yaml

SHIP = ROOT / "server" / "ship"


def composition() -> Any:
    return read_yaml((SHIP / "compose.yaml").read_text("utf-8"))


def test_the_worker_installs_only_locked_packages_with_hashes() -> None:
    said = subprocess.run(
        [sys.executable, str(SHIP / "locked.py")], capture_output=True, text=True, check=True
    ).stdout
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", said, re.MULTILINE))
    assert {"httpx2", "pyjwt", "psycopg", "psycopg-binary", "pydantic"} <= set(pins)
    assert not {"pytest", "ruff", "locust", "hypothesis"} & set(pins)
    base = (ROOT / "server" / "requirements.txt").read_text("utf-8")
    assert {name for name, _ in re.findall(r"^([\w.-]+)==(\S+)", base, re.MULTILINE)} <= set(pins)
    blocks = re.split(r"\n(?=[A-Za-z0-9])", said.strip())
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_image_has_no_root_a_health_check_and_what_items_need() -> None:
    """R2.6, R2.7"""
    told = (SHIP / "Dockerfile").read_text("utf-8")
    assert re.findall(r"^FROM (\S+)", told, re.MULTILINE) == ["python:3.13-slim-trixie"] * 2
    for line in ("USER daiku", "STOPSIGNAL SIGTERM", 'CMD ["daiku", "worker"]', "HEALTHCHECK "):
        assert line in told
    assert {"git", "bubblewrap"} <= set(told.split())
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", told, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())


def test_the_services_have_no_secret_of_their_own_and_time_to_stop() -> None:
    told = composition()
    worker, database = told["services"]["worker"], told["services"]["database"]
    assert worker["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["image"] == "postgres:17"
    assert "pg_isready" in database["healthcheck"]["test"][1]
    assert worker["stop_grace_period"] == "30s"
    assert (SHIP / worker["build"]["context"]).resolve() == ROOT
    assert "${POSTGRES_PASSWORD:?" in worker["environment"]["DAIKU_STORAGE__DATABASE_URL"]
    assert "${POSTGRES_PASSWORD:?" in database["environment"]["POSTGRES_PASSWORD"]
    assert "server/ship/*.env" in (ROOT / ".gitignore").read_text("utf-8").split()
    named = {mount.split(":")[0] for each in (worker, database) for mount in each["volumes"]}
    assert named == set(told["volumes"])


def test_what_is_not_of_the_small_part_of_yaml_is_refused() -> None:
    assert read_yaml('a:\n  b: ["x"]\n  c:\n    - d:1\nn: 7\n') == {"a": {"b": ["x"], "c": ["d:1"]}, "n": 7}
    for text in (
        "a: yes\n",
        "a: b c\n",
        "a: *x\n",
        "a: 'b'\n",
        "a: |\n  b\n",
        "a: 1\na: 2\n",
        "a: 1\n - b\n",
    ):
        with pytest.raises(ValueError, match=r"not understood|a list and"):
            read_yaml(text)


def test_files_with_tokens_are_kept_from_the_image() -> None:
    for name in ("server/ship/worker.env", "server/ship/.env", ".git/config", "tests/conftest.py"):
        assert is_ignored(ROOT, name)
    assert not is_ignored(ROOT, "server/daiku/__main__.py")


Seconds = Annotated[str, StringConstraints(pattern=r"^\d+s$")]
Words = Annotated[list[str], Field(min_length=1)]


class Shape(BaseModel):
    """A part of a composition with the keys of its specification that ours uses, and no other."""

    model_config = ConfigDict(extra="forbid", strict=True)


class BuildShape(Shape):
    context: str
    dockerfile: str


class HealthShape(Shape):
    test: Words
    interval: Seconds
    timeout: Seconds
    retries: int


class DependencyShape(Shape):
    condition: str = Field(pattern="^service_(started|healthy|completed_successfully)$")


class ServiceShape(Shape):
    build: BuildShape | None = None
    image: str | None = None
    restart: str = Field(pattern="^(no|always|unless-stopped|on-failure(:[0-9]+)?)$")
    init: bool = False
    read_only: bool = False
    tmpfs: list[str] = []
    env_file: list[str] = []
    environment: dict[str, str]
    volumes: list[str]
    depends_on: dict[str, DependencyShape] = {}
    healthcheck: HealthShape | None = None
    stop_grace_period: Seconds
    security_opt: list[str] = []
    cap_drop: list[str] = []


class ComposeShape(Shape):
    name: str = Field(pattern="^[a-z0-9][a-z0-9_-]*$")
    services: dict[str, ServiceShape]
    volumes: dict[str, None]


def test_the_composition_has_only_keys_and_values_that_compose_knows() -> None:
    told = ComposeShape.model_validate(composition())
    assert all((each.build is None) != (each.image is None) for each in told.services.values())


def test_the_composition_is_valid_by_the_schema_of_compose() -> None:
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(composition(), json.loads(schema.read_text("utf-8")))


@pytest.mark.slow(seconds=15)  # environments are made, a wheel is built
def test_the_steps_of_the_image_make_a_daiku_that_runs(tmp_path: Path) -> None:
    """R2.7: what the Dockerfile says, carried out without Docker; what it copies is all that is needed."""
    build, worker = stages((SHIP / "Dockerfile").read_text("utf-8"))
    image = Build(tmp_path / "image", ROOT)
    image.root.mkdir()
    image.run(build)
    for step in worker:
        if step.word == "RUN":
            subprocess.run(["sh", "-n", "-c", step.rest], check=True)
    environ = {"PATH": os.pathsep.join([str(image.at("/opt/daiku/bin")), os.defpath])}
    environ |= {"DAIKU_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def started(*command: str) -> tuple[int, str]:
        program = shutil.which(command[0], path=environ["PATH"])
        assert program is not None
        assert Path(program).is_relative_to(image.root)
        argv = [program, *command[1:]]
        done = subprocess.run(
            argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stderr

    code, said = started(*command_of(worker, "CMD"))
    assert code == 2, said  # no source is set up
    assert "--source files" in said
    code, said = started(*command_of(worker, "HEALTHCHECK"))
    assert code == 1, said  # no worker runs
    python = image.at("/opt/daiku/bin/python")
    where = "import daiku, psycopg; print(daiku.__file__)"
    found = subprocess.run([python, "-c", where], env=environ, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(image.root)


def test_systemd_starts_one_round() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of settings have capitals
    unit.read(SHIP / "daiku-worker.service")
    assert unit["Service"]["ExecStart"].endswith("daiku worker --once")
    assert unit["Service"]["Type"] == "oneshot"
    unit.read(SHIP / "daiku-worker.timer")
    assert unit["Install"]["WantedBy"] == "timers.target"


def cron_line() -> tuple[list[str], str]:
    """When the line for cron is due, and what it runs."""
    lines = (SHIP / "crontab.example").read_text("utf-8").splitlines()
    (line,) = [line for line in lines if line[:1] not in ("#", "")]
    *when, command = line.split(maxsplit=5)
    return when, command


def test_the_line_for_cron_says_when_and_is_a_line_of_sh() -> None:
    when, command = cron_line()
    for field, most in zip(when, (59, 23, 31, 12, 7), strict=True):
        for each in field.split(","):
            said = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", each)
            assert said is not None, each
            assert all(int(number) <= most for number in said.groups() if number)
    assert "%" not in command  # which cron takes for the end of the line
    subprocess.run(["sh", "-n", "-c", command], check=True)


def test_the_line_for_cron_starts_one_round_with_the_tokens_of_its_file(tmp_path: Path) -> None:
    program, tokens = tmp_path / ".local/bin/daiku", tmp_path / ".config/daiku/worker.env"
    for path in (program, tokens):
        path.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$*" "$GITLAB_TOKEN"\n', "utf-8")
    program.chmod(0o700)
    tokens.write_text("GITLAB_TOKEN=of-the-file\n", "utf-8")
    environ = {"HOME": str(tmp_path), "PATH": os.defpath}
    done = subprocess.run(
        ["sh", "-c", cron_line()[1]], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "worker --once of-the-file\n"


# Only machines with systemd have the program that checks its units.
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    for name in ("daiku-worker.service", "daiku-worker.timer"):
        told = (SHIP / name).read_text("utf-8")
        (tmp_path / name).write_text(told.replace("/opt/daiku/bin/daiku", "/bin/true"), "utf-8")
    units = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
