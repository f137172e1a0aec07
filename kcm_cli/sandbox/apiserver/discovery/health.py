"""The health endpoints, with a list of checks (``verbose``) and a path for each check.

The checks have upstream's names, for probes of single checks. All of them always succeed.

upstream: apiserver pkg/server/healthz/healthz.go
"""

from collections.abc import Mapping

from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.registry.responses import text_response
from kcm_cli.sandbox.apiserver.routing.routes import PLAIN_404

_HOOKS = """
    start-apiserver-admission-initializer generic-apiserver-start-informers priority-and-fairness-config-consumer
    priority-and-fairness-filter storage-object-count-tracker-hook start-apiextensions-informers
    start-apiextensions-controllers crd-informer-synced start-system-namespaces-controller
    peer-endpoint-reconciler-controller start-cluster-authentication-info-controller
    start-kube-apiserver-identity-lease-controller start-kube-apiserver-identity-lease-garbage-collector
    storage-readiness start-legacy-token-tracking-controller start-service-ip-repair-controllers rbac/bootstrap-roles
    scheduling/bootstrap-system-priority-classes priority-and-fairness-config-producer bootstrap-controller
    start-kubernetes-service-cidr-controller start-kube-aggregator-informers
    apiservice-status-local-available-controller apiservice-status-remote-available-controller
    apiservice-registration-controller apiservice-wait-for-first-sync apiservice-discovery-controller
    kube-apiserver-autoregistration
    """
_LATER_HOOKS = "apiservice-openapi-controller apiservice-openapiv3-controller"


_OF_CHECK = {"content-type": "text/plain; charset=utf-8"}


def _hooks(names: str) -> tuple[str, ...]:
    return tuple(f"poststarthook/{name}" for name in names.split())


_STARTED = (*_hooks(_HOOKS), "autoregister-completion", *_hooks(_LATER_HOOKS))
_LIVE = ("ping", "log", "loopback-serving-certificate", "etcd", *_STARTED)
CHECKS: Mapping[str, tuple[str, ...]] = {
    "healthz": _LIVE,
    "livez": _LIVE,
    "readyz": ("ping", "log", "informer-sync", *_STARTED, "shutdown"),
}
"""The checks of each endpoint, in order."""


def paths() -> set[str]:
    """The paths of the endpoints and their checks."""
    return {f"/{probe}" for probe in CHECKS} | {f"/{probe}/{check}" for probe in CHECKS for check in CHECKS[probe]}


def answer(request: Request, probe: str, check: str) -> Response:
    """The response of an endpoint, or of one of its checks."""
    checks = CHECKS[probe]
    if request.path.endswith("/"):
        return text_response(404, PLAIN_404)
    if check:
        return Response(200, _OF_CHECK, b"ok") if check in checks else text_response(404, PLAIN_404)
    if not any(key == "verbose" for key, _ in request.query):
        return text_response(200, "ok")
    excluded = {value for key, value in request.query if key == "exclude"}
    lines = [f"[+]{one} excluded: ok\n" if one in excluded else f"[+]{one} ok\n" for one in checks]
    if unknown := sorted(excluded.difference(checks)):
        listed = ",".join(quote(name) for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}\n")
    return text_response(200, "".join(lines) + f"{probe} check passed\n")
