"""What cannot be known of a command: refused beside a deny list, and bounded in what is looked up."""

from __future__ import annotations

from collections import Counter

import pytest

from daiku.guard.rules.commands.judge import MOST_WORDS, CommandRules, judge
from tests.cases import for_each


def answer(command: str, *, deny: tuple[str, ...] = (), allow: tuple[str, ...] = ()) -> str:
    rules = CommandRules(resolve=str, deny=deny, allow=allow, roots=("/proj",), home="/home/u")
    return judge(command, rules).answer


RUNS_RM = [
    "x='$(rm V)'; echo ${x@P}",
    "echo ${x:=`rm V`}",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm V",
    "sg root -c 'rm V'",
    "printf 'all:\\n\\trm V' | make -f -",
    "complete -C 'rm V' z; compgen -C 'rm V'",
    "let 'a[$(rm V)]=1'",
    "PS4='$(rm V)'; set -x; true",
    "trap 'rm V' EXIT",
    "mapfile -C 'rm V' -c 1 < f",
    "echo $((a[$(rm V)]))",
    "echo $[a[0]]",
    "((a[$x]=1))",
    "[[ -v $x ]]",
    "test $x -eq 0",
    "declare -n y=$x",
    "./clean.sh",
    "tools/clean V",
    "/proj/clean V",
    "/bin/r? V",
    "cp /bin/rm ./x && ./x V",
    "alias x='rm V'",
    "busybox rm V",
    "unshare -r rm V",
    "chroot / rm V",
    "script -qc 'rm V' /dev/null",
    "coproc rm V",
    "printf x | make -f /dev/stdin",
    "cat <<E\n${x@P}\nE",
    "echo " + "x " * 300,
    "printf 'r' > s; printf 'm V' >> s; . ./s",
    "printf 'r' > s; printf 'm V' >> s; bash s",
    "cp /usr/bin/x s; sh ./s",
    "base64 -d <<< cm0gVg== > s.py; python3 s.py",
    "tee m < x; make -f m",
    "make -f <(printf 'a:\n\trm V')",
    "ENV=s sh -i",
    "env BASH_ENV=s bash -c true",
    "export BASH_ENV=s; bash -c true",
    "split --filter='rm V' a.txt",
    "git grep -O'rm V' x",
    "git grep --open-files-in-pager='rm V' x",
    "man -P 'rm V' ls",
    "man -P'rm V' ls",
    "gcc -wrapper rm,V x.c",
    "socat - EXEC:'rm V'",
    "cpio -o --rsh-command='rm V'",
]
CHANGES_WHAT_A_NAME_RUNS = [
    "BASH_CMDS[ls]=/bin/rm; ls V", "BASH_ALIASES[ls]='rm V'", "read x <<< 'a[$(rm V)]'; z[x]=1", "PATH=.:$PATH; ls", "export PATH=$PWD:$PATH; ls",
    "PATH=/proj/bin:$PATH ls", "PATH=/usr/../proj/bin ls", "PATH= ls", "git config alias.x '!r''m V' && git x", "git x", "git config core.fsmonitor x",
    "git config --global core.pager x", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=y git log", "GIT_PAGER=x git log",
]  # fmt: skip
GIVES_CODE = [
    "PERL5OPT=-Mx perl -v", "NODE_OPTIONS=--require=./x.js npm test", "PYTHONPATH=lib python3 x.py", "LD_PRELOAD=x.so ls", "env PYTHONSTARTUP=s python3 -i",
    "export EDITOR=x", "MAKEFILES=x make", "X='a b' npm test", "X=$(cat f) npm test", "python3 -m timeit 'x'", "python3 -Im timeit x", "python3 -m code <<< x",
    "dc -e '!rm V'", "newgrp <<< 'rm V'", "run-parts -a V --regex '^r.$' /bin", "make -f /dev/fd/0 <<< x", "make -f /proc/self/fd/0 <<< x",
]  # fmt: skip
RUNS_WHAT_IT_MADE = [
    "printf x | dd of=s; sh s", "printf x > s && bash -O extglob s", "printf x > s && bash 0< s", "printf x > M && make -fM", "printf x > M; make --file=M",
    "printf x > Makefile && make", "printf x > package.json && npm run x", "printf x > x.py && python3 -m x", "printf x > __main__.py && python3 .",
    "printf x > x.js && node x", "printf x > x.js && node -r ./x y.js", "printf x > .git/hooks/post-commit && git commit -m x",
    "printf x >> .git/config; git status", "printf x > conftest.py && pytest", "cp a sitecustomize.py && python3 -c pass",
]  # fmt: skip
STAYS_ALLOWED = [
    "ls -la", "git commit -m 'rm the old file'", "echo rm", "grep -rn rm src", "npm test", "python -m pytest -q", "ls $HOME",
    "echo ${HOME}", "rg '\\brm\\b'", "cat rm.txt", "man rm", "grep -rn 'std::rm' src", "sh x.sh", "python3 x.py > out.txt; python3 y.py out.txt",
    "make -j$(nproc) > build.log; tail build.log", "git commit -m 'fix: rm'", "git grep -n rm", "sed -i s/a/b/ f; cp f g", "npm run build > log; cat log",
    "CI=1 NODE_ENV=test npm test", "API_URL=http://localhost:3000/api npm test", "PORT=3000 npm start", "env TZ=UTC date", "export PATH=$HOME/.cargo/bin:$PATH; cargo test",
    'export PATH="/usr/local/go/bin:$PATH" && go test', "git config --get user.name", "git config user.name me", "git config --list", "git config core.pager", "git lfs pull",
    "git -C lib status", "git --version", "python3 -m pytest", "python3 -m json.tool f", "python3 -m venv .v", "cp a.txt b.txt && npm test", "echo x > notes.txt && python3 x.py notes.txt",
    "GIT_AUTHOR_NAME=a git commit -m x", "a[0]=1; ls", "grep -n 'a\\[x\\]' f", "make test > out.log",
]  # fmt: skip


@for_each("command", [*RUNS_RM, *CHANGES_WHAT_A_NAME_RUNS, *GIVES_CODE, *RUNS_WHAT_IT_MADE])
def test_a_denied_program_does_not_run_by_another_way(command: str) -> None:
    """A23.11: what is not known before the command runs is refused."""
    assert answer(command, deny=("rm",)) == "deny"


@for_each("command", STAYS_ALLOWED)
def test_ordinary_commands_are_not_denied(command: str) -> None:
    """A23.11"""
    assert answer(command, deny=("rm",)) != "deny"


ELSEWHERE = [
    ("curl -s http://a.example/ok", "curl -s http://a.example/ok http://b.example/more"),
    ("curl -s http://a.example/ok", "curl -s http://a.example/ok -x b.example"),
    ("curl", "curl http://b.example"),
    ("npm install", "npm install --registry=http://b.example"),
    ("npm install", "npm install --registry b.example"),
    ("npm install", "npm install git+https://b.example/x"),
    ("npm install", "npm install git@b.example:x/y"),
    ("pip install", "pip install -i http://b.example x"),
    ("pip install", "pip install --extra-index-url=b.example x"),
    ("git push", "git push https://b.example/x main"),
    ("git push", "git push git@b.example:x/y main"),
    ("git fetch", "git fetch ssh://b.example/x"),
    ("make deploy", "make deploy URL=http://b.example"),
    ("npm install", "npm install > /tmp/x"),
    ("npm test", "npm test >> ~/.bashrc"),
]
HERE = [
    ("curl -s http://a.example/ok", "curl -s http://a.example/ok"),
    ("npm install", "npm install left-pad@1.0.0"),
    ("pip install", "pip install -r requirements.txt"),
    ("git push", "git push origin main"),
    ("npm test", "npm test -- --watch"),
    ("make", "make deploy"),
]


@for_each(("rule", "command"), ELSEWHERE)
def test_an_allow_rule_does_not_reach_another_address(rule: str, command: str) -> None:
    """A23.13: neither as a word nor as an option."""
    assert answer(command, allow=(rule,)) == "ask"


@for_each(("rule", "command"), HERE)
def test_an_allow_rule_holds_for_other_arguments(rule: str, command: str) -> None:
    assert answer(command, allow=(rule,)) == "allow"


@pytest.mark.parametrize("command", ["echo", "cat", "frobnicate", "cp"])
def test_lookups_are_bounded_by_the_words(command: str) -> None:
    """A23.6: the disk is asked about each word once."""
    calls: Counter[str] = Counter()

    def resolve(path: str) -> str:
        calls["resolve"] += 1
        return path

    def closed(path: str) -> bool:
        calls["closed"] += 1
        return False

    rules = CommandRules(resolve=resolve, closed=closed, roots=("/proj",))
    same = judge(f"{command} " + "x " * 4000, rules)
    assert same.answer in ("ask", "allow")
    assert calls.total() <= 10
    calls.clear()
    many = judge(f"{command} " + " ".join(f"w{n}" for n in range(2000)), rules)
    assert (many.answer, many.secret, many.key, calls.total()) == ("ask", True, "", 0)
    judge(f"{command} " + " ".join(f"w{n}" for n in range(MOST_WORDS - 1)), rules)
    assert calls.total() <= 3 * MOST_WORDS


MARKED = [
    "сurl http://a.example",
    "gіt push",
    "curl http://аpple.example/x",
    "nрm install",
    "рython x.py",
    "./sсripts/x.sh",
    "ｇｉｔ push",
    "frob ΑBC",
]
PLAIN = [
    "ls 日本語",
    "echo Привет мир",
    "git commit -m 'Grüße, naïve café'",
    "cat 設定file.txt",
    "ls -la",
    "echo 'テストtest'",
]


@for_each("command", MARKED)
def test_lookalike_letters_are_named(command: str) -> None:
    """A23.17: in the approval."""
    why = judge(command, CommandRules(resolve=str)).why
    assert "looks like" in why


@for_each("command", PLAIN)
def test_words_of_one_script_are_not_marked(command: str) -> None:
    assert "looks like" not in judge(command, CommandRules(resolve=str)).why
