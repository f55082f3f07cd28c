"""Files that hold nothing are not the running system; everything else of it is."""

from __future__ import annotations

from daiku.guard.rules.commands.judge import judge
from daiku.guard.rules.protected.names import explain_protection
from tests.cases import for_each
from tests.core.commands.test_judge import rules

SINKS = ["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "fd/1", "fd/2"]
THROWN_AWAY = [
    "curl -s -o {} -w '%{{http_code}}' http://127.0.0.1/", "tar cf {} src", "tar -cf{} src", "dd if=a of={}", "cp a {}", "tee {} < a", "make > {}", "make &> {}", "make 2>> {}",
    "wget -O {} http://127.0.0.1/", "ffmpeg -i a -f null {}", "gcc -o {} a.c", "git diff --no-index {} a", "pytest --log-file={}",
]  # fmt: skip
SYSTEM = ["/dev/sda", "/dev/mem", "/dev/nullx", "/dev/null/x/../../sda", "/dev/shm/x", "/dev/input/event0", "/proc/sys/kernel/core_pattern", "/sys/kernel/x", "/proc/self/mem", "/dev/fdx", "/dev/tty1"]  # fmt: skip


@for_each("sink", SINKS)
def test_what_is_written_to_a_sink_is_nobodys_matter(sink: str) -> None:
    assert explain_protection(f"/dev/{sink}") == ""


@for_each("command", THROWN_AWAY)
@for_each("sink", ["/dev/null", "/dev/stdout", "/dev/fd/2"])
@for_each("contained", [True, False])
def test_throwing_output_away_is_no_change_of_the_system_and_not_refused(
    command: str, sink: str, *, contained: bool
) -> None:
    given = judge(command.format(sink), rules(contained=contained))
    assert given.answer != "deny", given.why
    assert not given.protected, given.why


@for_each("place", SYSTEM)
def test_the_running_system_itself_is_a_matter_for_a_person(place: str) -> None:
    assert explain_protection(place)
    for command in (
        f"cp a {place}",
        f"tar cf {place} src",
        f"echo x > {place}",
        f"curl -o {place} http://x.org",
    ):
        given = judge(command, rules())
        assert given.protected or given.answer == "deny", command
