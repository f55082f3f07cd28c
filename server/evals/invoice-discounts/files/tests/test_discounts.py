import unittest

from billing import Discount, Invoice, Line


class Discounts(unittest.TestCase):
    def setUp(self):
        self.invoice = Invoice("8", tax=0).add(Line("Plane", 1, 10000)).add(Line("Glue", 2, 500))

    def test_a_discount_in_percent_is_taken_of_the_net_amount(self):
        self.invoice.discount(Discount("Spring", percent=10))
        self.assertEqual(self.invoice.net, 9900)

    def test_a_fixed_discount_never_goes_below_nothing(self):
        self.invoice.discount(Discount("Gift", amount=20000))
        self.assertEqual((self.invoice.net, self.invoice.total), (0, 0))

    def test_discounts_are_taken_in_their_order(self):
        self.invoice.discount(Discount("Gift", amount=1000)).discount(Discount("Spring", percent=50))
        self.assertEqual(self.invoice.net, 5000)

    def test_a_discount_may_be_for_one_article(self):
        self.invoice.discount(Discount("Sticky week", percent=50, article="Glue"))
        self.assertEqual(self.invoice.net, 10500)

    def test_each_discount_has_its_line_with_what_it_took(self):
        self.invoice.discount(Discount("Spring", percent=10)).discount(Discount("Gift", amount=500))
        self.assertEqual(self.invoice.text().splitlines()[3:],
                         ["Spring: -11.00", "Gift: -5.00", "Net 94.00, total 94.00"])

    def test_a_discount_is_either_in_percent_or_an_amount(self):
        for wrong in ({}, {"percent": 10, "amount": 5}, {"percent": 101}, {"percent": -1}, {"amount": -1}):
            with self.assertRaises(ValueError):
                Discount("Wrong", **wrong)
