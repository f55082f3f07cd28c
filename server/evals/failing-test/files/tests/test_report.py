import unittest

from stats.report import report


class Report(unittest.TestCase):
    def test_every_number_has_its_line(self):
        self.assertEqual([line.split()[0] for line in report([1, 2, 3]).splitlines()],
                         ["median", "mode", "spread", "variance"])


if __name__ == "__main__":
    unittest.main()
