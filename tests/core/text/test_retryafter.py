"""`Retry-After` headers, as seconds and as a date."""

from __future__ import annotations

from datetime import UTC, datetime

from daiku.texts.rules.retryafter import parse_retry_after
from tests.cases import for_each

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@for_each(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    ],
)
def test_headers_say_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers, NOW) == seconds
