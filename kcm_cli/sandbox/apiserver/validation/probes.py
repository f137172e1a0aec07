"""Probes and lifecycle hooks of containers.

upstream: pkg/apis/core/validation/validation.go#validateProbe, #validateHandler, #validateLifecycle
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, ports, rules

_SIGNALS = {"windows": ("SIGKILL", "SIGTERM"), "linux": rules.choices("core.v1.Lifecycle", "stopSignal")}


def validate_probes(container: Tree, grace_s: int | None, path: str) -> Errors:
    """The three probes of a container."""
    for kind, check in _PROBES.items():
        if (probe := container.get(kind)) is not None:
            place = f"{path}.{kind}"
            yield from _handler(probe, grace_s, place)
            yield from check(probe, place)


def _never(value: int, path: str) -> Errors:
    return [errors.invalid(path, value, "must not be set for readinessProbes")]


_COUNTERS = (
    *rules.counters("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"),
    rules.optional("terminationGracePeriodSeconds", rules.at_least(1, errors.NOT_POSITIVE)),
)
_RESTARTING = rules.fields(*_COUNTERS, rules.always("successThreshold", rules.between(1, 1, "must be 1"), default=0))
_PROBES = {
    "livenessProbe": _RESTARTING,
    "readinessProbe": rules.fields(*_COUNTERS, rules.optional("terminationGracePeriodSeconds", _never)),
    "startupProbe": _RESTARTING,
}


def _handler(handler: Tree, grace_s: int | None, path: str) -> Errors:
    given = [kind for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler.get(kind) is not None]
    if not given:
        yield errors.required(path, "must specify a handler type")
    for kind in given[:1]:
        if kind == "sleep":
            yield from _sleep(handler[kind].get("seconds", 0), grace_s, f"{path}.sleep")
        else:
            yield from _ACTIONS[kind](handler[kind], f"{path}.{kind}")
    for kind in given[1:]:
        yield errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")


def _sleep(seconds: int, grace_s: int | None, path: str) -> Errors:
    if grace_s is None or 0 <= seconds <= grace_s:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
    return [errors.invalid(path, seconds, detail)]


def _headers(headers: list[Tree], path: str) -> Errors:
    for header in headers:
        name = header.get("name", "")
        yield from errors.invalid_each(path, name, names.http_header_name(name))


_ACTIONS = {
    "exec": rules.fields(rules.required("command")),
    "httpGet": rules.fields(
        rules.required("path"),
        rules.always("port", ports.number_or_name, default=0),
        rules.always("scheme", rules.enum(*rules.choices("core.v1.HTTPGetAction", "scheme"))),
        rules.optional("httpHeaders", _headers),
    ),
    "tcpSocket": rules.fields(rules.always("port", ports.number_or_name, default=0)),
    "grpc": rules.fields(rules.always("port", ports.number, default=0)),
}


def validate_lifecycle(lifecycle: Tree, grace_s: int | None, os: str | None, path: str) -> Errors:
    """Hooks and the stop signal."""
    for hook in ("postStart", "preStop"):
        handler = lifecycle.get(hook)
        if handler is not None:
            yield from _handler(handler, grace_s, f"{path}.{hook}")
    signal = lifecycle.get("stopSignal")
    if signal is None:
        return
    if os is None:
        yield errors.forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`")
    elif os in _SIGNALS:
        yield from rules.enum(*_SIGNALS[os])(signal, f"{path}.stopSignal")
