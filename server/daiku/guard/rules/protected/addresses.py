"""Parse web addresses strictly, and detect those that point to this machine or a private network."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

from daiku.dataclass import dataclass
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

MAX_URL = 4000
_LOCAL_NAMES = (
    "localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "localdomain", "home.arpa",
)  # fmt: skip
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL = IPv6Network("2000::/3")
_CLOUD_HOSTS = (IPv4Network("168.63.129.16/32"), IPv4Network("192.0.0.0/24"))
"""Addresses that look public and answer with a cloud's metadata."""
_NUMBER = lazy(r"^(?:0x[0-9a-f]*|\d+)$", re.IGNORECASE)
_LABEL = re.compile(r"^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$")


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A web address that can mean only one thing. `host` is ASCII and lower case, IPv6 without brackets."""

    url: str
    scheme: str
    host: str
    port: int
    address: str = ""
    """The host as an IP address where it is one, whatever way it was written in."""


def parse_url(address: str) -> WebUrl | Text:
    """Parse `address` strictly; return an error if it is not an allowed web address. Does no DNS lookup."""
    address = address.strip()
    if len(address) > MAX_URL:
        return text("web.too_long")
    if any(char.isspace() or ord(char) < 32 or char == "\\" for char in address):
        return text("web.wrong_characters")
    try:
        parts = urlsplit(address)
        port, name = parts.port, parts.hostname or ""
    except ValueError:
        return text("web.not_web")
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https"):
        return text("web.only_http", scheme=scheme or address.partition(":")[0][:20] or "this")
    if "@" in parts.netloc:
        return text("web.has_user")
    host = _ascii_host(name)
    if not host:
        return text("web.no_host")
    literal = _literal(host)
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port is None else f"{shown}:{port}"
    url = urlunsplit(SplitResult(scheme, netloc, parts.path or "/", parts.query, ""))
    return WebUrl(url, scheme, host, port or (443 if scheme == "https" else 80), literal)


def explain_local(place: WebUrl) -> Text:
    """Return why the host is local, by its address or name alone; "" if it is public. Does no DNS lookup."""
    if place.address:
        return explain_not_public(place.address)
    name = place.host.rstrip(".")
    if any(name == local or name.endswith("." + local) for local in _LOCAL_NAMES):
        return text("web.local_name", name=name)
    if "." not in name:
        return text("web.not_public_name", name=name)
    return NO_TEXT


def explain_not_public(address: str) -> Text:
    """Why `address` (IPv4 or IPv6) is not a public one; "" where it is. IPv4 inside IPv6 counts as itself."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return text("web.not_an_address", address=address)
    if isinstance(ip, IPv6Address):
        if (inner := _inner(ip)) is not None:
            return explain_not_public(str(inner))
        if ip not in _GLOBAL and not (ip.is_loopback or ip.is_link_local or ip.is_private):
            return text("web.reserved", address=address)
    if ip.is_loopback or ip.is_unspecified:
        return text("web.this_machine", address=address)
    if ip.is_link_local or any(ip in network for network in _CLOUD_HOSTS):
        return text("web.link_local", address=address)
    if ip.is_multicast:
        return text("web.multicast", address=address)
    if not ip.is_global:
        return text("web.private", address=address)
    return NO_TEXT


def same_site(one: str, other: str) -> bool:
    """Report whether both hosts are equal, ignoring `www.`."""
    return one.removeprefix("www.") == other.removeprefix("www.")


def _inner(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that traffic to `ip` is routed to."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return None


def _ascii_host(host: str) -> str:
    host = host.lower()
    if ":" in host:
        try:  # a zone (fe80::1%eth0) means nothing beyond this machine
            return str(ip_address(host)) if "%" not in host else ""
        except ValueError:
            return ""
    try:
        host = host.encode("idna").decode("ascii").lower() if not host.isascii() else host
    except UnicodeError:
        return ""
    labels = host.removesuffix(".").split(".")
    return host if len(host) <= 253 and all(_LABEL.match(label) for label in labels) else ""


def _literal(host: str) -> str:
    """Return the address that the C library parses `host` as, including 127.1, 0x7f000001, and 017700000001."""
    if ":" in host:
        return host
    parts = host.removesuffix(".").split(".")
    if not all(_NUMBER.match(part) for part in parts) or len(parts) > 4:
        return ""
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return "0.0.0.0"  # noqa: S104  # written like an address and none: refused as this machine
    *head, last = numbers
    value = last
    for index, number in enumerate(head):
        value += (number & 0xFF) << (24 - 8 * index)
    return str(IPv4Address(value & 0xFFFF_FFFF))


def _number(text: str) -> int:
    if text.lower().startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text.startswith("0") else 10)
