"""The web: search engines, pages as text, and both at once for up to three questions."""

from daiku.tools.web.client import Web
from daiku.tools.web.tools import web_tools

__all__ = ["Web", "web_tools"]
