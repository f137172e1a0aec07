"""Conversion of built-in resources that are stored as another version: events.k8s.io and autoscaling/v1.

Requests are converted to the stored form, and back for responses. Metadata is not converted.

upstream: pkg/apis/events/v1/conversion.go (v1.36)
"""

from collections.abc import Callable

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.kinds.autoscaling import v1 as autoscaling_v1
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.types import Tree

_EVENT_NAMES = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
)
_TO_CORE = dict(_EVENT_NAMES)
_FROM_CORE = {core: ours for ours, core in _EVENT_NAMES}
_EVENT_ALWAYS: Tree = {"reportingComponent": "", "reportingInstance": ""}
"""Fields without omitempty in the core form."""
_EVENT_OPTIONAL = frozenset(["reportingComponent", "reportingInstance", "message", "reason", "action"])


def to_storage(served: Served, doc: Tree) -> Tree:
    """The document in the stored form. Custom objects are converted in ``crd``."""
    if not served.converts or served.info.custom:
        return doc
    return _CONVERTERS[served.info.gvr][0](doc)


def from_storage(served: Served, doc: Tree) -> Tree:
    """A stored document in the resource's form. Does not change ``doc``."""
    if not served.converts or served.info.custom:
        return doc
    return _CONVERTERS[served.info.gvr][1](doc)


def _event_to_core(doc: Tree) -> Tree:
    find = _TO_CORE.get
    core = {find(key, key): value for key, value in doc.items()}
    return {**_EVENT_ALWAYS, **core, "apiVersion": "v1"}


def _event_from_core(doc: Tree) -> Tree:
    find = _FROM_CORE.get
    ours = {find(key, key): value for key, value in doc.items() if value or key not in _EVENT_OPTIONAL}
    return {**ours, "apiVersion": "events.k8s.io/v1"}


_CONVERTERS: dict[GVR, tuple[Callable[[Tree], Tree], Callable[[Tree], Tree]]] = {
    GVR("events.k8s.io", "v1", "events"): (_event_to_core, _event_from_core),
    GVR("autoscaling", "v1", "horizontalpodautoscalers"): (autoscaling_v1.to_v2, autoscaling_v1.from_v2),
}
