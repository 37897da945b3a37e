"""What a browser shows at the sandbox's address: what it is, and what there is to do instead of clicking."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>vistobueno: the demo's local Slack</title>
<style>
  :root { color-scheme: light dark }
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 2rem auto; padding: 0 1rem }
  h1 { font-size: 1.375rem; line-height: 1.25 }
  code { font-size: 1rem; overflow-wrap: anywhere }
</style>
<h1>The demo&rsquo;s local Slack workspace</h1>
<p>Here the bot of <code>make demo</code> works, on this machine only: it calls this address as it would call
Slack, and is sent signed events and clicks as Slack would send them.</p>
<p>There is no page to click in yet.</p>
<p>To see the whole story &ndash; 38 refunds that became 41 &ndash; run <code>make demo ARGS=--play</code>:
it is lived unattended, with the same workspace, and told step by step in the terminal.</p>
</html>
"""


async def show_page(request: Request) -> Response:
    """The page."""
    return HTMLResponse(PAGE)
