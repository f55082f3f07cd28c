"""The programs and sub-commands that need the network."""

from __future__ import annotations

PROGRAMS = frozenset({
    "curl", "wget", "http", "https", "aria2c", "ssh", "scp", "sftp", "rsync", "ftp", "telnet", "nc", "ncat",
    "netcat", "socat", "ping", "ping6", "dig", "nslookup", "host", "whois", "traceroute", "tracepath", "mtr",
    "gh", "glab", "hub", "aws", "gcloud", "az", "kubectl", "helm", "heroku", "vercel", "netlify", "fly",
    "flyctl", "apt", "apt-get", "aptitude", "brew", "dnf", "yum", "zypper", "pacman", "apk", "snap",
    "flatpak", "pnpx", "bunx", "huggingface-cli", "rclone", "s3cmd", "ngrok", "terraform", "ansible",
    "vagrant", "docker", "podman",
})  # fmt: skip
SUBCOMMANDS: dict[str, frozenset[str]] = {
    "git": frozenset({
        "archive", "clone", "fetch", "lfs", "ls-remote", "pull", "push", "send-email", "submodule", "svn",
    }),
    "npm": frozenset({
        "add", "audit", "ci", "create", "exec", "i", "info", "init", "install", "login", "outdated", "publish",
        "search", "up", "update", "upgrade", "view", "x",
    }),
    "pnpm": frozenset({
        "add", "audit", "create", "dlx", "i", "install", "outdated", "publish", "up", "update",
    }),
    "yarn": frozenset({"add", "audit", "create", "dlx", "install", "npm", "publish", "up", "upgrade"}),
    "bun": frozenset({"add", "create", "i", "install", "publish", "update", "upgrade", "x"}),
    "pip": frozenset({"download", "index", "install", "search", "wheel"}),
    "pip3": frozenset({"download", "index", "install", "search", "wheel"}),
    "uv": frozenset({"add", "lock", "publish", "python", "sync", "tool"}),
    "poetry": frozenset({"add", "install", "lock", "publish", "self", "update"}),
    "pdm": frozenset({"add", "install", "lock", "publish", "sync", "update"}),
    "pipenv": frozenset({"install", "lock", "sync", "update"}),
    "cargo": frozenset({"add", "fetch", "install", "login", "publish", "search", "update"}),
    "go": frozenset({"get", "install", "mod"}),
    "gem": frozenset({"fetch", "install", "push", "search", "update"}),
    "bundle": frozenset({"add", "install", "update"}),
    "composer": frozenset({"create-project", "install", "require", "update"}),
    "dotnet": frozenset({"add", "nuget", "restore", "tool"}),
    "conda": frozenset({"create", "env", "install", "update"}),
}  # fmt: skip
"""Of programs that need it for some of their work only: the sub-commands that do."""
VERSION_WORDS = frozenset({"--version", "-v", "-V", "version", "--client", "--short", "--help", "-h", "help"})
"""Arguments with which every program only prints about itself."""
LOCAL: dict[str, tuple[tuple[str, ...], ...]] = {
    "git": (("submodule", "status"), ("submodule", "summary"), ("lfs", "ls-files"), ("lfs", "status")),
    "terraform": (("validate",), ("fmt",)),
    "kubectl": (("config",),),
    "helm": (("lint",), ("template",)),
    "go": (("mod", "graph"), ("mod", "why"), ("mod", "verify"), ("mod", "edit")),
}
"""Sub-commands that need no network, of programs that usually do."""
DOWNLOADS: dict[str, frozenset[str]] = {
    "pip": frozenset({"install", "download", "wheel", "index"}),
    "pip3": frozenset({"install", "download", "wheel", "index"}),
    "npm": frozenset({"install", "i", "ci", "add", "update", "audit", "outdated", "view", "info"}),
    "pnpm": frozenset({"install", "i", "add", "update", "outdated", "audit"}),
    "yarn": frozenset({"install", "add", "up", "upgrade"}),
    "bun": frozenset({"install", "add", "update"}),
    "uv": frozenset({"sync", "lock", "add"}),
    "poetry": frozenset({"install", "add", "update", "lock"}),
    "pdm": frozenset({"install", "add", "update", "lock", "sync"}),
    "pipenv": frozenset({"install", "sync", "update", "lock"}),
    "cargo": frozenset({"fetch", "add", "update"}),
    "go": frozenset({"mod"}),
    "gem": frozenset({"install", "update", "fetch"}),
    "bundle": frozenset({"install", "update", "add"}),
    "composer": frozenset({"install", "require", "update"}),
    "git": frozenset({"fetch", "pull"}),
}
"""Sub-commands that download from where the user's settings say and upload nothing of the project."""
