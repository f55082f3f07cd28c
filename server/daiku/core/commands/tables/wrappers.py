"""The programs that run other programs, with the options that stand before the program that they run."""

from __future__ import annotations

from daiku.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The arguments of a wrapper: options that take the next word, and how many words precede the program."""

    valued: frozenset[str] = frozenset()
    operands: int = 0


def _w(valued: str = "", operands: int = 0) -> Wrapper:
    return Wrapper(frozenset(valued.split()), operands)


WRAPPERS: dict[str, Wrapper] = {
    "env": _w("-u --unset -C --chdir -a --argv0"),
    "sudo": _w("-u -g -h -p -C -r -t -U -D -R -T --user --group --host --prompt --chdir --chroot"),
    "doas": _w("-u -C"),
    "run0": _w("-u --user -D --chdir"),
    "pkexec": _w("--user"),
    "nice": _w("-n --adjustment"),
    "ionice": _w("-c -n -p --class --classdata"),
    "chrt": _w("-T -P -D", 1),
    "taskset": _w("", 1),
    "timeout": _w("-k -s --kill-after --signal", 1),
    "gtimeout": _w("-k -s --kill-after --signal", 1),
    "nohup": _w(),
    "setsid": _w(),
    "stdbuf": _w("-i -o -e --input --output --error"),
    "unbuffer": _w(),
    "xargs": _w(
        "-I -n -P -L -s -d -E -a --max-args --max-procs --max-lines --delimiter --arg-file --replace --eof"
    ),
    "parallel": _w("-j --jobs -I -a --arg-file -d --delimiter"),
    "command": _w(),
    "builtin": _w(),
    "exec": _w("-a"),
    "coproc": _w(),
    "time": _w("-f -o --format --output"),
    "busybox": _w(),
    "toybox": _w(),
    "watch": _w("-n -q --interval --equexit"),
    "flock": _w("-w -E --timeout --conflict-exit-code", 1),
    "chroot": _w("", 1),
    "unshare": _w("-S -G -R -w --root --wd"),
    "nsenter": _w("-t -S -G --target"),
    "setpriv": _w(),
    "setarch": _w("", 1),
    "linux64": _w(),
    "prlimit": _w(),
    "strace": _w("-o -e -p -s -u -E"),
    "ltrace": _w("-o -e -p -s -u"),
    "catchsegv": _w(),
    "fakeroot": _w(),
    "proot": _w("-r -b -w"),
    "firejail": _w(),
    "bwrap": _w(),
    "systemd-run": _w("-u -p --unit --property"),
    "dbus-run-session": _w(),
    "xvfb-run": _w("-n -s -e -f --server-num --server-args"),
    "entr": _w(),
    "chronic": _w(),
    "caffeinate": _w("-t -w"),
    "script": _w("-c --command"),
    "su": _w("-s -g -G --shell --group"),
    "runuser": _w("-u -g -G -s --user --group --shell"),
    "gosu": _w("", 1),
    "su-exec": _w("", 1),
    "npx": _w("-p --package -w"),
    "bunx": _w(),
    "pnpx": _w(),
    "dotenv": _w("-e -f"),
    "direnv": _w("", 2),
    "mise": _w("", 1),
    "rlwrap": _w(),
    "ld.so": _w(),
    "torsocks": _w(),
    "proxychains": _w("-f"),
    "proxychains4": _w("-f"),
    "ccache": _w(),
    "hyperfine": _w("-w -r -m -M -p -c"),
    "perf": _w("", 1),
    "valgrind": _w(),
    "gdb": _w("-ex -x"),
    "then": _w(),
    "do": _w(),
    "else": _w(),
    "!": _w(),
    "nocorrect": _w(),
    "noglob": _w(),
}
# Two words that run the rest.
PAIRS = {
    ("npm", "exec"), ("npm", "x"), ("pnpm", "exec"), ("pnpm", "dlx"), ("yarn", "exec"), ("yarn", "dlx"), ("uv", "run"),
    ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("bundle", "exec"), ("git", "bisect"), ("rye", "run"),
    ("conda", "run"), ("go", "tool"), ("rustup", "run"), ("asdf", "exec"), ("nix", "run"), ("nix-shell", "--run"),
}  # fmt: skip
SHELLS = frozenset(
    {
        "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "tcsh", "csh", "rbash", "pwsh", "powershell", "cmd", "elvish",
        "nu", "xonsh", "yash", "oksh",
    }
)  # fmt: skip
# Their arguments together, or one of them, are a command line.
TEXT_PROGRAMS = frozenset(
    {"eval", "watch", "parallel", "ssh", "trap", "hyperfine", "at", "batch", "entr", "concurrently"}
)
