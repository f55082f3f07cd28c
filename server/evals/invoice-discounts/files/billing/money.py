"""Amounts in cents."""


def share(amount, percent):
    """So many percent (a whole number) of an amount, rounded as docs/rounding.md says."""
    whole, rest = divmod(amount * percent, 100)
    return whole + (1 if rest >= 50 else 0)


def shown(amount):
    """An amount as people read it: 1234 is 12.34."""
    return f"{amount // 100}.{amount % 100:02d}"
