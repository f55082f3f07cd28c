"""Commands that only read, flags included: what is not on these lists is not known to be harmless."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daiku.core.commands.bash import Word
from daiku.core.commands.wrappers import program
from daiku.core.protected.names import SECRET_SAMPLES
from daiku.core.protected.paths import holds_secrets
from daiku.core.text.patterns import lazy

Resolve = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Flags:
    """Options that are harmless. `short` are letters that may stand together; `long` are whole names,
    never abbreviations; `valued` are letters that take the rest of the word or the next word."""

    short: str = ""
    long: frozenset[str] = frozenset()
    valued: str = ""
    operands: int = 99
    numbers: bool = False
    """True where `-20` is a count."""


def _f(
    short: str = "", long: str = "", valued: str = "", operands: int = 99, *, numbers: bool = False
) -> Flags:
    return Flags(short, frozenset(long.split()), valued, operands, numbers)


ANY = None
# Programs whose every option only reads and prints.
PROGRAMS: dict[str, Flags | None] = {
    "ls": ANY, "cat": ANY, "head": ANY, "wc": ANY, "pwd": ANY, "basename": ANY, "dirname": ANY, "realpath": ANY,
    "readlink": ANY, "nl": ANY, "tac": ANY, "cut": ANY, "tr": ANY, "comm": ANY, "paste": ANY, "expand": ANY,
    "unexpand": ANY, "fold": ANY, "fmt": ANY, "stat": ANY, "du": ANY, "df": ANY, "true": ANY, "false": ANY,
    "whoami": ANY, "id": ANY, "uname": ANY, "nproc": ANY, "arch": ANY, "cksum": ANY, "sum": ANY, "md5sum": ANY,
    "sha1sum": ANY, "sha224sum": ANY, "sha256sum": ANY, "sha384sum": ANY, "sha512sum": ANY, "b2sum": ANY, "cmp": ANY,
    "diff": ANY, "od": ANY, "hexdump": ANY, "strings": ANY, "grep": ANY, "egrep": ANY, "fgrep": ANY, "echo": ANY,
    "seq": ANY, "join": ANY, "tsort": ANY, "numfmt": ANY, "jq": ANY, "rev": ANY, "column": ANY, "colrm": ANY,
    "which": ANY, "tail": _f("nqvzc", "quiet silent verbose zero-terminated lines bytes", "nc", numbers=True),
    "uniq": _f("cdDiuz", "count repeated ignore-case unique zero-terminated skip-fields skip-chars check-chars", "fsw", 1),
    "sort": _f(
        "bdfghiMnRrVcCmsuz",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort month-sort "
        "numeric-sort reverse version-sort check key field-separator stable unique zero-terminated",
        "kt",
    ),
    "date": _f("uR", "utc universal iso-8601 rfc-3339 rfc-email date reference", "dr", 1),
    "file": _f("bhikLNprsz0", "brief mime mime-type mime-encoding dereference no-dereference", "F"),
    "tree": _f(
        "adflxpsuhDFQqNSACitrUXJ",
        "dirsfirst noreport gitignore prune matchdirs ignore-case full-path du si charset filelimit inodes",
        "LPI",
    ),
    "rg": _f(
        "ceFHhIiLlNnoPpqSsuvwxU.",
        "after-context before-context context column count count-matches files files-with-matches files-without-match "
        "fixed-strings glob iglob heading hidden ignore-case smart-case case-sensitive invert-match json line-number "
        "no-line-number line-regexp max-columns max-count max-depth max-filesize multiline multiline-dotall "
        "no-filename no-heading no-ignore no-ignore-vcs no-messages null only-matching passthru pcre2 pretty quiet "
        "regexp replace sort sortr stats text trim type type-not type-list unrestricted vimgrep with-filename "
        "word-regexp color no-config no-ignore-parent follow",
        "ABCegjmMrtTE",
    ),
    "fd": _f(
        "HIugisapl0L1qF",
        "hidden no-ignore no-ignore-vcs unrestricted glob ignore-case case-sensitive absolute-path full-path follow "
        "type extension exclude max-depth min-depth max-results size changed-within changed-before color print0 quiet "
        "fixed-strings list-details",
        "dteESo",
    ),
    "sed": _f("nEr", "quiet silent regexp-extended"),
    "find": ANY, "git": ANY,
}  # fmt: skip
PROGRAMS["fdfind"] = PROGRAMS["fd"]

_COMMON = (
    "oneline abbrev-commit graph decorate no-decorate all branches tags remotes stat shortstat numstat dirstat summary "
    "name-only name-status patch no-patch patch-with-stat raw unified word-diff color no-color cached staged merge-base "
    "since after until before author committer grep all-match invert-grep regexp-ignore-case max-count skip follow reverse "
    "first-parent merges no-merges format pretty date relative-date abbrev full-index histogram minimal patience "
    "ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines function-context find-renames "
    "find-copies no-renames diff-filter pickaxe-all pickaxe-regex relative exit-code check quiet "
    "no-ext-diff no-textconv topo-order date-order simplify-by-decoration full-history left-right cherry cherry-pick "
    "cherry-mark show-signature no-walk source inter-hunk-context indent-heuristic compact-summary submodule no-notes "
    "notes left-only right-only not z no-prefix line-prefix"
)
# Not among them: what makes git print a file as text although it is marked as binary (-a, --text).
_DIFFLIKE = _f("psuzwbRqitrcSGLWDB", _COMMON, "nSGLUMCO", numbers=True)
GIT: dict[str, Flags] = {
    "status": _f("sbvzu", "short branch show-stash porcelain long verbose untracked-files ignore-submodules ignored "
                 "column no-column ahead-behind no-ahead-behind renames no-renames find-renames", ""),
    "log": _DIFFLIKE,
    "diff": _DIFFLIKE,
    "show": _DIFFLIKE,
    "whatchanged": _DIFFLIKE,
    "shortlog": _f("nsec", "numbered summary email group since until all no-merges", "w"),
    "rev-parse": _f("", "abbrev-ref verify short show-toplevel git-dir is-inside-work-tree show-prefix show-cdup "
                    "symbolic-full-name symbolic all branches tags quiet absolute-git-dir is-bare-repository HEAD", ""),
    "rev-list": _f("n", "count all max-count since until no-merges left-right branches tags first-parent reverse", "n",
                   numbers=True),
    "ls-files": _f("cdmoiskutvz", "cached deleted modified others ignored stage unmerged killed exclude-standard "
                   "full-name error-unmatch deduplicate eol abbrev", "x"),
    "ls-tree": _f("drtlz", "long name-only name-status full-name full-tree abbrev", ""),
    "cat-file": _f("tse", "", ""),
    "blame": _f("ltfnsewpcbM", "line-porcelain porcelain incremental show-name show-number show-email date root", "LCM"),
    "describe": _f("", "tags all long always dirty abbrev exact-match match contains first-parent candidates", ""),
    "merge-base": _f("a", "all is-ancestor octopus fork-point independent", ""),
    "name-rev": _f("", "tags name-only all refs no-undefined always", ""),
    "for-each-ref": _f("", "count sort format points-at merged no-merged contains no-contains", ""),
    "grep": _f("niIwlLcEFGPhHovqz", "line-number ignore-case word-regexp files-with-matches count extended-regexp "
               "fixed-strings perl-regexp name-only cached untracked heading break show-function function-context "
               "only-matching max-depth and or not all-match column full-name null", "ABCem", numbers=True),
    "count-objects": _f("vH", "verbose human-readable", ""),
    "check-ignore": _f("vqn", "verbose quiet non-matching no-index", ""),
    "var": _f("", "", "", 0),
    "version": _f("", "build-options", "", 0),
    "branch": _f("avrl", "all verbose remotes list show-current merged no-merged contains no-contains sort format color "
                 "no-color points-at column no-column", "", 0),
    "tag": _f("ln", "list sort format points-at merged no-merged contains no-contains column", "", 0),
    "remote": _f("v", "verbose", "", 0),
    "stash": _f("", "", "", 1),
    "worktree": _f("v", "porcelain", "", 1),
    "reflog": _f("n", "oneline format date all", "n", 1, numbers=True),
}  # fmt: skip
# Sub-commands that only read when their first operand says so.
_GIT_FIRST = {"stash": "list", "worktree": "list", "reflog": "show"}
FIND = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-regextype",
        "-type",
        "-xtype",
        "-maxdepth",
        "-mindepth",
        "-size",
        "-newer",
        "-anewer",
        "-cnewer",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-empty",
        "-not",
        "-and",
        "-or",
        "-a",
        "-o",
        "-print",
        "-print0",
        "-prune",
        "-perm",
        "-user",
        "-group",
        "-links",
        "-lname",
        "-ls",
        "-quit",
        "-true",
        "-false",
        "-depth",
        "-mount",
        "-xdev",
        "-readable",
        "-writable",
        "-executable",
        "-printf",
        "-L",
        "-H",
        "-P",
        "-follow",
        "-daystart",
        "-noleaf",
    ]
)
_PRINT = lazy(r"(?:\d+|\$)(?:,(?:\d+|\$))?p(?:;(?:\d+|\$)(?:,(?:\d+|\$))?p)*")
_SUBSTITUTED = lazy(r"[$`]|[<>]\(")


def reads_only(words: tuple[Word, ...], resolve: Resolve, *, contained: bool) -> bool:
    """True where the command of `words` changes nothing and reads nothing secret or outside.

    `contained`: a sandbox holds the programs that a hostile repository makes git start.
    """
    name = program(words)
    if not words or words[0].text != name or name not in PROGRAMS or not all(w.plain for w in words):
        return False
    args = words[1:]
    pattern = _pattern(name, args)
    if not all(
        _operand_is_harmless(w, resolve, path=w is not pattern and name not in _NO_PATHS) for w in args
    ):
        return False
    # Without a sandbox nothing stops a link among the names that a glob or a search through folders meets.
    if not contained and (any(w.glob for w in args) or _follows_links(name, args)):
        return False
    match name:
        case "git":
            return contained and _git(args)
        case "find":
            return all(
                w.text in FIND or w.text in ("!", "(", ")", ",") or not w.text.startswith("-") for w in args
            )
        case "sed":
            return _sed(args)
        case "date":
            return _flags(args, PROGRAMS["date"]) and all(w.text.startswith(("+", "-")) for w in args[:1])
        case "jq":
            return not any("env" in w.text.casefold() or w.text.startswith(("-L", "--")) for w in args)
        case _:
            return _flags(args, PROGRAMS[name])


def _flags(args: tuple[Word, ...], flags: Flags | None) -> bool:
    if flags is None:
        return True
    operands = 0
    at = 0
    while at < len(args):
        word = args[at]
        text = word.text
        at += 1
        if word.glob and not re.match(r"[\w./]", text):
            return False  # a file named like an option would become one
        if text == "--":
            operands += len(args) - at
            break
        if text.startswith("--"):
            if text[2:].partition("=")[0] not in flags.long:
                return False
        elif text.startswith("-") and len(text) > 1:
            taken = _cluster(text[1:], flags)
            if taken is None:
                return False
            at += taken
        else:
            operands += 1
    return operands <= flags.operands


def _cluster(letters: str, flags: Flags) -> int | None:
    """How many further words the letters of one option word take; None where one is not harmless."""
    if flags.numbers and letters.isdigit():
        return 0
    for at, letter in enumerate(letters):
        if letter in flags.valued:
            return 0 if at + 1 < len(letters) or letter in flags.short else 1
        if letter not in flags.short:
            return None
    return 0


def _git(args: tuple[Word, ...]) -> bool:
    rest = args
    while rest and rest[0].text in ("--no-pager", "--no-optional-locks", "--literal-pathspecs"):
        rest = rest[1:]
    if not rest or rest[0].text not in GIT:
        return len(args) == 1 and args[0].text == "--version"
    sub = rest[0].text
    operands = [w.text for w in rest[1:] if not w.text.startswith("-")]
    if (first := _GIT_FIRST.get(sub)) and operands[:1] != [first]:
        return sub == "reflog" and not operands and _flags(rest[1:], GIT[sub])
    return _flags(rest[1:], GIT[sub])


def _sed(args: tuple[Word, ...]) -> bool:
    scripts = [w.text for w in args if not w.text.startswith("-")][:1]
    quiet = any(w.text in ("-n", "--quiet", "--silent", "-nE", "-En") for w in args)
    return quiet and bool(scripts) and bool(_PRINT.fullmatch(scripts[0])) and _flags(args, PROGRAMS["sed"])


_PATH_TAIL = lazy(r"(?:\.\.|~|(?<!\.)/).*", re.DOTALL)


def candidates(text: str) -> Iterator[str]:
    """The parts of a word that may be a path: itself, what follows `=`, an attached value, `REV:path`."""
    yield text
    if "=" in text:
        yield text.partition("=")[2]
    if text.startswith("-"):
        yield text[2:]
        if found := _PATH_TAIL.search(text):
            yield found[0]
    head, colon, tail = text.partition(":")
    if colon and "/" not in head:
        yield tail


# Programs that open nothing of what they are given, and those whose first operand is no path.
_NO_PATHS = frozenset(
    {"echo", "seq", "tr", "basename", "dirname", "numfmt", "true", "false", "whoami", "id", "uname", "nproc", "arch", "date", "which"}
)  # fmt: skip
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "fd", "fdfind", "jq", "sed"})
_PATTERN_OPTION = lazy(r"-(?!-).*[ef].*|--(?:regexp|file|expression).*", re.DOTALL)
# Options whose values are texts and never paths.
_TEXT_OPTION = lazy(
    r"--(?:format|pretty|date|grep|author|committer|since|after|until|before|regexp|replace|line-prefix|sort|key|field-separator"
    r"|color|diff-filter|word-diff|iso-8601|rfc-3339)=",
)
_FOLLOWS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), lazy(r"-[^-]*R|--deref.*")),
    **dict.fromkeys(("rg", "fd", "fdfind"), lazy(r"-[^-]*L|--follow")),
    "find": lazy(r"-[LH]|-follow"),
    "tree": lazy(r"-[^-]*l"),
    "diff": lazy(r"-[^-]*r|--rec.*"),
}


def _pattern(name: str, args: tuple[Word, ...]) -> Word | None:
    """The word that is a pattern or a script and no path."""
    if name not in _PATTERN_FIRST or any(_PATTERN_OPTION.fullmatch(w.text) for w in args):
        return None
    return next((w for w in args if not w.text.startswith("-")), None)


def _follows_links(name: str, args: tuple[Word, ...]) -> bool:
    """True where the program goes through links that it meets in folders."""
    found = _FOLLOWS.get(name)
    return found is not None and any(found.fullmatch(w.text) for w in args)


def _operand_is_harmless(word: Word, resolve: Resolve, *, path: bool) -> bool:
    """`path`: the word may name a file, so it has to lead to a place inside, whatever it looks like."""
    if _SUBSTITUTED.search(word.text) and "[" in word.text:
        return False
    path = path and not _TEXT_OPTION.match(word.text)
    for text in candidates(word.text):
        if holds_secrets(text) or text.startswith("~"):
            return False
        real = resolve(text) if text else ""
        if real is None and (path or text.startswith("/") or ".." in text.split("/")):
            return False
        if not word.glob and real and holds_secrets(real):
            return False
        if word.glob and _may_name_a_secret(text):
            return False
    return True


def _may_name_a_secret(pattern: str) -> bool:
    name = pattern.rsplit("/", 1)[-1]
    regex = re.escape(name).replace(r"\*", ".*").replace(r"\?", ".")
    regex = re.sub(r"\\\[[^]]*\]", ".", regex)
    return any(
        (sample[0] != "." or name.startswith(".")) and name != "*" and re.fullmatch(regex, sample)
        for sample in SECRET_SAMPLES
    )
