"""Which addresses of the web are public, whatever way they are written in."""

from __future__ import annotations

from daiku.guard.rules.protected.addresses import (
    WebUrl,
    explain_local,
    explain_not_public,
    parse_url,
    same_site,
)
from tests.cases import for_each

INSIDE = [
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://0/",
    "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/", "http://[2001:0:101:101::80ff:fffe]/", "http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://[fe80::1]/",
    "http://10.0.0.8/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.100.100.200/", "http://192.0.0.192/",
    "http://168.63.129.16/", "http://224.0.0.1/", "http://255.255.255.255/", "http://localhost/", "http://LOCALHOST./",
    "http://a.localhost/", "http://metadata.google.internal/", "http://printer.local/", "http://router/",
]  # fmt: skip


@for_each("url", INSIDE)
def test_what_is_inside_is_known_by_its_letters(url: str) -> None:
    place = parse_url(url)
    assert isinstance(place, WebUrl)
    assert explain_local(place)


@for_each(
    "url",
    [
        "http://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "https://example.com/",
        "http://例え.jp/",
        "http://a.b.c:81/x",
    ],
)
def test_what_is_outside_is_let_through(url: str) -> None:
    place = parse_url(url)
    assert isinstance(place, WebUrl)
    assert explain_local(place) == ""


@for_each(
    "url",
    [
        "file:///etc/passwd", "ftp://example.com/", "gopher://x.com/", "javascript:alert(1)", "data:text/html,x", "//example.com/x",
        "http://user:pw@example.com/", "http://good.com@evil.com/", "http://evil.com\\@good.com/", "http://good.com\n.evil.com/",
        "http://", "http:///x", "http://a..b/", "http://a b.com/", "http://exa%6dple.com/", "http://[fe80::1%25eth0]/",
        "http://a.com:99999/", "http://[::1", "http://" + "a" * 5000 + ".com/",
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_or_is_no_web_address_is_refused(url: str) -> None:
    assert isinstance(parse_url(url), str)


def test_a_place_is_written_in_one_way() -> None:
    place = parse_url(" HTTPS://Example.COM:8443/a?b#c ")
    assert place == WebUrl("https://example.com:8443/a?b", "https", "example.com", 8443)
    japanese = parse_url("http://例え.jp")
    assert isinstance(japanese, WebUrl)
    assert (japanese.url, japanese.port) == ("http://xn--r8jz45g.jp/", 80)


def test_addresses_that_are_none_are_not_public() -> None:
    assert explain_not_public("nonsense")
    assert explain_not_public("9999::1")


def test_one_site_is_one_host() -> None:
    assert same_site("www.example.com", "example.com")
    assert not same_site("example.com", "example.com.evil.net")
