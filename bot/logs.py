"""Log lines on stderr: for people on a terminal, as JSON elsewhere; never a payload of Slack."""

import logging
import sys

import structlog

# Below ERROR these print whole request bodies, which hold people's words and response URLs.
QUIET = ("slack_bolt", "slack_sdk")
# What these say at INFO is of no use to who runs the house.
CALM = ("alembic", "anthropic", "apscheduler", "httpx", "httpx2", "uvicorn.error")


def configure(level: str) -> None:
    """Send the house's log lines and those of libraries to stderr from `level` on."""
    terminal = sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        # plain tracebacks: the other kind prints local variables, and secrets with them
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if terminal
        else structlog.processors.JSONRenderer()
    )
    exceptions = [] if terminal else [structlog.processors.format_exc_info]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, *exceptions, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *exceptions, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in CALM:
        logging.getLogger(name).setLevel(max(logging.getLevelName(level), logging.WARNING))
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
