"""LimitRanger: defaults and limits of the requests and limits of containers, pods and claims.

upstream: plugin/pkg/admission/limitranger/admission.go
"""

from collections.abc import Iterable, Iterator, Mapping

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quantity import ZERO, Quantity, from_json
from kcm_cli.planning.pod_resources import Amounts, amounts_of, spec_amounts
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.listers import Lister
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

LIMIT_RANGES = GVR("", "v1", "limitranges")
_ANNOTATION = "kubernetes.io/limit-ranger"
_MAX_MILLI = (1 << 63) // 1000
_CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


class LimitRanger:
    """See the module. Handles pods (create, resize) and claims (create, update)."""

    def __init__(self, store: Store) -> None:
        self._ranges = Lister(store, LIMIT_RANGES)

    def admit(self, attrs: Attributes) -> None:
        """Fill in the defaults of a pod's containers."""
        if self._ranges.empty(attrs.namespace) or _deleting(attrs.old):
            return
        pod: Tree = attrs.obj or {}
        for stored in self._ranges.of(attrs.namespace):
            _set_defaults(pod, _limits(stored.doc))

    def validate(self, attrs: Attributes) -> None:
        """Check a pod or claim. Raises ApiError 403."""
        if self._ranges.empty(attrs.namespace) or _deleting(attrs.old):
            return
        problems_of = _pod_problems if attrs.resource.gvr.plural == "pods" else _claim_problems
        for stored in self._ranges.of(attrs.namespace):
            if problems := aggregated(problems_of(attrs.obj or {}, _limits(stored.doc))):
                raise denied(attrs, problems)


def _limits(limit_range: Tree) -> list[Tree]:
    return (limit_range.get("spec") or {}).get("limits") or []


def _deleting(old: Tree | None) -> bool:
    return old is not None and old["metadata"].get("deletionTimestamp") is not None


def _set_defaults(pod: Tree, limits: list[Tree]) -> None:
    defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            defaults["requests"] |= limit.get("defaultRequest") or {}
            defaults["limits"] |= limit.get("default") or {}
    if not (defaults["requests"] or defaults["limits"]):
        return
    notes: list[str] = []
    for key, word in _CONTAINERS:
        for container in pod["spec"].get(key) or ():
            for field, name in (("requests", "request"), ("limits", "limit")):
                added = _fill(container, field, defaults[field])
                if added:
                    notes.append(f"{', '.join(sorted(added))} {name} for {word} {container['name']}")
    if notes:
        metadata: Tree = pod["metadata"]
        note = f"LimitRanger plugin set: {'; '.join(notes)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _ANNOTATION: note}


def _fill(container: Tree, field: str, defaults: Mapping[str, str]) -> list[str]:
    resources: Tree = container.setdefault("resources", {})
    known: Mapping[str, str] = resources.get(field) or {}
    added = [name for name in defaults if name not in known]
    if added:
        resources[field] = {**known, **{name: defaults[name] for name in added}}
    return added


def _pod_problems(pod: Tree, limits: list[Tree]) -> Iterator[str]:
    for limit in limits:
        kind = limit.get("type", "")
        if kind == "Container":
            for key, _ in _CONTAINERS:
                for container in pod["spec"].get(key) or ():
                    resources = container.get("resources") or {}
                    requests = amounts_of(resources.get("requests"))
                    yield from _problems(limit, requests, amounts_of(resources.get("limits")))
        elif kind == "Pod":
            yield from _problems(limit, spec_amounts(pod, "requests"), spec_amounts(pod, "limits"))


def _claim_problems(claim: Tree, limits: list[Tree]) -> Iterator[str]:
    requests = amounts_of((claim["spec"].get("resources") or {}).get("requests"))
    for limit in limits:
        if limit.get("type") != "PersistentVolumeClaim":
            continue
        for name, bound in _sorted(limit.get("min")):
            yield from _below("PersistentVolumeClaim", name, bound, requests, {})
        for name, bound in _sorted(limit.get("max")):
            yield from _request_above(name, bound, requests)


def _problems(limit: Tree, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = limit["type"]
    for name, bound in _sorted(limit.get("min")):
        yield from _below(kind, name, bound, requests, limits)
    for name, bound in _sorted(limit.get("max")):
        yield from _above(kind, name, bound, requests, limits)
    for name, bound in _sorted(limit.get("maxLimitRequestRatio")):
        yield from _out_of_ratio(kind, name, bound, requests, limits)


def _sorted(values: Mapping[str, object] | None) -> Iterable[tuple[str, Quantity]]:
    return [(name, from_json(value)) for name, value in sorted((values or {}).items())]


def _below(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    text = f"minimum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        yield f"{text}.  No request is specified"
        return
    asked, given, least = _comparable(request, limit or ZERO, bound)
    if asked < least:
        yield f"{text}, but request is {request}"
    elif limit is not None and given < least:
        yield f"{text}, but limit is {limit}"


def _above(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        yield f"{text}.  No limit is specified"
        return
    asked, given, most = _comparable(request or ZERO, limit, bound)
    if given > most:
        yield f"{text}, but limit is {limit}"
    elif request is not None and asked > most:
        yield f"{text}, but request is {request}"


def _request_above(name: str, bound: Quantity, requests: Amounts) -> Iterator[str]:
    text = f"maximum {name} usage per PersistentVolumeClaim is {bound}"
    request = requests.get(name)
    if request is None:
        yield f"{text}.  No request is specified"
        return
    asked, _, most = _comparable(request, ZERO, bound)
    if asked > most:
        yield f"{text}, but request is {request}"


def _out_of_ratio(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    asked, given, _ = _comparable(requests.get(name, ZERO), limits.get(name, ZERO), bound)
    if not asked:
        yield f"{text}, but no request is specified or request is 0"
    elif not given:
        yield f"{text}, but no limit is specified or limit is 0"
    else:
        ratio = given / asked
        milli = bound.value() <= _MAX_MILLI
        if (ratio * 1000 if milli else ratio) > float(bound.milli_value() if milli else bound.value()):
            yield f"{text}, but provided ratio is {ratio:.6f}"


def _comparable(request: Quantity, limit: Quantity, bound: Quantity) -> tuple[int, int, int]:
    """The values in thousandths, or in whole units if one is too large for thousandths."""
    three = (request, limit, bound)
    if all(each.value() <= _MAX_MILLI for each in three):
        asked, given, enforced = (each.milli_value() for each in three)
    else:
        asked, given, enforced = (each.value() for each in three)
    return asked, given, enforced
