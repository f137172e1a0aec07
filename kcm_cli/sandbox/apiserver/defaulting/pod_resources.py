"""Requests and limits of a whole pod, made up from those of its containers.

Source: pkg/apis/core/v1/defaults.go#defaultPodRequests, #defaultHugePagePodLimits; component-helpers resource.
"""

from kcm_cli.planning.pod_totals import aggregate, supported
from kcm_cli.sandbox.apiserver.types import Tree

_HUGE = "hugepages-"


def pod_level(spec: Tree) -> None:
    """Fill in what pod-level resources leave open."""
    own = spec["resources"]
    if own.get("limits") or own.get("requests"):
        _huge_page_limits(spec, own)
    if own.get("limits"):
        _requests(spec, own)


def _huge_page_limits(spec: Tree, own: Tree) -> None:
    limits = dict(own.get("limits") or {})
    for name, amount in aggregate(spec, "limits").items():
        if name.startswith(_HUGE) and name not in (own.get("requests") or {}):
            limits.setdefault(name, str(amount))
    if limits:
        own["limits"] = limits


def _requests(spec: Tree, own: Tree) -> None:
    requests = dict(own.get("requests") or {})
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, value in own["limits"].items():
        if supported(name):
            requests.setdefault(name, value)
    if requests:
        own["requests"] = requests
