"""元号とその始まり。"""

from datetime import date

ERAS = (
    ("令和", date(2019, 5, 1)),
    ("平成", date(1989, 1, 8)),
    ("昭和", date(1926, 12, 25)),
)


def era_of(day):
    """その日の元号と年。"""
    for name, first in ERAS:
        if day >= first:
            return name, day.year - first.year + 1
    raise ValueError(f"昭和より前の日付です: {day}")
