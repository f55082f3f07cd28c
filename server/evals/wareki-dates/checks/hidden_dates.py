from datetime import date, timedelta

from wareki import parse, show


def refused(written):
    try:
        parse(written)
    except ValueError:
        return True
    return False


assert parse("令和元年5月1日") == date(2019, 5, 1)
assert parse("平成元年1月8日") == date(1989, 1, 8)
assert parse("令和５年１月２日") == date(2023, 1, 2)
assert parse("令和1年12月31日") == date(2019, 12, 31)
for wrong in ("平成31年5月1日", "令和元年4月30日", "昭和64年1月8日", "平成元年1月7日", "昭和元年12月24日", "令和0年1月1日", "平成40年1月1日"):
    assert refused(wrong), wrong
day = date(1926, 12, 25)
while day < date(2030, 1, 1):
    assert parse(show(day)) == day, day
    day += timedelta(days=13)
