"""Whose page a request comes from: pages of other sites may neither read this one nor press here."""

from urllib.parse import urlsplit

from starlette.requests import Request

from bot.sandbox.page.errors import CrossSiteError

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


def require_own_host(request: Request) -> None:
    """CrossSiteError unless the address is this machine's own: a foreign name could point here."""
    if urlsplit(f"//{request.headers.get('host', '')}").hostname not in LOCAL:
        raise CrossSiteError("This page answers under 127.0.0.1 and localhost only.")


def require_own_page(request: Request) -> None:
    """CrossSiteError unless the request was made by this page, which every browser says of a post."""
    require_own_host(request)
    if request.headers.get("origin") != f"http://{request.headers['host']}":
        raise CrossSiteError("Nothing was done: only this workspace's own page may write and press here.")
