"""和暦と西暦の変換。"""

from wareki.reading import parse
from wareki.writing import show

__all__ = ["parse", "show"]
