"""Rates of exchange."""

RATES = {"EUR": 1.0, "USD": 1.1, "JPY": 162.0}


def rate(currency):
    return RATES[currency]
