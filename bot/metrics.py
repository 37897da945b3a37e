"""What GET /metrics counts: acks by kind and time, decisions, refused clicks, and the backlog."""

import time
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

RETRY_REASONS = frozenset(
    {
        "connection_failed",
        "http_error",
        "http_timeout",
        "ssl_error",
        "timeout",
        "too_many_redirects",
        "unknown_error",
    }
)
ACK_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class Backlog:
    """What waits in the database, counted."""

    cards_behind: int
    notices_unposted: int
    approvals_pending: int

    def text(self) -> bytes:
        """It in the format that Prometheus reads."""
        registry = CollectorRegistry()
        for name, meaning, count in (
            ("cards_behind", "Copies of cards that do not show their row.", self.cards_behind),
            ("notices_unposted", "Messages that wait to be posted.", self.notices_unposted),
            ("approvals_pending", "Approvals that wait for people.", self.approvals_pending),
        ):
            Gauge(f"vistobueno_{name}", meaning, registry=registry).set(count)
        return generate_latest(registry)


class Metrics:
    """The counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._acks = Histogram(
            "vistobueno_ack_seconds",
            "Time from a request of Slack to its answer, by kind and HTTP status.",
            ["kind", "status"],
            buckets=ACK_BUCKETS,
            registry=self._registry,
        )
        self._decisions = Counter(
            "vistobueno_decisions", "Recorded decisions, by verdict.", ["verdict"], registry=self._registry
        )
        self._refused = Counter(
            "vistobueno_refused_clicks",
            "Clicks that changed nothing, by reason.",
            ["why"],
            registry=self._registry,
        )
        self._retries = Counter(
            "vistobueno_slack_retries",
            "Requests that Slack sent again, by its reason.",
            ["reason"],
            registry=self._registry,
        )
        self._connections = Gauge(
            "vistobueno_socket_connections",
            "Connections of this Slack app in Socket Mode, of all processes, as Slack last counted them.",
            registry=self._registry,
        )
        self._last_request = Gauge(
            "vistobueno_last_slack_request_timestamp_seconds",
            "When the last request of Slack came in, in seconds since 1970; 0 before the first.",
            registry=self._registry,
        )

    def ack(self, kind: str, status: int, seconds: float) -> None:
        """A request of Slack was answered."""
        self._acks.labels(kind, str(status)).observe(seconds)

    def retry(self, reason: str) -> None:
        """A request of Slack came again."""
        self._retries.labels(reason if reason in RETRY_REASONS else "other").inc()

    def connections(self, count: int) -> None:
        """Slack counted the connections of this app in Socket Mode."""
        self._connections.set(count)

    def request(self) -> None:
        """A request of Slack came in."""
        self._last_request.set(time.time())

    def decision(self, verdict: str) -> None:
        """A decision was recorded."""
        self._decisions.labels(verdict).inc()

    def refused(self, why: str) -> None:
        """A click changed nothing."""
        self._refused.labels(why).inc()

    def text(self, backlog: Backlog | None) -> bytes:
        """All of it in the format that Prometheus reads; None: nothing is known of the database now."""
        # left out rather than at its last value: an old number would look like a quiet house
        return generate_latest(self._registry) + (backlog.text() if backlog is not None else b"")
