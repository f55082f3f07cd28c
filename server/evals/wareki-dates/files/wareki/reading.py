"""和暦の日付を読む。"""

import re
from datetime import date

from wareki.eras import ERAS

_FORM = re.compile(r"(\D+?)([0-9]+)年([0-9]+)月([0-9]+)日")


def parse(written):
    """「令和5年1月2日」を date にする。読めなければ ValueError。"""
    found = _FORM.fullmatch(written.strip())
    if found is None:
        raise ValueError(f"日付ではありません: {written}")
    era, year, month, day = found[1], *map(int, found.groups()[1:])
    for name, first in ERAS:
        if name == era:
            return date(first.year + year - 1, month, day)
    raise ValueError(f"元号ではありません: {era}")
