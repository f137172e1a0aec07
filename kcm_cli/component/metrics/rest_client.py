"""The rest_client_* metrics: bound once per host and verb, one call per request.

upstream: staging/src/k8s.io/component-base/metrics/prometheus/restclient/metrics.go
"""

import time
import weakref
from collections.abc import Iterator

import msgspec

from kcm_cli.component.metrics.families import Line
from kcm_cli.component.metrics.instruments import Counter, Description, Family, Gauge, Histogram
from kcm_cli.component.metrics.registry import Registry

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)
_AGES = (
    600.0,
    1800.0,
    3600.0,
    14400.0,
    86400.0,
    604800.0,
    2592000.0,
    7776000.0,
    15552000.0,
    31104000.0,
    124416000.0,
)
_HOST_VERB = ("host", "verb")
_STILL = "Never moves: kcm does not measure it."


class _Method(msgspec.Struct, frozen=True):
    """The series of one HTTP method to one host."""

    duration: Histogram
    rate_limiter: Histogram
    request_size: Histogram
    response_size: Histogram
    results: dict[str, Counter]


class HostMetrics:
    """The metrics of requests to one host. ``method``: GET. ``code``: 200, or <error>."""

    def __init__(self, host: str, families: "RestClientMetrics") -> None:
        self._host = host
        self._families = families
        self._methods: dict[str, _Method] = {}

    def answered(self, method: str, code: str, sent: int | None, *, attempt: int) -> None:
        """One attempt has ended; ``sent`` is the size of its body (None for a stream: it is not observed), ``attempt``
        counts from 0."""
        bound = self._methods.get(method) or self._bind(method)
        counter = bound.results.get(code)
        if counter is None:
            counter = bound.results[code] = self._families.results.labels(code, self._host, method)
        counter.value += 1
        if sent is not None:
            bound.request_size.observe(sent)
        if attempt:
            self._families.retries.labels(code, self._host, method).inc()

    def finished(self, method: str, duration_s: float, received: int) -> None:
        """A request has ended, all its attempts and waits included."""
        bound = self._methods.get(method) or self._bind(method)
        bound.duration.observe(duration_s)
        bound.response_size.observe(received)

    def throttled(self, method: str, waited_s: float) -> None:
        """The client's rate limit delayed a request by so many seconds (0: not at all)."""
        bound = self._methods.get(method) or self._bind(method)
        bound.rate_limiter.observe(waited_s)

    def _bind(self, method: str) -> _Method:
        families, host = self._families, self._host
        series = _Method(
            families.duration.labels(host, method),
            families.rate_limiter.labels(host, method),
            families.request_size.labels(host, method),
            families.response_size.labels(host, method),
            {},
        )
        return self._methods.setdefault(method, series)


class RestClientMetrics:
    """The rest_client_* families of one manager; ``host`` binds them for a client."""

    def __init__(self, registry: Registry) -> None:
        self._hosts: dict[str, HostMetrics] = {}
        seconds = _SECONDS
        self.duration = registry.histogram(
            "rest_client_request_duration_seconds",
            "Seconds from sending a request to its answer.",
            seconds,
            labels=_HOST_VERB,
        )
        self.rate_limiter = registry.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Seconds a request waited for the client's own rate limit.",
            seconds,
            labels=_HOST_VERB,
        )
        self.request_size = registry.histogram(
            "rest_client_request_size_bytes", "Size of request bodies in bytes.", _BYTES, labels=_HOST_VERB
        )
        self.response_size = registry.histogram(
            "rest_client_response_size_bytes", "Size of response bodies in bytes.", _BYTES, labels=_HOST_VERB
        )
        self.results = registry.counter(
            "rest_client_requests_total",
            "Number of requests, by the status code of the response.",
            labels=("code", "host", "method"),
        )
        self.retries = registry.counter(
            "rest_client_request_retries_total",
            "Number of retried requests, by the status code that caused the retry.",
            labels=("code", "host", "verb"),
        )
        self.transport = TransportMetrics.register(registry)
        self.exec_plugin = ExecPluginMetrics(registry)

    def host(self, host: str) -> HostMetrics:
        """The metrics of requests to a host (``10.0.0.1:6443``)."""
        metrics = self._hosts.get(host)
        return metrics if metrics is not None else self._hosts.setdefault(host, HostMetrics(host, self))


class TransportMetrics(msgspec.Struct, frozen=True):
    """Sessions with an API server: each is made once and shared by its clients."""

    entries: Gauge
    created: Counter
    ca_reloads: Family[Counter]
    resolutions: Family[Histogram]

    def opened(self, session: object) -> None:
        """A session was created; it counts as long as it is referenced."""
        self.created.inc()
        self.entries.inc()
        weakref.finalize(session, self.entries.dec).atexit = False

    def resolved(self, host: str, took_s: float) -> None:
        """A host name was resolved, or could not be."""
        self.resolutions.labels(host).observe(took_s)

    def ca_looked_at(self, result: str, reason: str) -> None:
        """The CA file was looked at again."""
        self.ca_reloads.labels(reason, result).inc()

    @classmethod
    def register(cls, registry: Registry) -> "TransportMetrics":
        """Declare the families."""
        registry.counter(
            "rest_client_transport_cert_rotation_gc_calls_total",
            f"Number of certificate watches that ended with their session. {_STILL}",
        ).labels()
        registry.counter(
            "rest_client_transport_cache_gc_calls_total",
            f"Number of attempts to drop an unused session. {_STILL}",
            labels=("result",),
        )
        return cls(
            registry.gauge("rest_client_transport_cache_entries", "Number of sessions.").labels(),
            registry.counter(
                "rest_client_transport_create_calls_total",
                "Number of created sessions.",
                labels=("result",),
            ).labels("miss"),
            registry.counter(
                "rest_client_transport_ca_reload_total",
                "Number of checks of the CA file for changes, by result.",
                labels=("reason", "result"),
            ),
            registry.histogram(
                "rest_client_dns_resolution_duration_seconds",
                "Seconds that resolving a host name took.",
                _SECONDS[:-1],
                labels=("host",),
            ),
        )


class TimeLeft(Gauge):
    """Seconds until the first of several Unix times, computed when it is read; +Inf without any."""

    __slots__ = ("ends",)

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[int, float] = {}

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Line]:
        first = min(list(self.ends.values()), default=None)
        yield name, labels, float("inf") if first is None else first - time.time()


class ExecPluginMetrics:
    """Metrics of exec credential plugins and their certificates."""

    def __init__(self, registry: Registry) -> None:
        """Declare the families."""
        self._left = registry.register(
            Description(
                "rest_client_exec_plugin_ttl_seconds",
                "gauge",
                "Seconds until the first certificate of a credential plugin expires. +Inf where none is shown.",
            ),
            TimeLeft,
        ).labels()
        registry.counter(
            "rest_client_exec_plugin_policy_call_total",
            f"Number of checks of credential plugins against the policy. {_STILL}",
            labels=("allowed", "denied"),
        )
        self._ages = registry.histogram(
            "rest_client_exec_plugin_certificate_rotation_age",
            "Seconds since a credential plugin's certificate became valid, when the next one replaced it.",
            _AGES,
        ).labels()
        self.calls = registry.counter(
            "rest_client_exec_plugin_call_total",
            "Number of runs of credential plugins, by result and exit code.",
            labels=("call_status", "code"),
        )

    def called(self, code: int, status: str) -> None:
        """A plugin has run: its exit code, and how that ended."""
        self.calls.labels(status, str(code)).inc()

    def shows(self, plugin: object, ends_s: float | None) -> None:
        """A plugin's certificate, with the Unix time of its end; None where it gives none."""
        if ends_s is None:
            self._left.ends.pop(id(plugin), None)
        else:
            self._left.ends[id(plugin)] = ends_s

    def rotated(self, age_s: float) -> None:
        """A certificate of that age was replaced."""
        self._ages.observe(age_s)
