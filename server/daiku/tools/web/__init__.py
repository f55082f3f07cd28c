"""Web tools: search engines, pages as text, and research of up to three questions."""

from daiku.tools.web.client import Web
from daiku.tools.web.tools import build_web_tools

__all__ = ["Web", "build_web_tools"]
