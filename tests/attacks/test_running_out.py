"""What a sandboxed command does stays in the sandbox: nothing that it makes runs outside later, nothing of the home is seen."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.config import SandboxSettings
from daiku.domain.events import Notice
from daiku.guard.sandbox import bubblewrap, tree
from daiku.guard.sandbox.aside import before, changed_since, quarantine
from daiku.guard.sandbox.tree import Tree
from daiku.tools.shell import OutputArgs, RunArgs, output, run
from daiku.tools.shell.protecting import LEAVE_CHOICE, RESTORE_CHOICE, TOO_LARGE_NOTE
from daiku.tools.tool import Answer
from tests.attacks.places import CANARY, Ground, ground
from tests.timing import cpu_seconds
from tests.tools.shell.test_shell import Bench, data

pytestmark = [
    pytest.mark.slow,  # real processes in real sandboxes
    # The sandbox needs bubblewrap, which `npm test` installs but not every container can run.
    pytest.mark.skipif(not bubblewrap(), reason="no working bubblewrap here"),
]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground() as made:
        monkeypatch.setenv("HOME", str(made.home))
        yield made


@pytest.fixture
def bench(place: Ground) -> Bench:
    return Bench(place.root, SandboxSettings())


KERNEL = [
    "open('/proc/sys/kernel/core_pattern', 'w')",
    "open('/proc/sys/vm/swappiness', 'r+')",
    "open('/proc/sys/kernel/hostname', 'w')",
    "open('/proc/sysrq-trigger', 'w')",
    "open('/sys/kernel/mm/transparent_hugepage/enabled', 'w')",
    "open('/sys/kernel/uevent_helper', 'w')",
    "open('/dev/mem', 'rb')",
    "open('/dev/vda', 'rb')",
    "open('/etc/shadow').read(1)[0]",
    "os.chmod('a.txt', 0o4755)",
    "os.open('suid', os.O_CREAT | os.O_WRONLY, 0o4755)",
    "os.open('.', 0o20200002, 0o4755)",
    "os.mknod('suid', 0o104755)",
    "os.mknod('disk', 0o60660, os.makedev(254, 0))",
    "os.fchmod(os.open('a.txt', os.O_RDWR), 0o6755)",
    "os.setns(os.open('/proc/1/ns/mnt', os.O_RDONLY))",
    "call(250, 0, 0xfffffffd, 1)",
    "call(248, b'user', b'x', b'y', 1, 0xfffffffd)",
    "call(425, 8, b'\\0' * 120)",
    "call(165, b'tmpfs', b'/mnt', b'tmpfs', 0, 0)",
    "call(166, HOME, 2)",
    "call(161, b'.')",
]
PRELUDE = """
import ctypes, os
HOME = os.environ["HOME"].encode()
def call(number, *args):
    if os.uname().machine != "x86_64": raise OSError("another machine")
    if ctypes.CDLL(None, use_errno=True).syscall(number, *args) < 0: raise OSError(ctypes.get_errno())
try:
    ATTEMPT
    print("POSS" + "IBLE")
except (OSError, AttributeError, IndexError) as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("attempt", KERNEL)
async def test_the_machine_cannot_be_changed_not_even_where_the_server_runs_as_root(
    place: Ground, bench: Bench, attempt: str
) -> None:
    (place.root / "try.py").write_text(PRELUDE.replace("ATTEMPT", attempt))
    result = await bench.run("python3 try.py")
    assert "refused:" in result.text, result.text
    assert "POSSIBLE" not in result.text
    assert not [p for p in place.root.rglob("*") if p.lstat().st_mode & 0o4000]


async def test_the_sandbox_has_users_of_its_own(place: Ground, bench: Bench) -> None:
    result = await bench.run("readlink /proc/self/ns/user; grep CapEff /proc/self/status")
    assert str(Path("/proc/self/ns/user").readlink()) not in result.text
    assert "0000003fffffffff" not in result.text
    assert "000001ffffffffff" not in result.text


async def test_files_of_other_users_in_the_workspace_can_be_worked_on_as_root(
    place: Ground, bench: Bench
) -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: only root can give a file to another user; CI runs as root")
    os.chown(place.root / "a.txt", 1000, 1000)
    (place.root / "a.txt").chmod(0o600)
    result = await bench.run("echo more >> a.txt && touch b && chown 1000:1000 b && cat a.txt")
    assert result.ok, result.text
    assert (place.root / "b").stat().st_uid == 1000


PLANTED = (
    ".npmrc", ".yarnrc.yml", ".config/github-copilot/apps.json", ".config/git/credentials", ".git-credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".gradle/init.d/x.gradle", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".kaggle/kaggle.json", ".s3cfg", ".boto", ".cargo/credentials", ".cargo/credentials.toml",
    ".config/Code/User/globalStorage/state.vscdb", ".config/Cursor/User/globalStorage/state.vscdb", ".config/VSCodium/User/globalStorage/x",
    ".vscode-server/data/User/globalStorage/x", ".config/google-chrome-beta/Default/Cookies", ".config/BraveSoftware/x/Cookies",
    "snap/firefox/common/.mozilla/firefox/x/logins.json", ".bitcoin/wallet.dat", ".ethereum/keystore/x", ".electrum/wallets/w",
    ".config/sops/age/keys.txt", ".config/age/key.txt", ".local/share/fish/fish_history", ".mysql_history", ".sqlite_history",
    ".bash_history", ".env", "projects/other/.env", "projects/other/main.py", ".ssh/id_ed25519", ".gnupg/x", ".aws/credentials", ".kube/config",
    ".docker/config.json", ".netrc", ".pypirc", ".gem/credentials", ".pub-cache/credentials.json", ".terraform.d/credentials.tfrc.json",
    ".config/gh/hosts.yml", ".config/glab-cli/config.yml", ".config/rclone/rclone.conf", ".local/share/keyrings/login.keyring", ".password-store/x.gpg",
    ".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet/NuGet.Config", ".hex/hex.config", ".stripe/config.toml", ".config/stripe/x",
    ".fly/config.yml", ".vercel/auth.json", ".netlify/config.json", ".snowflake/config", ".databrickscfg", ".dbt/profiles.yml", "Documents/taxes.txt",
    ".config/doctl/config.yaml", ".oci/config", ".azure/x", ".jupyter/x", ".ipython/x", ".gitconfig", ".cargo/config.toml", ".config/pip/pip.conf",
    ".unheard-of/token",
)  # fmt: skip


async def test_of_the_home_only_tool_chains_are_seen(
    place: Ground, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PLANTED:
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"token = {CANARY}\n")
    shown = (".cargo/bin/tool", ".pyenv/versions/3.12/bin/tool", ".nvm/versions/node/v22/bin/tool", ".rustup/toolchains/x", ".cache/pip/x", "go/bin/tool",
             ".local/bin/tool", "go/pkg/mod/x", ".cargo/registry/x", ".cache/ms-playwright/x", "tools/node/bin/tool", "tools/node/lib/x")  # fmt: skip
    for name in shown:
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\necho works\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.home}/tools/node/bin:{os.environ['PATH']}")
    result = await bench.run(
        f"grep -ra {CANARY} {place.home}; cat {' '.join(f'~/{name}' for name in PLANTED)}; true"
    )
    assert CANARY not in result.text
    result = await bench.run(
        " && ".join(f"test -s ~/{name}" for name in shown) + " && tool && touch ~/.made && ls -a ~"
    )
    assert result.ok, result.text
    assert "works" in result.text
    assert not (place.home / ".made").exists()


async def test_credentials_stay_hidden_where_the_workspace_is_the_home_itself(
    place: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place.root))
    for name in (".ssh/id_rsa", ".aws/credentials", ".npmrc", ".config/gh/hosts.yml"):
        file = place.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{CANARY}\n")
    result = await Bench(place.root, SandboxSettings()).run(
        f"grep -ra {CANARY} . ~ ; python3 -c 'print(open(\".npmrc\").read())'"
    )
    assert CANARY not in result.text


@pytest.mark.parametrize("network", [False, True])
async def test_a_socket_of_another_process_is_not_reached(
    place: Ground, bench: Bench, monkeypatch: pytest.MonkeyPatch, *, network: bool
) -> None:
    listening: list[socket.socket] = []
    for folder in (
        place.home / ".1password",
        place.home / ".colima",
        place.root,
        place.other,
        place.root / "deep",
    ):
        folder.mkdir(exist_ok=True)
        one = socket.socket(socket.AF_UNIX)
        monkeypatch.chdir(folder)
        one.bind("agent.sock" if folder.name == "deep" else str(folder / "agent.sock"))
        one.listen()
        listening.append(one)
    (place.root / "try.py").write_text(
        "import os, socket, sys\n"
        "for folder in sys.argv[1:]:\n"
        "    try:\n        os.chdir(folder); socket.socket(socket.AF_UNIX).connect('agent.sock'); print('REACHED', folder)\n"
        "    except OSError as error:\n        print('no', error)\n"
    )
    result = await bench.run(
        f"python3 try.py ~/.1password ~/.colima {place.root} {place.other} {place.root}/deep", network=network
    )
    for one in listening:
        one.close()
    assert result.text.count("no ") >= 5, result.text
    assert "REACHED" not in result.text


MADE = (
    ".vscode/settings.json", ".vscode/tasks.json", ".daiku/config.toml", "AGENTS.md", ".github/workflows/x.yml", "x.code-workspace", ".mcp.json", ".envrc",
    ".husky/pre-commit", ".idea/workspace.xml", ".pre-commit-config.yaml", ".git/config.worktree", ".git/info/attributes", ".git/commondir",
    ".git/modules/x/config", ".git/worktrees/x/gitdir", ".git/hooks/pre-commit", "sub/.vscode/tasks.json", "pkg/AGENTS.md", ".clinerules", ".bashrc",
    "sitecustomize.py", "a/b/c/d/e/.envrc", "sub/.claude/settings.json", ".cursor/mcp.json", "deep/er/.npmrc", ".gitmodules", ".gitattributes",
    "sub/Jenkinsfile", "x/.git/config.worktree", ".git/objects/info/alternates", ".git/gitdir", ".git/unheard-of", "CLAUDE.md", ".zed/tasks.json",
    "pkg/.vimrc", ".devcontainer/devcontainer.json", ".gitlab-ci.yml", "build/.idea/runConfigurations/x.xml", ".VSCODE/tasks.json", "evil.pth",
)  # fmt: skip


@pytest.mark.parametrize("name", MADE)
async def test_a_protected_file_that_a_command_makes_takes_no_effect(
    place: Ground, bench: Bench, name: str
) -> None:
    place.git("init", "-q")
    (place.root / "evil.py").write_text(
        f"import pathlib\np = pathlib.Path({name!r})\np.parent.mkdir(parents=True, exist_ok=True)\np.write_text('[core]\\nfsmonitor=x')\n"
    )
    result = await bench.run("python3 evil.py")
    assert not (place.root / name).exists()
    if result.ok:  # else it could not even be made
        assert any(name.startswith(str(Path(p).relative_to(place.root))) for p in data(result)["putAside"])
        assert "Not in effect" in result.text
        assert any(
            isinstance(e, Notice) and e.level == "warning" and "Put aside" in e.text for e in bench.events
        )


@pytest.mark.parametrize("way", ["link", "rename", "folder", "by hard link", "in an earlier name"])
async def test_however_it_is_made(place: Ground, bench: Bench, way: str) -> None:
    ways = {
        "link": "import os; os.mkdir('x'); open('x/tasks', 'w').close(); os.symlink('x', '.vscode')",
        "rename": "import os; os.makedirs('x'); open('x/t', 'w').close(); os.rename('x', '.vscode')",
        "folder": "import os; os.makedirs('p/q'); os.makedirs('p/q/.idea/r'); open('p/q/.idea/r/x', 'w').close()",
        "by hard link": "import os; open('x', 'w').close(); os.link('x', 'AGENTS.md')",
        "in an earlier name": "import os; os.makedirs('a/.vscode'); open('a/.vscode/tasks.json', 'w').close(); os.rename('a', 'b')",
    }
    (place.root / "evil.py").write_text(ways[way])
    result = await bench.run("python3 evil.py")
    assert data(result)["putAside"]
    assert not [
        p
        for p in place.root.rglob("*")
        if p.name in (".vscode", "AGENTS.md") and os.path.lexists(p) and not p.is_dir()
    ]
    assert not list(place.root.rglob("tasks.json"))


@pytest.mark.parametrize("number", [3, 60])
async def test_protected_files_deep_in_the_tree_stay_as_they_are(
    place: Ground, bench: Bench, number: int
) -> None:
    files = [
        place.root / "src" / "deep" / f"pkg{at}" / name
        for at in range(number)
        for name in ("AGENTS.md", ".vscode/tasks.json")
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    (place.root / "evil.py").write_text(
        "import os, pathlib\n"
        "for p in [*pathlib.Path('.').rglob('AGENTS.md'), *pathlib.Path('.').rglob('tasks.json')]:\n"
        "    for act in (lambda: p.write_text('evil'), lambda: p.unlink() or p.write_text('evil')):\n"
        "        try:\n            act()\n        except OSError:\n            pass\n"
        "os.rename('src/deep', 'src/gone')\n"
        "for at in range(2):\n"
        "    os.makedirs(f'src/deep/pkg{at}/.vscode')\n"
        "    pathlib.Path(f'src/deep/pkg{at}/.vscode/tasks.json').write_text('evil')\n"
        "    pathlib.Path(f'src/deep/pkg{at}/AGENTS.md').write_text('evil')\n"
    )
    (place.root / "first.py").write_text((place.root / "evil.py").read_text().partition("os.rename")[0])
    assert (await bench.run("python3 first.py")).ok
    assert {file.read_text() for file in files} == {"mine"}
    result = await bench.run("python3 evil.py")
    assert result.ok, result.text
    assert not [
        p for p in place.root.rglob("*") if p.name != "evil.py" and p.is_file() and p.read_text() == "evil"
    ]
    for file in files:
        moved = place.root / "src" / "gone" / file.relative_to(place.root / "src" / "deep")
        assert not moved.exists() or moved.read_text() == "mine"


async def test_a_repository_that_is_turned_round_runs_nothing_for_the_person(
    place: Ground, bench: Bench
) -> None:
    place.git("init", "-q", "-b", "main")
    place.git("add", ".")
    place.git("commit", "-q", "-m", "first")
    (place.root / "conftest.py").write_text(
        "import os, shutil\n"
        "os.makedirs('.cache/c', exist_ok=True)\n"
        "for name in ('objects', 'refs'):\n    shutil.copytree(f'.git/{name}', f'.cache/c/{name}')\n"
        "shutil.copy('.git/HEAD', '.cache/c/HEAD')\n"
        "open('.cache/c/config', 'w').write('[core]\\nrepositoryformatversion = 0\\nbare = false\\nfsmonitor = \"touch PWNED; true\"\\n')\n"
        "open('.git/commondir', 'w').write('../.cache/c\\n')\n"
    )
    await bench.run("python3 conftest.py")
    place.git("status")
    place.git("commit", "-q", "--allow-empty", "-m", "second")
    assert not (place.root / "PWNED").exists()
    assert "first" in place.git("log", "--oneline")


@pytest.mark.parametrize(
    "todo", ["pick 1234567 x\nexec touch PWNED\n", "x touch PWNED\n", "  exec touch PWNED\n"]
)
async def test_a_rebase_that_nobody_began_runs_nothing(place: Ground, bench: Bench, todo: str) -> None:
    place.git("init", "-q")
    (place.root / "evil.py").write_text(
        f"import os\nos.mkdir('.git/rebase-merge')\nopen('.git/rebase-merge/git-rebase-todo', 'w').write({todo!r})\n"
    )
    await bench.run("python3 evil.py")
    assert not (place.root / ".git" / "rebase-merge").exists()


HARMLESS = [
    "git init -q x && git -C x status", "echo b >> a.txt && git add a.txt && git -c user.name=T -c user.email=t@x.org commit -q -m m && git log --oneline && git branch b && git stash list",
    "git clone -q . ../project/copy && git -C copy log --oneline", "mkdir -p node_modules/x/.github/workflows && echo x > node_modules/x/.github/workflows/ci.yml && echo y > node_modules/x/.npmrc",
    "mkdir -p venv/lib && touch venv/pyvenv.cfg venv/lib/x.pth && echo ok", "echo 'def test_x(): assert True' > test_x.py && python3 -c 'import test_x'",
    "mkdir .cache out && tar cf out/a.tar a.txt && tar xf out/a.tar -C out", "git tag v1 && git checkout -q -b topic && git checkout -q -", "echo x > .env.example",
    "git gc -q && git fsck", "git update-index --refresh; git write-tree",
]  # fmt: skip


@pytest.mark.parametrize("command", HARMLESS)
async def test_ordinary_work_is_left_alone(place: Ground, bench: Bench, command: str) -> None:
    place.git("init", "-q")
    place.git("add", ".")
    place.git("commit", "-q", "-m", "first")
    result = await bench.run(command)
    assert result.ok, result.text
    assert "putAside" not in data(result)


RUN_BY_GIT = {
    "clean filter": ["config", "filter.x.clean", "sh -c 'touch PWNED; cat'"],
    "process filter": ["config", "filter.x.process", "touch PWNED"],
    "alias": ["config", "alias.st", "!touch PWNED"],
    "alias of a setting": ["config", "alias.st", "-c core.fsmonitor='touch PWNED' status"],
    "file system monitor": ["config", "core.fsmonitor", "touch PWNED"],
    "transport": ["config", "core.sshCommand", "touch PWNED"],
    "upload": ["config", "remote.origin.uploadpack", "touch PWNED;"],
    "credentials": ["config", "credential.helper", "!touch PWNED"],
    "signing": ["config", "gpg.program", "./evil.sh"],
    "difference": ["config", "diff.external", "touch PWNED;"],
    "text": ["config", "diff.x.textconv", "touch PWNED;"],
    "editor": ["config", "core.editor", "touch PWNED;"],
    "pager": ["config", "core.pager", "touch PWNED;"],
    "submodule": ["config", "submodule.s.update", "!touch PWNED"],
}


@pytest.mark.parametrize("name", RUN_BY_GIT)
@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_git_that_is_allowed_runs_nothing_of_the_repository_s_choosing(
    place: Ground, name: str, sandbox: Any
) -> None:
    place.git("init", "-q")
    (place.root / "evil.sh").write_text("#!/bin/sh\ntouch PWNED\n")
    (place.root / "evil.sh").chmod(0o755)
    (place.root / ".gitattributes").write_text("* filter=x diff=x\n")
    place.git("add", ".")
    place.git("commit", "-q", "-m", "first")
    for more in (
        ["remote", "add", "origin", str(place.root)],
        ["config", "commit.gpgSign", "true"],
        RUN_BY_GIT[name],
    ):
        place.git(*more)
    (place.root / "a.txt").write_text("other\n")
    bench = Bench(place.root, SandboxSettings(mode=sandbox))
    for command in (
        "git status", "git diff", "git log -p", "git st", "git fetch origin", "git fetch ssh://localhost/x", "git ls-remote", "git stash list",
        "git -c user.name=T -c user.email=t@x.org commit -a -m m", "git add a.txt", "git submodule update", "git show", "git blame a.txt",
    ):  # fmt: skip
        await bench.run(command)
    assert not (place.root / "PWNED").exists()


@pytest.mark.parametrize("url", ["ext::touch PWNED", "file://."])
@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_an_object_that_is_missing_is_fetched_from_nowhere(
    place: Ground, url: str, sandbox: Any
) -> None:
    place.git("init", "-q")
    place.git("add", ".")
    place.git("commit", "-q", "-m", "first")
    for name, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"), ("remote.origin.promisor", "true"), ("remote.origin.url", url),
        ("protocol.ext.allow", "always"), ("remote.origin.uploadpack", "touch PWNED;"),
    ):  # fmt: skip
        place.git("config", name, value)
    for command in (
        f"git show {'1234567890' * 4}",
        f"git diff {'1234567890' * 4} HEAD",
        "git log -p",
        "git status",
    ):
        await Bench(place.root, SandboxSettings(mode=sandbox)).run(command)
    assert not (place.root / "PWNED").exists()


async def test_who_commits_is_known_in_the_sandbox_though_the_settings_of_the_home_are_hidden(
    place: Ground, bench: Bench
) -> None:
    settings = place.home / ".gitconfig"
    settings.write_text(f"[user]\n\tname = Ann Example\n\temail = ann@example.org\n[x]\n\ttoken = {CANARY}\n")
    result = await bench.run(
        "git init -q && git add . && git commit -qm m && cat ~/.gitconfig; git log -1 --format='%an %ae %cn'"
    )
    assert "Ann Example ann@example.org Ann Example" in result.text
    assert CANARY not in result.text
    settings.write_text("[user]\n\tname = Bob\n\temail = bob@example.org\n")
    assert (
        "Bob bob@"
        in (await bench.run("git commit -q --allow-empty -m m; git log -1 --format='%an %ae'")).text
    )
    place.git("config", "user.name", "The Project")
    result = await bench.run("git commit -q --allow-empty -m m; git log -1 --format='%an %ae'")
    assert "The Project bob@example.org" in result.text


@pytest.mark.parametrize("said", [RESTORE_CHOICE, LEAVE_CHOICE])
async def test_a_person_decides_what_takes_effect(place: Ground, bench: Bench, said: str) -> None:
    asked: list[str] = []

    async def ask(question: str, choices: tuple[str, ...]) -> Answer:
        asked.append(question)
        return Answer(said, choices.index(said))

    (place.root / "AGENTS.md").write_text("old")
    (place.root / "deep" / "er").mkdir(parents=True)
    context = replace(bench.context, ask=ask)
    (place.root / "make.py").write_text(
        "import os; os.mkdir('.vscode'); open('.vscode/tasks.json', 'w').write('{}')"
    )
    result = await run(RunArgs(command="python3 make.py"), context, bench.jobs)
    assert ".vscode" in asked[0]
    assert (place.root / ".vscode" / "tasks.json").exists() is (said == RESTORE_CHOICE)
    assert ("putAside" in data(result)) is (said == LEAVE_CHOICE)


async def test_what_the_person_changes_meanwhile_is_left_alone(place: Ground, bench: Bench) -> None:
    (place.root / "AGENTS.md").write_text("old")
    (place.root / "wait.py").write_text("import time, os\nwhile not os.path.exists('go'): time.sleep(0.02)\n")
    started = await bench.run("python3 wait.py", background=True)
    (place.root / "AGENTS.md").write_text("the person's")
    (place.root / "go").touch()
    job = bench.jobs.get("s", str(data(started)["id"]))
    assert job is not None
    await output(OutputArgs(id=str(data(started)["id"]), wait=10), bench.context, bench.jobs)
    await job.end()
    assert (place.root / "AGENTS.md").read_text() == "the person's"


async def test_a_background_command_is_looked_at_when_it_ends(place: Ground, bench: Bench) -> None:
    (place.root / "evil.py").write_text("open('AGENTS.md', 'w').write('obey')\n")
    started = await bench.run("python3 evil.py", background=True)
    assert "goes on when this run ends" in started.text
    job = bench.jobs.get("s", str(data(started)["id"]))
    assert job is not None
    while job.process.exit_code is None:
        await job.wait_for_output(1)
    await job.end()
    assert not (place.root / "AGENTS.md").exists()
    assert [each.place.name for each in job.aside] == ["AGENTS.md"]


async def test_a_command_that_is_stopped_is_looked_at_too(place: Ground, bench: Bench) -> None:
    (place.root / "evil.py").write_text("import time\nopen('AGENTS.md', 'w').write('obey')\ntime.sleep(60)\n")
    result = await bench.run("python3 evil.py", timeout=1.5)
    assert data(result)["exitCode"] == 124
    assert not (place.root / "AGENTS.md").exists()


async def test_without_a_sandbox_a_protected_file_that_was_made_is_told(place: Ground) -> None:
    bench = Bench(place.root, SandboxSettings(mode="off"))
    (place.root / "make.py").write_text("open('AGENTS.md', 'w').write('obey')")
    await bench.run("python3 make.py")
    assert (place.root / "AGENTS.md").exists()
    assert any(isinstance(e, Notice) and "AGENTS.md" in e.text for e in bench.events)


def test_what_was_there_is_not_taken_for_new_where_the_tree_is_too_large_to_be_seen_at_once(
    place: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(5):
        (place.root / f"p{at}").mkdir()
        (place.root / f"p{at}" / "AGENTS.md").write_text("mine")
    time.sleep(0.1)
    monkeypatch.setattr(tree, "LONGEST_SECONDS", -1.0)  # nothing at all is seen before
    earlier = before((place.root,))
    monkeypatch.undo()
    (place.root / "CLAUDE.md").write_text("new")
    assert not earlier.complete
    changed = changed_since(earlier)
    assert not changed.complete
    moved = quarantine(earlier, changed.places, place.base / "aside")
    assert [each.place.name for each in moved] == ["CLAUDE.md"]


@pytest.mark.parametrize("mode", ["auto", "off"])
async def test_a_tree_that_is_too_large_to_be_looked_at_is_said(
    place: Ground, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    bench = Bench(place.root, SandboxSettings(mode=mode))
    await bench.run("touch b")
    assert not [e for e in bench.events if isinstance(e, Notice) and e.text == TOO_LARGE_NOTE]
    monkeypatch.setattr(tree, "LONGEST_SECONDS", -1.0)
    await bench.run("touch c")
    assert [e.level for e in bench.events if isinstance(e, Notice) and e.text == TOO_LARGE_NOTE] == [
        "warning"
    ]


def test_a_large_tree_is_looked_at_quickly(place: Ground) -> None:
    for at in range(300):
        folder = place.root / f"p{at % 10}" / f"q{at}"
        folder.mkdir(parents=True)
        for number in range(30):
            (folder / f"file{number}.py").touch()
    looked = Tree(place.root)
    looked.look()
    time.sleep(0.06)  # folders that have just changed are read once more
    looked.look()
    assert looked.look().complete
    assert cpu_seconds(looked.look) < 0.05
    subprocess.run(["touch", str(place.root / "p1" / "q1" / "AGENTS.md")], check=True)
    assert list(looked.look().marks["protected"]) == [str(place.root / "p1" / "q1" / "AGENTS.md")]
