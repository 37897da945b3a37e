"""The page in a browser: the workspace as any of its people sees it, and everything they can do in it."""

from bot.sandbox.page.site import Site

__all__ = ["Site"]
