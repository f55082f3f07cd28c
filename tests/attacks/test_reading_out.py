"""What is read unasked stays in the workspace, whatever links, globs, repositories and settings lead out of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import SandboxSettings
from daiku.guard.sandbox import bubblewrap
from daiku.tools.git.repository import classify_error
from daiku.workspace.repository import find_git_places
from tests.attacks.places import CANARY, Ground, ground
from tests.attacks.victim import Victim
from tests.cases import for_each

pytestmark = pytest.mark.slow  # real processes in real sandboxes

# The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
needs_bubblewrap = pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground() as made:
        monkeypatch.setenv("HOME", str(made.home))
        yield made


def links(place: Ground) -> None:
    """Every kind of link that a stranger's repository can hold."""
    (place.home / ".npmrc").write_text(f"//registry.example.org/:_authToken={CANARY}\n")
    (place.root / "conf.txt").symlink_to(place.home / ".npmrc")
    (place.root / "conf.").symlink_to(place.home / ".npmrc")
    (place.root / "l").symlink_to(place.other / "private.txt")
    (place.root / "d").symlink_to(place.other)
    (place.root / "sub").mkdir()
    (place.root / "sub" / "e").symlink_to(place.other)
    (place.root / "chain").symlink_to("sub/e")
    (place.root / "x.json").write_text("{}")


LOOKS = [
    "head -1 conf.txt", "cat l", "cat conf.", "cat d/private.txt", "cat d/*", "cat */private.txt", "cat *", "cat ./l", "tac l", "nl l",
    "grep CANARY l", "grep -r CANARY d", "grep -R CANARY .", "grep -rn CANARY d/", "grep --dereference-recursive CANARY .",
    "grep -e CANARY conf.", "grep -eCANARY conf.", "grep --regexp=CANARY conf.", "sed -ne p conf.", "rg -eCANARY conf.", "grep -f l a.txt", "grep --file=l a.txt", "rg CANARY l", "rg -L CANARY", "rg --follow CANARY .", "rg -uuL CANARY",
    "sort l", "uniq l", "strings l", "cut -c1- l", "jq -R . l", "od -c l", "sed -n 1p l", "sed -n p l", "tail -n1 l", "diff l a.txt",
    "diff -r d sub", "comm l a.txt", "paste l", "join l l", "fold l", "cat chain/private.txt", "cat sub/e/private.txt", "wc -l --files0-from=l",
    "date -f l", "find -L . -name private.txt", "find d/ -type f", "ls -R d/", "md5sum l | cut -c1-3; cat l", "cat < l", "jq --rawfile x l . x.json",
    "cat sub/../l", "cat ././d/./private.txt", "cat $PWD/l", "cat 'l'", "xargs cat < l", "git diff --no-index a.txt l", "git grep --no-index CANARY",
    "git blame --contents l a.txt", "git hash-object l", "fd -L private", "tree -l", "du -L d", "cmp -b l a.txt", "cat {l,a.txt}", "cat [l]", "cat ?",
]  # fmt: skip


@pytest.mark.parametrize("command", LOOKS)
@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_link_out_of_the_workspace_is_never_read_unasked(
    place: Ground, command: str, sandbox: Any
) -> None:
    links(place)
    place.git("init", "-q")
    place.git("add", "a.txt")
    victim = Victim(place.root, place.home, sandbox=SandboxSettings(mode=sandbox))
    await victim.attempt("shell/run", command=command)
    said = "" if victim.result is None else victim.result.text
    assert CANARY not in said


@needs_bubblewrap
@pytest.mark.parametrize(
    "command",
    ["cat a.txt", "grep -rn harmless .", "grep -R harmless .", "cat *.txt", "rg harmless", "ls -la", "find . -name '*.txt'", "git status", "git log --oneline",
     "wc -l a.txt", "grep 'less.' a.txt", "grep -n 'end of. ' a.txt || true", "sed -n '1,5p' a.txt", "git diff", "git show HEAD", "head -n 3 a.txt | sort"],
)  # fmt: skip
async def test_looking_at_the_workspace_itself_needs_nobody(place: Ground, command: str) -> None:
    place.git("init", "-q")
    place.git("add", ".")
    place.git("commit", "-q", "-m", "harmless")
    victim = Victim(place.root, place.home)
    assert await victim.attempt("shell/run", command=command) in ("done", "failed")
    assert victim.result is not None
    assert victim.verdict is not None
    assert victim.verdict.answer == "allow"


def private(place: Ground) -> Path:
    """A repository of the person that has nothing to do with the workspace."""
    folder = place.home / "private"
    folder.mkdir()
    place.git("init", "-q", "-b", "main", at=folder)
    (folder / "private.txt").write_text(f"{CANARY}\n")
    place.git("add", ".", at=folder)
    place.git("commit", "-q", "-m", f"{CANARY} message", at=folder)
    return folder


def by_git_file(place: Ground) -> None:
    (place.root / ".git").write_text(f"gitdir: {private(place)}/.git\n")


def by_link(place: Ground) -> None:
    (place.root / ".git").symlink_to(private(place) / ".git")


def by_common_folder(place: Ground) -> None:
    theirs = private(place) / ".git"
    place.git("init", "-q", "-b", "main")
    (place.root / ".git" / "commondir").write_text(f"{theirs}\n")


def by_alternates(place: Ground) -> None:
    theirs = private(place)
    commit = place.git("rev-parse", "HEAD", at=theirs)
    place.git("init", "-q", "-b", "main")
    (place.root / ".git" / "objects" / "info" / "alternates").write_text(f"{theirs}/.git/objects\n")
    (place.root / ".git" / "refs" / "heads" / "main").write_text(f"{commit}\n")


def by_linked_objects(place: Ground) -> None:
    theirs = private(place)
    commit = place.git("rev-parse", "HEAD", at=theirs)
    place.git("init", "-q", "-b", "main")
    for folder in (theirs / ".git" / "objects").iterdir():
        target = place.root / ".git" / "objects" / folder.name
        if not target.exists():
            target.symlink_to(folder)
    (place.root / ".git" / "refs" / "heads" / "main").write_text(f"{commit}\n")


def by_linked_object_store(place: Ground) -> None:
    theirs = private(place)
    by_linked = place.git("rev-parse", "HEAD", at=theirs)
    place.git("init", "-q", "-b", "main")
    shutil.rmtree(place.root / ".git" / "objects")
    (place.root / ".git" / "objects").symlink_to(theirs / ".git" / "objects")
    (place.root / ".git" / "refs" / "heads" / "main").write_text(f"{by_linked}\n")


def by_work_tree_that_points_elsewhere(place: Ground) -> None:
    theirs = private(place)
    linked = place.home / "linked"
    place.git("worktree", "add", "-q", "--detach", str(linked), at=theirs)
    (place.root / ".git").write_text((linked / ".git").read_text())


def by_sub_folder(place: Ground) -> None:
    place.git("init", "-q")
    (place.root / "sub").mkdir()
    (place.root / "sub" / ".git").write_text(f"gitdir: {private(place)}/.git\n")


def by_home_repository(place: Ground) -> None:
    private(place)
    shutil.copytree(place.home / "private" / ".git", place.home / ".git")
    shutil.copy(place.home / "private" / "private.txt", place.home)
    shutil.rmtree(place.root)
    (place.home / "downloads").mkdir()


POINTED = [by_git_file, by_link, by_common_folder, by_alternates, by_linked_objects, by_linked_object_store, by_work_tree_that_points_elsewhere,
           by_sub_folder]  # fmt: skip
GIT_DOORS: list[tuple[str, dict[str, Any]]] = [
    ("git/log", {"patch": True}), ("git/log", {}), ("git/diff", {}), ("git/diff", {"ref": "HEAD"}), ("git/status", {}),
    *(("shell/run", {"command": command}) for command in (
        "git log -p", "git show HEAD:private.txt", "git show", "git grep CANARY", "git cat-file -p HEAD:private.txt", "git diff HEAD", "git status",
        "git diff", "git log --all --format=%B", "cd sub && git log -p", "cd sub && git diff", "git reflog", "git ls-files",
    )),
]  # fmt: skip


@pytest.mark.parametrize("way", POINTED, ids=lambda way: way.__name__)
async def test_a_repository_that_was_only_pointed_at_is_not_opened(
    place: Ground, way: Callable[[Ground], None]
) -> None:
    way(place)
    for tool, args in GIT_DOORS:
        victim = Victim(place.root, place.home)
        await victim.attempt(tool, **args)
        said = "" if victim.result is None else victim.result.text
        assert CANARY not in said, (tool, args)


async def test_the_repository_of_a_whole_home_is_none_of_the_workspace(
    place: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_home_repository(place)
    for tool, args in GIT_DOORS:
        victim = Victim(place.home / "downloads", place.home)
        await victim.attempt(tool, **args)
        assert CANARY not in ("" if victim.result is None else victim.result.text), (tool, args)


SETTINGS = {
    "include": "[include]\npath = {secret}\n",
    "include in any case": "[INCLUDE]\n\tPath={secret}\n",
    "include on one line": "[include] path = {secret}\n",
    "conditional include": '[includeIf "gitdir:**"]\npath = {secret}\n',
    "include in an include": "[include]\npath = ../more.config\n",
    "ignored revisions": "[blame]\nignoreRevsFile = {secret}\n",
    "order of files": "[diff]\norderFile = {secret}\n",
    "message template": "[commit]\ntemplate = {secret}\n",
    "excludes": "[core]\nexcludesFile = {secret}\n",
    "attributes": "[core]\nattributesFile = {secret}\n",
    "mail map": "[mailmap]\nfile = {secret}\n",
    "a number from nowhere": "[core]\ncompression = {secret}\n",
    "external diff": '[diff]\nexternal = sh -c "cat {secret}" --\n',
    "text of a file": '[diff "x"]\ntextconv = cat {secret}\n',
    "a clean filter": '[filter "x"]\nclean = cat {secret}\n',
    "an alias": "[alias]\nst = !cat {secret}\n",
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_settings_of_a_repository_do_not_print_a_file_that_they_name(place: Ground, name: str) -> None:
    secret = place.home / ".npmrc"
    secret.write_text(f"//registry.example.org/:_authToken={CANARY}\n")
    place.git("init", "-q")
    (place.root / ".gitattributes").write_text("*.txt diff=x filter=x\n")
    place.git("add", ".")
    place.git("commit", "-q", "-m", "first")
    (place.root / "more.config").write_text(f"[include]\npath = {secret}\n")
    (place.root / "a.txt").write_text("other\n")
    with (place.root / ".git" / "config").open("a") as config:
        config.write(SETTINGS[name].format(secret=secret))
    for tool, args in (
        *GIT_DOORS,
        ("shell/run", {"command": "git blame a.txt"}),
        ("shell/run", {"command": "git st"}),
        ("git/commit", {"message": "m", "all": True}),
    ):
        victim = Victim(place.root, place.home, person=tool == "git/commit")
        await victim.attempt(tool, **args)
        assert CANARY not in ("" if victim.result is None else victim.result.text), (tool, args)


@pytest.mark.parametrize(
    "name", [name for name in SETTINGS if "include" in name and "in an include" not in name]
)
def test_a_repository_whose_settings_read_a_file_outside_is_not_used(place: Ground, name: str) -> None:
    place.git("init", "-q")
    with (place.root / ".git" / "config").open("a") as config:
        config.write(SETTINGS[name].format(secret=place.home / ".npmrc"))
    assert isinstance(find_git_places(place.root, (place.root,)), str)


@for_each(
    "said",
    [
        f"error: key does not contain a section: {CANARY}",
        f"fatal: bad numeric config value '{CANARY}' for 'core.compression' in file .git/config: invalid unit",
        f"fatal: could not open object name list: {CANARY}",
        f"warning: unknown thing {CANARY}",
        CANARY,
    ],
)
def test_the_words_of_git_itself_are_not_passed_on(said: str) -> None:
    assert CANARY not in classify_error(said)
    assert classify_error(said)


SECRETS = (
    ".env",
    "config/prod/deep/.env",
    "a/b/c/d/server.key",
    ".git-credentials",
    "x/y/z/credentials.json",
    "k/ID_RSA",
)


@pytest.mark.parametrize("info", ["", "none", "a link"])
@pytest.mark.parametrize("attributes", ["* diff\n", ".env diff text\n*.key diff=x !binary\n"])
async def test_secrets_of_the_workspace_are_read_by_no_door_unasked(
    place: Ground, attributes: str, info: str
) -> None:
    place.git("init", "-q", "-b", "main")
    if info:
        shutil.move(place.root / ".git" / "info", place.root / "information")
    if info == "a link":
        (place.root / "information" / "attributes").write_text("* diff\n")
        (place.root / ".git" / "info").symlink_to("../information")
    (place.root / ".gitattributes").write_text(attributes)
    for name in SECRETS:
        file = place.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"TOKEN={CANARY}\n")
    place.git("add", "-f", ".")
    place.git("commit", "-q", "-m", "first")
    blob = place.git("rev-parse", "HEAD:.env")
    place.git("tag", "blob", blob)
    for name in SECRETS:
        (place.root / name).write_text(f"TOKEN={CANARY}\nOTHER={CANARY}\n")
    (place.root / "a.txt").write_text("TOKEN other\n")
    commands = (
        "rg -uu TOKEN", "rg --hidden TOKEN", "grep -r TOKEN .", "grep -r TOKEN a", "grep -R TOKEN a", "cat a/b/c/d/*", "cat */*/*/*", "git diff", "git log -p",
        "git show", "git grep TOKEN", "git log -p --text", "git diff -a", "git show HEAD:.env", f"git show {blob}", f"git cat-file -p {blob}",
        f"git show {blob[:9]}", f"git cat-file blob {blob}", "git log -L1,1:.env", "git diff --word-diff", "git log -GTOKEN -p", "git stash show -p",
        "git diff --no-index /dev/null .env", "git blame .env", "find . -name '*.key'", "sort a/b/c/d/server.key", "cat config/prod/*/.en?", "git archive HEAD",
        "git show HEAD~0", "git show blob", f"git diff {blob} {blob}~0 || git diff {blob} HEAD:a.txt", "git show 'blob^{}'", "git diff-tree -p HEAD", "git format-patch --stdout -1", "git whatchanged -p", "git log --patch-with-stat --raw",
    )  # fmt: skip
    doors: list[tuple[str, dict[str, Any]]] = [("shell/run", {"command": command}) for command in commands]
    doors += [("search/text", {"pattern": "TOKEN"}), ("search/text", {"pattern": "TOKEN", "path": "a"})]
    doors += [("git/diff", {}), ("git/diff", {"ref": "HEAD"}), ("git/log", {"patch": True})]
    for tool, args in doors:
        victim = Victim(place.root, place.home)
        await victim.attempt(tool, **args)
        assert CANARY not in ("" if victim.result is None else victim.result.text), (tool, args)


@pytest.mark.parametrize("info", [True, False])
async def test_what_is_no_secret_is_still_shown(place: Ground, *, info: bool) -> None:
    place.git("init", "-q", "-b", "main")
    if not info:
        shutil.rmtree(place.root / ".git" / "info")
    (place.root / ".env").write_text(f"TOKEN={CANARY}\n")
    (place.root / "credentials.py").write_text("TOKEN = read()\n")
    place.git("add", "-f", ".")
    place.git("commit", "-q", "-m", "first")
    for tool, args in (
        ("git/log", {"patch": True}),
        ("search/text", {"pattern": "TOKEN"}),
        ("shell/run", {"command": "git log -p"}),
        ("shell/run", {"command": "git grep TOKEN"}),
        ("shell/run", {"command": "grep -r TOKEN ."}),
    ):
        victim = Victim(place.root, place.home)
        assert await victim.attempt(tool, **args) in ("done", "failed"), (tool, args, victim.verdict)
        assert victim.result is not None
        assert "read()" in victim.result.text, (tool, args)
        assert CANARY not in victim.result.text, (tool, args)


async def test_git_in_a_linked_work_tree_and_below_the_top_of_a_repository_goes_on(place: Ground) -> None:
    main = place.base / "main"
    main.mkdir()
    place.git("init", "-q", "-b", "main", at=main)
    (main / "inner").mkdir()
    (main / "inner" / "b.txt").write_text("words\n")
    place.git("add", ".", at=main)
    place.git("commit", "-q", "-m", "first words", at=main)
    linked = place.base / "linked"
    place.git("worktree", "add", "-q", "--detach", str(linked), at=main)
    for root in (linked, main / "inner"):
        (root / "new.txt").write_text("new\n")
        for tool, args in (
            ("git/log", {}),
            ("shell/run", {"command": "git log --oneline"}),
            ("shell/run", {"command": "git status --short"}),
            (
                "shell/run",
                {"command": "git add new.txt && git -c user.name=T -c user.email=t@x.org commit -q -m more"},
            ),
            ("git/status", {}),
        ):
            victim = Victim(root, place.home, person=True)
            assert await victim.attempt(tool, **args) == "done", (root, tool, args, victim.result)
        assert "more" in place.git("log", "--oneline", at=root)


async def test_what_lies_beside_the_workspace_in_its_repository_is_for_git_alone(place: Ground) -> None:
    main = place.base / "main"
    (main / "inner").mkdir(parents=True)
    place.git("init", "-q", "-b", "main", at=main)
    for name in ("beside.txt", ".env", "inner/b.txt"):
        (main / name).write_text(f"TOKEN={CANARY}\n" if name != "inner/b.txt" else "words\n")
    (main / "inner" / "up").symlink_to("..")
    place.git("add", "-f", ".", at=main)
    place.git("commit", "-q", "-m", "first", at=main)
    for command in (
        "grep -R TOKEN .", "rg -L TOKEN", "cat up/beside.txt", "cat up/.env", "cat */beside.txt", "git status; grep -R TOKEN .", "git status; cat */*.txt",
        "git log --oneline | grep -r TOKEN up/", "git status; find -L . -name beside.txt", "cat up/../main/beside.txt", "git status; rg -L TOKEN",
    ):  # fmt: skip
        victim = Victim(main / "inner", place.home)
        await victim.attempt("shell/run", command=command)
        assert CANARY not in ("" if victim.result is None else victim.result.text), command
    victim = Victim(main / "inner", place.home)
    assert await victim.attempt("shell/run", command="git status --short | head -5") == "done"
    assert victim.result is not None
    assert " D " not in victim.result.text
