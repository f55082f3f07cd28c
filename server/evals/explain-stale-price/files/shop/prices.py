"""Prices of articles in cents."""

from shop.expiring import Expiring

_prices = {}
_listeners = []
quotes = Expiring(600)


def set_price(article, cents):
    """Change a price; whoever listens hears of it."""
    _prices[article] = cents
    for listener in _listeners:
        listener(article)


def on_change(listener):
    _listeners.append(listener)


def price_of(article):
    """The price as it is now."""
    return _prices[article]


def quoted_price(article, currency="EUR"):
    """The price in another currency; rates are slow to ask for, so it is kept for a while."""
    return quotes.get((article, currency), lambda: _convert(price_of(article), currency))


def _convert(cents, currency):
    from shop.rates import rate

    return round(cents * rate(currency))
