import unittest

from stats import median, mode


class Middle(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(median([9, 1, 5]), 5)

    def test_even(self):
        self.assertEqual(median([1, 2, 3, 10]), 2.5)

    def test_none(self):
        with self.assertRaises(ValueError):
            median([])

    def test_modes(self):
        self.assertEqual(mode([3, 1, 3, 1, 2]), 1)


if __name__ == "__main__":
    unittest.main()
