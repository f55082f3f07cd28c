"""The programs and options that only read: of each program the options that change nothing."""

from __future__ import annotations

from daiku.dataclass import dataclass


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
FIND = frozenset({
    "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype",
    "-type", "-xtype", "-maxdepth", "-mindepth", "-size", "-newer", "-anewer", "-cnewer", "-mtime", "-mmin",
    "-atime", "-amin", "-ctime", "-cmin", "-empty", "-not", "-and", "-or", "-a", "-o", "-print", "-print0",
    "-prune", "-perm", "-user", "-group", "-links", "-lname", "-ls", "-quit", "-true", "-false", "-depth",
    "-mount", "-xdev", "-readable", "-writable", "-executable", "-printf", "-L", "-H", "-P", "-follow",
    "-daystart", "-noleaf",
})  # fmt: skip
"""Tests and actions of `find` that only look."""
