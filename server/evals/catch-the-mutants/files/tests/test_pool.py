import unittest

from leases.pool import Pool


class Pools(unittest.TestCase):
    def test_something_can_be_borrowed(self):
        self.assertIn(Pool(["a"], 10, lambda: 0).borrow("me"), ["a"])
