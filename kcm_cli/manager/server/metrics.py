"""The metrics of serving, authentication and authorization.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/metrics.go, pkg/authentication/token/cache/stats.go,
pkg/authentication/authenticatorfactory/metrics.go, pkg/authorization/authorizerfactory/metrics.go
"""

import msgspec

from kcm_cli.component.metrics import (
    DEFAULT_BUCKETS,
    Counter,
    Family,
    Gauge,
    Histogram,
    Registry,
    exponential_buckets,
)

_LATENCY = exponential_buckets(0.001, 2, 15)
_DELEGATED = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_DAY = 86400.0
_EXPIRATION = (
    0.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY,
    180 * _DAY, 360 * _DAY,
)  # fmt: skip


class ReviewMetrics(msgspec.Struct, frozen=True):
    """The requests to the API server that authenticate or authorize a request. Label: the answer's code."""

    total: Family[Counter]
    duration: Family[Histogram]

    def observe(self, code: str, seconds: float) -> None:
        """Count a request that ended with this code, or ``<error>``."""
        self.total.labels(code).inc()
        self.duration.labels(code).observe(seconds)

    @classmethod
    def register(cls, registry: Registry, kind: str, what: str) -> "ReviewMetrics":
        """Register the metrics. ``kind``: authn or authz."""
        prefix = f"apiserver_delegated_{kind}_request"
        return cls(
            registry.counter(f"{prefix}_total", f"Requests for {what}, by answer.", labels=("code",)),
            registry.histogram(
                f"{prefix}_duration_seconds", f"Seconds that {what} took, by answer.", _DELEGATED, labels=("code",)
            ),
        )


class TokenCacheMetrics(msgspec.Struct, frozen=True):
    """The cache of token reviews. Labels: hit or miss; ok or error; blocked or in_flight."""

    requests: Family[Counter]
    duration: Family[Histogram]
    fetches: Family[Counter]
    active: Family[Gauge]

    @classmethod
    def register(cls, registry: Registry) -> "TokenCacheMetrics":
        """Register the metrics."""
        prefix = "authentication_token_cache"
        labels = ("status",)
        return cls(
            registry.counter(f"{prefix}_request_total", "Number of token lookups.", labels=labels),
            registry.histogram(
                f"{prefix}_request_duration_seconds", "Seconds that looking a token up took.", DEFAULT_BUCKETS,
                labels=labels,
            ),
            registry.counter(f"{prefix}_fetch_total", "Number of token reviews sent to the API server.", labels=labels),
            registry.gauge(f"{prefix}_active_fetch_count", "Number of token reviews in progress.", labels=labels),
        )  # fmt: skip


class AuthMetrics(msgspec.Struct, frozen=True):
    """The metrics of authentication and authorization."""

    users: Family[Counter]
    attempts: Family[Counter]
    duration: Family[Histogram]
    authorizations: Family[Counter]
    authorization_duration: Family[Histogram]
    certificate_expiration: Histogram
    token_cache: TokenCacheMetrics
    token_reviews: ReviewMetrics
    access_reviews: ReviewMetrics

    @classmethod
    def register(cls, registry: Registry) -> "AuthMetrics":
        """Register the metrics."""
        result = ("result",)
        return cls(
            registry.counter("authenticated_user_requests", "Requests by known users.", labels=("username",)),
            registry.counter("authentication_attempts", "Requests by outcome of authentication.", labels=result),
            registry.histogram(
                "authentication_duration_seconds", "Seconds that authentication took.", _LATENCY, labels=result
            ),
            registry.counter("authorization_attempts_total", "Requests by outcome of authorization.", labels=result),
            registry.histogram(
                "authorization_duration_seconds", "Seconds that authorization took.", _LATENCY, labels=result
            ),
            registry.histogram(
                "apiserver_client_certificate_expiration_seconds",
                "Seconds for which the client certificates of requests are still good.",
                _EXPIRATION,
            ).labels(),
            TokenCacheMetrics.register(registry),
            ReviewMetrics.register(registry, "authn", "token reviews"),
            ReviewMetrics.register(registry, "authz", "access reviews"),
        )


_KNOWN_USERS = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))


def compressed(username: str) -> str:
    """The value of the label ``username``, one of few."""
    if username in _KNOWN_USERS:
        return username
    return "email_id" if "@" in username else "other"
