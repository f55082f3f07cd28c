"""The environment of a command: its locale is one that the machine has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from daiku.tools.shell.environment import build_environment, is_locale


# The test calls the C library of Linux.
@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
@pytest.mark.parametrize("name", ["LANG", "LC_ALL", "LC_CTYPE", "LC_TIME"])
def test_a_locale_that_the_machine_lacks_does_not_reach_a_command(name: str) -> None:
    environ = {"PATH": "/usr/bin:/bin", name: "xx_YY.UTF-8"}
    given = build_environment(environ, (), network=False)
    assert given.get(name) in (None, "C.UTF-8")
    done = subprocess.run(["bash", "-c", "true"], env=given, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_locale_that_is_there_reaches_a_command() -> None:
    assert is_locale("C")
    given = build_environment({"LANG": "C", "LC_ALL": "", "LANGUAGE": "ja"}, (), network=False)
    assert (given["LANG"], given["LC_ALL"], given["LANGUAGE"]) == ("C", "", "ja")
