"""An invoice: its lines, its tax, its total."""

from billing.money import share, shown


class Invoice:
    """Lines are added; amounts are in cents, the tax in percent."""

    def __init__(self, number, tax=19):
        self.number = number
        self.tax = tax
        self.lines = []

    def add(self, line):
        self.lines.append(line)
        return self

    @property
    def net(self):
        """Before tax."""
        return sum(line.amount for line in self.lines)

    @property
    def total(self):
        """With tax."""
        return self.net + share(self.net, self.tax)

    def text(self):
        """The invoice as lines of text."""
        rows = [f"Invoice {self.number}"]
        rows += [f"{line.count} x {line.article}: {shown(line.amount)}" for line in self.lines]
        rows.append(f"Net {shown(self.net)}, total {shown(self.total)}")
        return "\n".join(rows)
