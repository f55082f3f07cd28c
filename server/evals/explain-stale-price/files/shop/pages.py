"""What customers see."""

from shop.basket import Basket
from shop.prices import on_change, price_of, quotes

_pages = {}


def product_page(article):
    """The page of an article; made once, until its price changes."""
    if article not in _pages:
        _pages[article] = f"{article}: {price_of(article)}"
    return _pages[article]


def _price_changed(article):
    _pages.pop(article, None)
    quotes.forget(article)


on_change(_price_changed)


def basket_page(basket: Basket):
    return "\n".join(f"{article}: {cents}" for article, cents in basket.lines())
