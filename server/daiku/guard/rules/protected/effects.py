"""Find what a file's text makes tools do when they open or install it: fetch an address, run a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.work.patches import Patch
from daiku.guard.rules.protected.formats import (
    find_preview_addresses,
    json_strings,
    markdown_pictures,
    notebook_pictures,
    toml_schemas,
    xml_addresses,
    yaml_schemas,
)
from daiku.guard.rules.protected.names import list_names, spellings
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

Kind = Literal["schema", "picture", "install_script", "git_hook"]
READABLE = lazy(
    r"\.(?:json[c5l]?|ya?ml|toml|md|markdown|mdown|mkdn?|mdwn|mdx|qmd|rmd|ipynb|xml|xsd|xslt?|svg|x?html?|wsdl|pom|plist"
    r"|\w*proj|props|targets|config|resx|xaml|fxml|rng|dtd|\w*rc|webmanifest|geojson|code-\w+)$",
    re.IGNORECASE,
)
"""Names of files whose readers fetch or run something because of what stands in them."""
LARGEST_TEXT = 4_000_000
"""Characters of a text that are read; an editor does not fetch anything for larger ones."""
LONGEST_DETAIL = 200
"""Characters of an address or script that are shown."""
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdwn", ".mdx", ".qmd", ".rmd")
_YAML, _HTML = (".yaml", ".yml"), (".html", ".htm", ".xhtml")
_XML = (
    ".xml", ".xsd", ".xsl", ".xslt", ".wsdl", ".pom", ".plist", "proj", ".props", ".targets", ".resx", ".xaml", ".fxml",
    ".rng", ".dtd",
)  # fmt: skip
_XML_START = lazy(r"\s*<(?:\?xml|!DOCTYPE\s+(?!html\b))", re.IGNORECASE)
_JSON_START = lazy(r"(?>(?:\s++|//[^\n]*+|/\*.*?\*/)*)[{\[]", re.DOTALL)
_LIFECYCLE = frozenset(
    ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare", "prepack", "postpack",
     "dependencies", "dependencieshook", "dependencies:hook", "pnpm:devpreinstall"]
)  # fmt: skip
_COMPOSER = lazy(
    r"(?:pre|post)-(?:install|update|status|archive|autoload|root-package|create-project|package|operations|dependencies)"
    r"[\w-]*|command|init|pre-\w+-\w+"
)
_GIT_HOOKS = frozenset(
    ["husky", "simple-git-hooks", "githooks", "pre-commit", "ghooks", "lint-staged", "yorkie"]
)
_MANIFEST_LINE = lazy(r"(?:^[ \t]+|[{,][ \t]*)[\"']?([\w:-]+)[\"']?\s*:\s*(\S[^,}\n]*)", re.MULTILINE)
_SCHEMA_HOSTS = list_names("schema hosts")
"""Publishers of common schemas: nobody else sees what an editor asks them."""
_PICTURE_HOSTS = list_names("picture hosts")
"""Hosts of badges and of pictures in repositories: nobody else sees what an editor asks them."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a text makes a tool do: the kind, and the address or script."""

    kind: Kind
    detail: str

    @property
    def runs_code(self) -> bool:
        """True if a script is run; False if an address is fetched."""
        return self.kind in ("install_script", "git_hook")


def find_effects(path: str, content: str) -> frozenset[Effect]:
    """Return what tools do because of `content`, read as their readers parse a file named `path`."""
    if len(content) > LARGEST_TEXT:
        return frozenset()
    names = {parts[-1] for parts in spellings(path) if parts}
    content = content.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return frozenset(effect for name in names for effect in _effects(name, content))


def is_manifest(name: str) -> bool:
    """Return True if a package manager runs scripts of a file with this name."""
    return name.casefold() in ("package.json", "package.json5", "package.yaml", "composer.json")


def _effects(name: str, content: str) -> Iterator[Effect]:
    if name.endswith(".ipynb"):
        yield from _remote("picture", notebook_pictures(content), _PICTURE_HOSTS)
    elif name.endswith(_MARKDOWN):
        yield from _remote("picture", markdown_pictures(content), _PICTURE_HOSTS)
    elif name.endswith(_YAML):
        yield from _remote("schema", yaml_schemas(content), _SCHEMA_HOSTS)
    elif name.endswith(".toml"):
        yield from _remote("schema", toml_schemas(content), _SCHEMA_HOSTS)
    elif name.endswith(".svg"):
        yield from _remote("schema", xml_addresses(content), _SCHEMA_HOSTS)
        yield from _remote("picture", find_preview_addresses(content, xml=True), _PICTURE_HOSTS)
    elif name.endswith(_XML) or _XML_START.match(content):
        yield from _remote("schema", xml_addresses(content), _SCHEMA_HOSTS)
    elif not name.endswith(_HTML) and _JSON_START.match(content):
        named = (value for path, value in _keyed(content) if path[-1] in ("$schema", "$ref"))
        yield from _remote("schema", named, _SCHEMA_HOSTS)
    if is_manifest(name):
        yield from _scripts(name, content)


def _keyed(content: str) -> Iterator[tuple[tuple[str, ...], str]]:
    if any(mark in content for mark in ("$schema", "$ref", "\\")):
        yield from ((path, value) for path, value in json_strings(content) if path)


def _scripts(name: str, content: str) -> Iterator[Effect]:
    if name.endswith(".yaml"):
        pairs = ((("scripts", found[1]), found[2]) for found in _MANIFEST_LINE.finditer(content))
    else:
        pairs = json_strings(content)
    for path, value in pairs:
        low = tuple(part.casefold() for part in path)
        if low[:1] == ("scripts",) and len(low) == 2:
            runs = _COMPOSER.fullmatch(low[1]) if name == "composer.json" else low[1] in _LIFECYCLE
            if runs and value.strip():
                yield Effect("install_script", f"{path[1]}: {value}")
        elif low == ("packagemanager",) and "://" in value:
            yield Effect("install_script", f"{path[0]}: {value}")
        elif low and low[0] in _GIT_HOOKS and name != "composer.json":
            yield Effect("git_hook", f"{'.'.join(path)}: {value}")


def _remote(kind: Kind, addresses: Iterator[str], known: tuple[str, ...]) -> Iterator[Effect]:
    for address in addresses:
        host = remote_host(address)
        # Even a known publisher of schemas need not be told anything.
        asks = kind == "schema" and "?" in address
        if host and (asks or not any(host == each or host.endswith(f".{each}") for each in known)):
            yield Effect(kind, address.strip())


_PARTS = lazy(r"(?:(?P<scheme>[a-z][a-z0-9+.-]+):)?(?P<slashes>/*)(?P<host>[^/?#]*)", re.IGNORECASE)
_BLANKS = lazy(r"[\x00-\x20\x7f-\xa0]+")


def remote_host(address: str) -> str:
    """Return the host that a reader of `address` would ask, lower-cased; empty if it stays on this machine."""
    found = _PARTS.match(_BLANKS.sub("", address).replace("\\", "/"))
    if found is None:
        return ""
    scheme, slashes = (found["scheme"] or "").lower(), len(found["slashes"])
    host = found["host"].rpartition("@")[2].casefold()
    host = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
    if scheme in ("http", "https", "ftp", "ftps", "ws", "wss", "smb"):
        return host or "?"
    if scheme == "file":  # with a host, Windows asks another machine
        return host if (slashes == 2 and host not in ("", "localhost")) or slashes > 3 else ""
    return host if not scheme and slashes >= 2 else ""


def new_effects(path: str, content: str, old_path: str = "", old: str | None = None) -> tuple[Effect, ...]:
    """Return what `content` at `path` makes tools do that `old` at `old_path` did not."""
    found = find_effects(path, content)
    if found and old is not None:
        found -= find_effects(old_path or path, old)
    return tuple(sorted(found, key=lambda effect: (effect.kind, effect.detail)))


def explain_new_effects(path: str, content: str, old_path: str = "", old: str | None = None) -> Text:
    """Describe the first of `new_effects`; empty if there are none."""
    return next(map(describe_effect, new_effects(path, content, old_path, old)), NO_TEXT)


def describe_effect(effect: Effect) -> Text:
    """Say what a tool would do."""
    detail = (
        effect.detail if len(effect.detail) <= LONGEST_DETAIL else effect.detail[: LONGEST_DETAIL - 1] + "…"
    )
    detail = detail.encode("utf-8", "replace").decode()
    match effect.kind:
        case "schema":
            return text("protected.remote_schema", address=detail)
        case "picture":
            return text("protected.remote_picture", address=detail)
        case "install_script":
            return text("protected.install_script", script=detail)
        case "git_hook":
            return text("protected.hook_setting", setting=detail)


def explain_patch_effects(patch: Patch) -> Text:
    """Return what the files of `patch` make tools do that they did not before; empty if nothing."""
    for change in patch.files:
        name = change.to or change.path
        if change.new is not None and (why := explain_new_effects(name, change.new, change.path, change.old)):
            return text("guard.of_path", path=name, why=why)
    return NO_TEXT
