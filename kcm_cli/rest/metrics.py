"""What a client counts about its requests (rest_client_*)."""

from typing import Protocol


class RequestMetrics(Protocol):
    """Told about each request. ``method`` is the HTTP method, ``code`` the HTTP code or ``<error>``."""

    def answered(self, method: str, code: str, sent: int, *, attempt: int) -> None:
        """One attempt has ended; ``sent`` is the size of its body, ``attempt`` counts from 0."""

    def finished(self, method: str, duration_s: float, received: int) -> None:
        """A request has ended, all its attempts and waits included."""

    def throttled(self, method: str, waited_s: float) -> None:
        """The client's own limit held a request back for so long (0: not at all)."""


class NoMetrics:
    """Counts nothing."""

    def answered(self, method: str, code: str, sent: int, *, attempt: int) -> None:
        return None

    def finished(self, method: str, duration_s: float, received: int) -> None:
        return None

    def throttled(self, method: str, waited_s: float) -> None:
        return None


NO_METRICS = NoMetrics()
