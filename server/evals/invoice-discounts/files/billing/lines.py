"""One line of an invoice."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """So many of an article, at a price in cents."""

    article: str
    count: int
    price: int

    @property
    def amount(self):
        """The amount in cents."""
        return self.count * self.price
