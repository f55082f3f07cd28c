"""A customer's basket."""

from shop.prices import quoted_price


class Basket:
    def __init__(self, currency="EUR"):
        self.currency = currency
        self.articles = []

    def put(self, article):
        self.articles.append(article)

    def lines(self):
        """The articles with their prices."""
        return [(article, quoted_price(article, self.currency)) for article in self.articles]
