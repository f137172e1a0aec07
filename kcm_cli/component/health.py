"""Named health checks, and the text that /healthz answers.

A check is a function that returns what is wrong, or None. It may be called from the server's thread while the
controllers run on theirs: it must read plain attributes only, and return at once.

upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go, controller-manager/pkg/healthz
"""

import logging
from collections.abc import Callable, Collection

import msgspec

from kcm_cli.component.metrics import Counter, Family, Gauge, Registry, Stability
from kcm_cli.machinery.quoting import quote

log = logging.getLogger(__name__)

PATH = "healthz"
"""What the checks of ``HealthChecks`` are called in texts and metrics, whatever path was asked for."""

Check = Callable[[], str | None]
"""Returns what is wrong, or None."""
Warnings = Callable[[], list[str]]
"""Returns warnings, a line each; they are listed and fail no check."""


def always_healthy() -> str | None:
    """A check that always passes, for something that is only unhealthy when it has ended."""
    return None


class Report(msgspec.Struct, frozen=True):
    """The result of all checks. ``lines`` name every check, without the reason of a failure."""

    lines: tuple[str, ...]
    failed: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.failed

    def text(self, *, verbose: bool) -> str:
        """The body to answer: always verbose on failure."""
        if not self.healthy:
            return f"{''.join(self.lines)}{PATH} check failed\n"
        warnings = "".join(f"warn: {warning}\n" for warning in self.warnings)
        return f"{''.join(self.lines)}{warnings}{PATH} check passed\n" if verbose else "ok"


class SliMetrics:
    """The families of /metrics/slis: the outcome of each check, updated whenever the checks are evaluated."""

    def __init__(self, registry: Registry) -> None:
        self._now: Family[Gauge] = registry.gauge(
            "kubernetes_healthcheck",
            "Whether the last run of a health check passed.",
            labels=("name", "type"),
            stability=Stability.STABLE,
        )
        self._total: Family[Counter] = registry.counter(
            "kubernetes_healthchecks_total",
            "Number of runs of each health check, by result.",
            labels=("name", "status", "type"),
            stability=Stability.STABLE,
        )

    def observe(self, name: str, path: str, *, healthy: bool) -> None:
        """Record the result of one check."""
        self._now.labels(name, path).set(1.0 if healthy else 0.0)
        self._total.labels(name, "success" if healthy else "error", path).inc()

    def reset(self) -> None:
        """Forget everything (DELETE on /metrics/slis)."""
        self._now.clear()
        self._total.clear()


class HealthChecks:
    """The checks of a process, in the order added; more may be added while the server runs."""

    def __init__(self, metrics: SliMetrics | None = None) -> None:
        self._metrics = metrics
        self._checks: tuple[tuple[str, Check], ...] = ()
        self._warnings: tuple[Warnings, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the checks in order."""
        return tuple(name for name, _ in self._checks)

    def add(self, name: str, check: Check) -> None:
        """Join a check. Raises ValueError if the name is taken."""
        if name in self.names:
            raise ValueError(f"health check {name} exists already")
        self._checks = (*self._checks, (name, check))

    def warn(self, warnings: Warnings) -> None:
        """Add warnings to the report."""
        self._warnings = (*self._warnings, warnings)

    def evaluate(self, excluded: Collection[str] = ()) -> Report:
        """Run all checks except for the excluded ones. Without checks there is one, ping, that passes."""
        lines: list[str] = []
        failed: list[str] = []
        for name, check in self._checks or (("ping", always_healthy),):
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
                continue
            why = check()
            if self._metrics is not None:
                self._metrics.observe(name, PATH, healthy=why is None)
            if why is None:
                lines.append(f"[+]{name} ok\n")
                continue
            lines.append(f"[-]{name} failed: reason withheld\n")
            failed.append(name)
            fields = {"check": name, "path": PATH, "err": why}
            log.info("Health check failed", extra={"fields": fields})
        lines.extend(self._unknown(excluded))
        return Report(tuple(lines), tuple(failed), tuple(line for warnings in self._warnings for line in warnings()))

    def _unknown(self, excluded: Collection[str]) -> tuple[str, ...]:
        unknown = sorted(set(excluded) - set(self.names or ("ping",)))
        if not unknown:
            return ()
        names = ", ".join(quote(name) for name in unknown)
        return (f"warn: some health checks cannot be excluded: no matches for {names}\n",)
