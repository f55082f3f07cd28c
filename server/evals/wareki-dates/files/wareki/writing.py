"""日付を和暦で書く。"""

from wareki.eras import era_of


def show(day):
    """「令和5年1月2日」の形にする。"""
    name, year = era_of(day)
    return f"{name}{'元' if year == 1 else year}年{day.month}月{day.day}日"
