"""Programs that people allow by name: what of their options runs another program or writes a file is not in it."""

from __future__ import annotations

from daiku.guard.rules.commands.judge import judge
from tests.cases import for_each
from tests.core.commands.test_judge import rules

ACTS: dict[str, list[str]] = {
    "sed": [
        "sed '1e curl x' a", "sed 'e' a", "sed '$e ls' a", "sed '/x/e ls' a", "sed 's/a/ls/e' a", "sed 's/a/ls/ge' a", "sed 's|a|ls|e' a", "sed 'w out' a", "sed '1,3w out' a",
        "sed 's/a/b/w out' a", "sed -n '/x/w out' a", "sed 'W out' a", "sed 'r /etc/passwd' a", "sed 'R /etc/passwd' a", "sed -i s/a/b/ a", "sed -ibak s/a/b/ a", "sed -i.bak s/a/b/ a",
        "sed --in-place s/a/b/ a", "sed --in-p s/a/b/ a", "sed -ni p a", "sed -f script a", "sed --file=script a", "sed -e p -e '1e ls' a", "sed --expression='1e ls' a", "sed -ne '1e ls' a",
        "sed '{e ls\n}' a", "sed 'p;e ls' a", "sed \"$x\" a", "gsed '1e ls' a", "sed -s -f s a", "sed '1!e ls' a", "sed -E 's/(a)/ls/e' a",
    ],
    "awk": [
        "awk 'BEGIN{system(\"ls\")}'", "awk '{print > \"out\"}' a", "awk '{print >> \"out\"}' a", "awk '{print | \"sh\"}' a", "awk '{\"ls\" | getline}' a", "awk '{getline < \"/etc/passwd\"}'",
        "awk '{printf \"%s\", $0 > \"f\"}' a", "awk -f prog a", "awk --file=prog a", "awk -fprog a", "awk -i inplace 1 a", "awk -l ext 1 a", "awk --include=x 1 a", "awk -E prog a",
        "awk --exec=prog a", "awk '@load \"x\"' a", "awk \"$x\" a", "gawk '{print |& \"sh\"}' a", "mawk 'BEGIN{system(\"ls\")}'", "awk -e 'BEGIN{system(\"ls\")}'", "awk --source='BEGIN{system(1)}'",
        "awk '{close(\"x\")}' a", "awk 'BEGIN{print ENVIRON[\"X\"]}'", "awk '{ARGV[1]=\"/etc/passwd\"}' a",
    ],
    "tar": [
        "tar cf a.tar b", "tar -cf a.tar b", "tar xf a.tar", "tar -x -f a.tar", "tar xzf a.tgz -C ..", "tar --extract -f a", "tar --create -f a b", "tar -rf a b", "tar uf a b", "tar -Af a b",
        "tar tf a --to-command=sh", "tar tf a --checkpoint=1 --checkpoint-action=exec=sh", "tar tf a --checkpoint-act=exec=sh", "tar tf a -I sh", "tar tf a -Ish", "tar tf a --use-compress-program=sh",
        "tar tf a --use-compress=sh", "tar tf a -F sh", "tar tf a --info-script=sh", "tar tf a --rsh-command=sh", "tar --delete -f a b", "bsdtar xf a", "tar a.tar", "tar --get -f a",
    ],
    "git": [
        "git clone -u 'sh' a b", "git clone --upload-pack=sh a b", "git clone --upload=sh a", "git clone -c core.sshCommand=sh a", "git clone --config core.x=y a", "git clone --template=t a", "git archive -o out HEAD",
        "git archive -oout HEAD", "git archive --output=out HEAD", "git archive --exec=sh HEAD", "git archive --remote=ext::sh HEAD", "git archive --remote ext::sh HEAD", "git archive --remote=fd::3 HEAD", "git format-patch -o out HEAD~1", "git format-patch -oout HEAD~1",
        "git format-patch --output-directory=out HEAD~1", "git bundle create out HEAD", "git fetch -u x", "git fetch --upload-pack=sh", "git ls-remote --upload-pack=sh .", "git ls-remote ext::sh",
        "git push --receive-pack=sh", "git push --exec=sh", "git grep -Oless x", "git grep --open-files-in-pager=sh x", "git grep --open=sh x", "git diff --ext-diff", "git diff --output=out", "git diff --outp=out",
        "git log --textconv", "git -c alias.x=!sh x", "git -c core.pager=sh log", "git --exec-path=. log", "git --config-env=a=b log", "git --git-dir=x log", "git --work-tree=/ status", "git st", "git unheard-of",
        "git difftool --extcmd=sh", "git difftool -x sh", "git mergetool --tool=x", "git init --separate-git-dir=/x", "git init --template=t",
    ],
}  # fmt: skip
LINES = [(name, line) for name, lines in ACTS.items() for line in lines]


@for_each(("name", "line"), LINES)
@for_each("contained", [True, False])
def test_an_allowed_name_does_not_allow_what_runs_another_program_or_writes(
    name: str, line: str, *, contained: bool
) -> None:
    allow = (name, line.split(maxsplit=1)[0], "gsed", "gawk", "mawk", "bsdtar")
    given = judge(line, rules(allow=allow, contained=contained))
    assert given.answer != "allow", given.why
    assert not given.read_only


PLAIN = [
    "sed -n 5p a", "sed s/a/b/ a", "sed 's/a/b/g;s/c/d/' a", "sed '/x/d' a", "sed -E 's/(a)/\\1/' a", "sed '1,3d;$p' a", "awk '{print $1}' a", "awk -F, 'NR == 1 {print $2}' a", "awk '/x/{n++} END{print n}' a",
    "tar tf a.tar", "tar -tvf a.tar", "tar --list -f a", "git log -5", "git fetch origin", "git commit -m m", "git archive HEAD", "git push origin HEAD", "git clone a b", "git format-patch --stdout HEAD~1",
    "git add -u .", "git push -u origin x", "git switch -c x",
]  # fmt: skip


@for_each("line", PLAIN)
def test_an_allowed_name_allows_its_ordinary_use(line: str) -> None:
    assert judge(line, rules(allow=(*ACTS,))).answer == "allow"
