import unittest

from billing import Invoice, Line


class Invoices(unittest.TestCase):
    def test_the_total_is_the_net_amount_with_tax(self):
        invoice = Invoice("7").add(Line("Nail", 100, 3)).add(Line("Hammer", 1, 1950))
        self.assertEqual((invoice.net, invoice.total), (2250, 2678))

    def test_it_can_be_read(self):
        self.assertEqual(Invoice("7").add(Line("Saw", 2, 1005)).text(),
                         "Invoice 7\n2 x Saw: 20.10\nNet 20.10, total 23.92")
