from billing import Discount, Invoice, Line

invoice = Invoice("9", tax=0).add(Line("Pin", 1, 5)).add(Line("Tack", 1, 5))
invoice.discount(Discount("a", percent=25)).discount(Discount("b", percent=25))
assert invoice.net == 5, invoice.net  # 10 - 3 (2.5 up) = 7, 7 - 2 (1.75 up) = 5
one = Invoice("10", tax=10).add(Line("Pin", 3, 5)).add(Line("Tack", 1, 5))
one.discount(Discount("c", percent=10, article="Pin")).discount(Discount("d", amount=100, article="Tack"))
assert one.net == 13, one.net  # 15 - 2 (1.5 up) for the pins, the tacks for nothing
assert one.total == 14, one.total
