"""Invoices: lines, tax, totals."""

from billing.invoice import Invoice
from billing.lines import Line

__all__ = ["Invoice", "Line"]
