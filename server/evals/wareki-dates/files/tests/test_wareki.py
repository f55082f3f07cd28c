import unittest
from datetime import date

from wareki import parse, show


class Wareki(unittest.TestCase):
    def test_読む(self):
        self.assertEqual(parse("令和5年1月2日"), date(2023, 1, 2))
        self.assertEqual(parse(" 昭和64年1月7日 "), date(1989, 1, 7))

    def test_書く(self):
        self.assertEqual(show(date(2023, 1, 2)), "令和5年1月2日")

    def test_読めないもの(self):
        for wrong in ("2023年1月2日", "令和5年13月1日", "大化5年1月1日", "令和-1年1月1日"):
            with self.assertRaises(ValueError):
                parse(wrong)
