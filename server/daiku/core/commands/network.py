"""Which commands are known to need the network."""

from __future__ import annotations

import re

from daiku.core.commands.bash import Word
from daiku.core.commands.wrappers import program

_PYTHON = re.compile(r"^(?:python|python3|python3\.\d+|py)$")

_NETWORK = frozenset(
    [
        "curl",
        "wget",
        "http",
        "https",
        "aria2c",
        "ssh",
        "scp",
        "sftp",
        "rsync",
        "ftp",
        "telnet",
        "nc",
        "ncat",
        "netcat",
        "socat",
        "ping",
        "ping6",
        "dig",
        "nslookup",
        "host",
        "whois",
        "traceroute",
        "tracepath",
        "mtr",
        "gh",
        "glab",
        "hub",
        "aws",
        "gcloud",
        "az",
        "kubectl",
        "helm",
        "heroku",
        "vercel",
        "netlify",
        "fly",
        "flyctl",
        "apt",
        "apt-get",
        "aptitude",
        "brew",
        "dnf",
        "yum",
        "zypper",
        "pacman",
        "apk",
        "snap",
        "flatpak",
        "npx",
        "pnpx",
        "bunx",
        "huggingface-cli",
        "rclone",
        "s3cmd",
        "ngrok",
        "terraform",
        "ansible",
        "vagrant",
        "docker",
        "podman",
    ]
)
_NETWORK_SECOND: dict[str, frozenset[str]] = {
    "git": frozenset(
        {"clone", "fetch", "pull", "push", "ls-remote", "submodule", "archive", "send-email", "svn", "lfs"}
    ),
    "npm": frozenset(
        [
            "install",
            "i",
            "ci",
            "add",
            "update",
            "up",
            "upgrade",
            "publish",
            "audit",
            "view",
            "info",
            "search",
            "outdated",
            "exec",
            "x",
            "create",
            "init",
            "login",
        ]
    ),
    "pnpm": frozenset(
        ["install", "i", "add", "update", "up", "dlx", "audit", "publish", "outdated", "create"]
    ),
    "yarn": frozenset(["install", "add", "up", "upgrade", "dlx", "audit", "publish", "npm", "create"]),
    "bun": frozenset(["install", "i", "add", "update", "upgrade", "x", "create", "publish"]),
    "pip": frozenset({"install", "download", "wheel", "index", "search"}),
    "pip3": frozenset({"install", "download", "wheel", "index", "search"}),
    "uv": frozenset({"add", "sync", "lock", "tool", "python", "pip", "publish"}),
    "poetry": frozenset({"install", "add", "update", "lock", "publish", "self"}),
    "pdm": frozenset({"install", "add", "update", "lock", "publish", "sync"}),
    "pipenv": frozenset({"install", "update", "lock", "sync"}),
    "cargo": frozenset({"install", "add", "update", "fetch", "publish", "search", "login"}),
    "go": frozenset({"get", "install", "mod"}),
    "gem": frozenset({"install", "update", "fetch", "push", "search"}),
    "bundle": frozenset({"install", "update", "add"}),
    "composer": frozenset({"install", "update", "require", "create-project"}),
    "dotnet": frozenset({"restore", "add", "nuget", "tool"}),
    "conda": frozenset({"install", "create", "update", "env"}),
}


def wants_network(words: tuple[Word, ...]) -> bool:
    """True where the program is known to need the network."""
    name = program(words)
    texts = [w.text for w in words[1:]]
    if _PYTHON.match(name) and texts[:2] == ["-m", "pip"]:
        name, texts = "pip", texts[2:]
    if name in _NETWORK:
        return True
    seconds = _NETWORK_SECOND.get(name)
    operands = [t for t in texts if not t.startswith("-")]
    return bool(seconds) and any(t in seconds for t in operands[:2])
