"""Probes and lifecycle hooks of containers.

Source: pkg/apis/core/validation/validation.go#validateProbe, #validateHandler, #validateLifecycle.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, numbers, ports

_COUNTERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_LINUX_NAMES = """
ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP
TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX
"""
_LINUX_SIGNALS = sorted(
    [f"SIG{name}" for name in _LINUX_NAMES.split()]
    + [f"SIGRTMIN+{n}" for n in range(1, 16)]
    + [f"SIGRTMAX-{n}" for n in range(1, 15)]
)
_SIGNALS = {"windows": ["SIGKILL", "SIGTERM"], "linux": _LINUX_SIGNALS}


def validate_probes(container: Tree, grace_s: int | None, path: str) -> Errors:
    """The three probes of a container."""
    if (probe := container.get("livenessProbe")) is not None:
        yield from _probe(probe, grace_s, f"{path}.livenessProbe")
        yield from _once(probe, f"{path}.livenessProbe")
    if (probe := container.get("readinessProbe")) is not None:
        yield from _probe(probe, grace_s, f"{path}.readinessProbe")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None:
            place = f"{path}.readinessProbe.terminationGracePeriodSeconds"
            yield errors.invalid(place, grace, "must not be set for readinessProbes")
    if (probe := container.get("startupProbe")) is not None:
        yield from _probe(probe, grace_s, f"{path}.startupProbe")
        yield from _once(probe, f"{path}.startupProbe")


def _once(probe: Tree, path: str) -> Errors:
    threshold = probe.get("successThreshold", 0)
    return [] if threshold == 1 else [errors.invalid(f"{path}.successThreshold", threshold, "must be 1")]


def _probe(probe: Tree, grace_s: int | None, path: str) -> Errors:
    yield from _handler(probe, grace_s, path)
    yield from numbers.non_negative(probe, _COUNTERS, path)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        place = f"{path}.terminationGracePeriodSeconds"
        yield errors.invalid(place, grace, errors.NOT_POSITIVE)


def _handler(handler: Tree, grace_s: int | None, path: str) -> Errors:
    first = True
    for kind in _HANDLERS:
        action = handler.get(kind)
        if action is None:
            continue
        if first:
            yield from _action(kind, action, grace_s, f"{path}.{kind}")
            first = False
        else:
            yield errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
    if first:
        yield errors.required(path, "must specify a handler type")


def _action(kind: str, action: Tree, grace_s: int | None, path: str) -> Errors:
    match kind:
        case "exec":
            return [] if action.get("command") else [errors.required(f"{path}.command")]
        case "httpGet":
            return _http_get(action, path)
        case "tcpSocket":
            return ports.number_or_name(action.get("port", 0), f"{path}.port")
        case "grpc":
            return ports.number(action.get("port", 0), f"{path}.port")
        case _:
            return _sleep(action.get("seconds", 0), grace_s, path)


def _sleep(seconds: int, grace_s: int | None, path: str) -> Errors:
    if grace_s is None or 0 <= seconds <= grace_s:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
    return [errors.invalid(path, seconds, detail)]


def _http_get(action: Tree, path: str) -> Errors:
    if not action.get("path"):
        yield errors.required(f"{path}.path")
    yield from ports.number_or_name(action.get("port", 0), f"{path}.port")
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        yield errors.not_supported(f"{path}.scheme", scheme, ["HTTP", "HTTPS"])
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        yield from errors.invalid_each(f"{path}.httpHeaders", name, names.http_header_name(name))


def validate_lifecycle(lifecycle: Tree, grace_s: int | None, os: str | None, path: str) -> Errors:
    """Hooks and the stop signal."""
    for hook in ("postStart", "preStop"):
        handler = lifecycle.get(hook)
        if handler is not None:
            yield from _handler(handler, grace_s, f"{path}.{hook}")
    signal = lifecycle.get("stopSignal")
    if signal is not None:
        yield from _stop_signal(signal, os, f"{path}.stopSignal")


def _stop_signal(signal: str, os: str | None, path: str) -> Errors:
    if os is None:
        return [errors.forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    known = _SIGNALS.get(os)
    return [errors.not_supported(path, signal, known)] if known is not None and signal not in known else []
