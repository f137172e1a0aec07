"""Metrics of a client (rest_client_*)."""

from typing import Protocol


class RequestMetrics(Protocol):
    """Observes each request. ``method`` is the HTTP method, ``code`` the HTTP code or ``<error>``."""

    def answered(self, method: str, code: str, sent: int | None, *, attempt: int) -> None:
        """One attempt has ended; ``sent`` is the size of its body (None for a stream: it is not observed), ``attempt``
        counts from 0."""

    def finished(self, method: str, duration_s: float, received: int) -> None:
        """A request has ended, all its attempts and waits included."""

    def throttled(self, method: str, waited_s: float) -> None:
        """The client's rate limit delayed a request by so many seconds (0: not at all)."""


class NoMetrics:
    """Counts nothing."""

    def answered(self, method: str, code: str, sent: int | None, *, attempt: int) -> None:
        return None

    def finished(self, method: str, duration_s: float, received: int) -> None:
        return None

    def throttled(self, method: str, waited_s: float) -> None:
        return None


NO_METRICS = NoMetrics()


class SessionMetrics(Protocol):
    """Observes a session's connections."""

    def resolved(self, host: str, took_s: float) -> None:
        """A host name was resolved, or could not be."""

    def ca_looked_at(self, result: str, reason: str) -> None:
        """The CA file was checked for changes: success (unchanged, updated) or failure (read_error, empty, ...)."""


class NoSessionMetrics:
    """Counts nothing."""

    def resolved(self, host: str, took_s: float) -> None:
        return None

    def ca_looked_at(self, result: str, reason: str) -> None:
        return None


NO_SESSION_METRICS = NoSessionMetrics()


class PluginMetrics(Protocol):
    """Observes exec credential plugins, on any thread."""

    def called(self, code: int, status: str) -> None:
        """A plugin has run: its exit code (1 where it has none), and how that ended."""

    def shows(self, plugin: object, ends_s: float | None) -> None:
        """A plugin's certificate, with the Unix time of its end; None where it gives none."""

    def rotated(self, age_s: float) -> None:
        """A certificate of that age was replaced."""


class NoPluginMetrics:
    """Counts nothing."""

    def called(self, code: int, status: str) -> None:
        return None

    def shows(self, plugin: object, ends_s: float | None) -> None:
        return None

    def rotated(self, age_s: float) -> None:
        return None


NO_PLUGIN_METRICS = NoPluginMetrics()
