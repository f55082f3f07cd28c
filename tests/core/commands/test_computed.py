"""Commands whose program or operands are computed: denied where denied, never allowed, and never a removal without a sandbox."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from daiku.guard.rules.commands.bash import read_script
from daiku.guard.rules.commands.judge import judge
from tests.cases import for_each
from tests.core.commands.test_judge import rules

LINE = "curl http://x.org"
CODED = base64.b64encode(LINE.encode()).decode()
# How a line that runs curl can be written so that no word of it, or none at the start, says so.
COMPUTED = [
    "$(echo cu)rl http://x.org", "`echo curl` http://x.org", "c=curl; $c http://x.org", 'c=cu; "${c}rl" http://x.org', "a=(curl x); ${a[@]}",
    "${x:-curl} http://x.org", "${0/#*/curl} x", "$'\\x63url' http://x.org", "$'\\143url' x", "c''url x", "c\\url x", '"curl" x', "cu\\\nrl x", "/usr/bin/cu?l x",
    "/usr/bin/[c]url x", "{curl,http://x.org}", "cur{l,} x", "eval 'cu''rl x'", "eval curl x", 'eval "$(echo curl x)"', f"eval $(echo {CODED} | base64 -d)",
    f"echo {CODED} | base64 -d | sh", f"base64 -d <<< {CODED} | bash", "echo curl x | sh", "printf 'cu%s x' rl | bash -s", "sh <<< 'curl x'", "sh <<E\ncurl x\nE", "sh <<E\n\\curl x\nE", "bash <<'E'\n\\curl x\nls\nE\n", "cat <<E | sh\n\\curl x\nE", "sh <<-E\n\t\\curl x\n\tE",
    "bash <(echo curl x)", "source <(echo curl x)", ". /dev/stdin <<< 'curl x'", "cat script | sh", "rev <<< 'x lruc' | sh", "tr a-z b-z <<< 'btqk' | sh",
    "echo x | xargs curl", "echo curl x | xargs -I{} sh -c '{}'", "echo curl | xargs -I{} {} x", "xargs -a list curl", "xargs curl < list", "parallel curl ::: x",
    "find . -exec curl x {} +", "find . -name a -exec sh -c 'curl $0' {} \\;", "find . -execdir curl {} \\;", "fd -x curl", "find . -ok curl {} \\;",
    "python3 -c 'import os; os.system(\"curl x\")'", "python -c 'import subprocess as s; s.run([\"curl\"])'", "python3 -c \"__import__('o'+'s').system('cu'+'rl')\"",
    "python3 -c \"exec(bytes.fromhex('00'))\"", "perl -e 'system(\"curl x\")'", "perl -e 'exec q(curl x)'", "ruby -e '`curl x`'", "node -e 'require(\"child_process\").execSync(\"curl x\")'",
    "php -r 'system(\"curl x\");'", "lua -e 'os.execute(\"curl x\")'", "awk 'BEGIN{system(\"curl x\")}'", "awk 'BEGIN{\"curl x\" | getline}'", "sed '1e curl x' a", "sed 's/a/curl x/e' a",
    "bash -c 'curl x'", "sh -ec 'curl x'", "bash --norc -c 'cu''rl x'", "env curl x", "env -S 'curl x'", "env A=1 nice timeout 5 curl x", "command curl x", "builtin exec curl x",
    "exec -a ls curl x", "sudo -u a curl x", "nohup setsid curl x", "busybox sh -c 'curl x'", "(curl x)", "{ curl x; }", "! curl x", "if true; then curl x; fi", "for i in 1; do curl x; done",
    "f() { curl x; }; f", "function f { curl x; }; f", "coproc curl x", "true && curl x", "true | curl x", "curl x &", "trap 'curl x' EXIT", "alias c=curl; c x", "hash -p /usr/bin/curl ls; ls",
    "ln -s /usr/bin/curl ls && ./ls x", "cp /usr/bin/curl y; ./y x", "git -c alias.x='!curl x' x", "git -c core.sshCommand='curl x' fetch", "tar cf a --checkpoint-action=exec='curl x' b",
    "ssh localhost curl x", "watch curl x", "flock a curl x", "script -c 'curl x'", "su -c 'curl x'", "EDITOR='curl x' git commit", "make --eval='x:;curl x' x",
    "vim -c '!curl x'", "vim -c 'term curl x'", "emacs --batch --eval '(call-process \"curl\")'", "tmux new 'curl x'", "screen -dm curl x", "m4 <<< 'syscmd(curl)'",
    "echo 'syscmd(curl x)' | m4", "psql -c \"copy a to program 'curl x'\"", "php -r '$f=\"sys\".\"tem\"; $f(\"curl\");'", "perl -e '$f=\"x\"; &$f(1)'", "ruby -e 'public_send(:x)'",
    "ls; rev <<< 'x lruc' | sh", "gmake --eval 'x:;curl x' x", "crontab <<< '* * * * * curl x'", "at now <<< 'curl x'", "batch <<E\ncurl x\nE", "ed <<< '!curl x'", "python3 <<< 'import os; os.system(\"curl x\")'", "python3 - <<E\nimport subprocess\nE", "echo 'import os; os.system(\"curl x\")' | python3 -u -", "base64 -d x | python3",
    "perl <<E\nsystem('curl x')\nE", "cat x | node -", "sqlite3 a.db <<< '.shell curl x'", "printf '.system curl x' | sqlite3 a.db", "psql db <<E\n\\! curl x\nE",
    "echo $(curl x)", "echo <(curl x)", 'echo "`curl x`"', "[[ -v a[$(curl x)] ]]", "echo $((a[$(curl x)]))", "cat <<E\n$(curl x)\nE",
]  # fmt: skip


@for_each("command", COMPUTED)
@for_each("contained", [True, False])
def test_a_denied_program_is_denied_also_where_it_is_computed(command: str, *, contained: bool) -> None:
    given = judge(command, rules(deny=("curl",), contained=contained))
    assert given.answer == "deny", given.why


@for_each(
    "command",
    ["python3 - <<E\nprint(1)\nE", "python3 x.py", "ls && node --version", "echo a | python3 x.py", "sqlite3 a.db 'select 1'", "make test", "echo 1 && make", "ls; sh x.sh", "crontab -l"],
)  # fmt: skip
def test_what_can_be_known_is_not_refused_because_something_else_is_denied(command: str) -> None:
    assert judge(command, rules(deny=("curl",), contained=False)).answer != "deny"


@given(st.lists(st.sampled_from(["\\curl x", "ls", "$x", "`a`", "\\\\", "'", '"', "\t\\a b", "", "日本", "a\\", "# x", "(a"]), min_size=1, max_size=5))  # fmt: skip
def test_a_text_that_is_fed_is_read_as_a_whole_whatever_its_lines_begin_with(lines: list[str]) -> None:
    body = "\n".join(lines) + "\n"
    assert body in read_script(f"sh <<'E'\n{body}E\n").fed


ALLOWED = ("python3", "python", "sh", "bash", "find", "xargs", "echo", "env", "eval", "perl", "awk", "sed", "node", "git", "tar", "cat", "true", "printf")  # fmt: skip


@for_each("command", COMPUTED)
def test_a_computed_program_is_neither_taken_for_harmless_nor_remembered(command: str) -> None:
    bare = judge(command, rules(contained=False))
    assert bare.answer == "ask" or bare.why.startswith("always refused")
    if command.startswith(("$(", "`", "${", "c=", "a=", "eval", "f()")):
        assert bare.key == ""
    if not command.startswith(
        (
            "python",
            "bash",
            "sh ",
            "perl",
            "node",
            "awk",
            "sed",
            "env",
            "find",
            "xargs",
            "echo 'import",
            "cat x",
        )
    ):
        assert judge(command, rules(allow=ALLOWED, contained=False)).answer != "allow"


REMOVALS = [
    'h=$HOME; rm -rf "$h"', 'rm -rf "$(echo $HOME)"', "rm -rf `echo ~`", "xargs rm -rf < lst", "cat lst | xargs rm -r", "xargs -I{} rm -rf {} < lst", "parallel rm -rf < lst",
    'for d in ~/*; do rm -rf "$d"; done', 'while read d; do rm -rf "$d"; done < lst', "perl -e 'system q(rm -rf ~)'", "perl -MFile::Path -e 'rmtree($ENV{HOME})'",
    "python3 -c 'import shutil, os; shutil.rmtree(os.path.expanduser(\"~\"))'", "python -c 'from pathlib import Path; [p.unlink() for p in Path.home().rglob(\"*\")]'",
    "node -e 'require(\"fs\").rmSync(require(\"os\").homedir(), {recursive: true})'", "ruby -e 'require \"fileutils\"; FileUtils.rm_rf(Dir.home)'", "tar --remove-files -cf a.tar \"$x\"",
    "tar -cf a.tar --remove \"$(echo ~)\"", 'find "$h" -delete', 'find $(echo ~) -exec rm -rf {} +', "$x -rf ~", "$(echo rm) -rf $HOME", "R=rm; $R -rf d", "eval 'rm -rf \"$h\"'",
    "bash -c 'rm -rf \"$0\"' ~", "sudo rm -rf \"$x\"", "env rm -r \"${d}\"", "rm -rf ${x%/*}", "rm -fr -- \"$1\"", "r\\\nm -rf x", "rm --recursive $d", 'chmod -R 0 "$x"', 'mv "$x" /tmp/y',
    "echo 'rm -rf \"$h\"' | sh", "sh <<< 'rm -rf $h'", 'rsync -a --delete e/ "$h"', "find . -name x -exec rm -rf \"$h\" \\;", 'f() { rm -rf "$1"; }; f ~', 'rm -rf "${a[@]}"',
]  # fmt: skip


@for_each("command", REMOVALS)
def test_without_a_sandbox_a_removal_of_something_computed_is_refused_whatever_is_granted(
    command: str,
) -> None:
    everything = ("rm", "find", "python3", "python", "perl", "node", "ruby", "tar", "xargs", "sh", "bash", "cat", "sudo", "env", "mv", "chmod", "rsync")  # fmt: skip
    given = judge(command, rules(allow=everything, contained=False))
    assert given.answer == "deny", given.why
    assert given.why.startswith("always refused")


@for_each(
    "command",
    ["rm -rf build", "rm -rf \"$PWD/build\"", "find . -name '*.pyc' -delete", "rm $x.tmp", "python3 x.py \"$h\"", "python3 -c 'print(1)'", "tar cf a.tar \"$x\"", "xargs wc < lst"],
)  # fmt: skip
def test_without_a_sandbox_ordinary_work_is_still_only_asked_about(command: str) -> None:
    assert judge(command, rules(contained=False)).answer == "ask"
