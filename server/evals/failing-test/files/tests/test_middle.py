import unittest

from stats import median, mode


class Middle(unittest.TestCase):
    def test_the_median_of_an_odd_number_of_values_is_the_middle_one(self):
        self.assertEqual(median([9, 1, 5]), 5)

    def test_the_median_of_an_even_number_of_values_lies_between_the_two_in_the_middle(self):
        self.assertEqual(median([1, 2, 3, 10]), 2.5)

    def test_no_values_have_no_median(self):
        with self.assertRaises(ValueError):
            median([])

    def test_of_several_modes_the_smallest_counts(self):
        self.assertEqual(mode([3, 1, 3, 1, 2]), 1)


if __name__ == "__main__":
    unittest.main()
