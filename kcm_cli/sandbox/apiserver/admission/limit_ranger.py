"""LimitRanger: defaults and limits of the requests and limits of containers, pods and claims.

Updates are judged by what they change, and quantities are compared exactly, as upstream does since 1.38
(kubernetes#142170, #142171, #141348).

upstream: plugin/pkg/admission/limitranger/admission.go
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quantity import Quantity, from_json, make
from kcm_cli.planning.pod_resources import Amounts, amounts_of, spec_amounts
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.listers import Lister
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

LIMIT_RANGES = GVR("", "v1", "limitranges")
_ANNOTATION = "kubernetes.io/limit-ranger"
_CLAIM = "PersistentVolumeClaim"
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
        parts = list(_parts(attrs.obj or {}, attrs.resource.gvr.plural))
        known = {} if attrs.old is None else {part.key: part for part in _parts(attrs.old, attrs.resource.gvr.plural)}
        for stored in self._ranges.of(attrs.namespace):
            if problems := aggregated(_problems(_limits(stored.doc), parts, known)):
                raise denied(attrs, problems)


class _Part(msgspec.Struct, frozen=True):
    """What a limit may be about: a container (with its name), a pod or a claim."""

    kind: str
    name: str
    requests: Amounts
    limits: Amounts

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name

    def keeps(self, name: str, old: "_Part | None") -> bool:
        """Whether an update leaves a resource as it is. upstream, since 1.38: kubernetes#142170, #142171"""
        if old is None or (self.kind == _CLAIM and name not in self.requests):
            return False
        return self.requests.get(name) == old.requests.get(name) and self.limits.get(name) == old.limits.get(name)


def _parts(doc: Tree, plural: str) -> Iterator[_Part]:
    spec = doc["spec"]
    if plural != "pods":
        yield _Part(_CLAIM, "", amounts_of((spec.get("resources") or {}).get("requests")), {})
        return
    for key, _ in _CONTAINERS:
        for container in spec.get(key) or ():
            resources = container.get("resources") or {}
            requests, limits = amounts_of(resources.get("requests")), amounts_of(resources.get("limits"))
            yield _Part("Container", container.get("name", ""), requests, limits)
    yield _Part("Pod", "", spec_amounts(doc, "requests"), spec_amounts(doc, "limits"))


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


def _problems(limits: list[Tree], parts: list[_Part], known: Mapping[tuple[str, str], _Part]) -> Iterator[str]:
    """The texts about what an update changes, or a creation has."""
    for limit in limits:
        for part in parts:
            if part.kind == limit.get("type", ""):
                yield from _part_problems(limit, part, known.get(part.key))


def _part_problems(limit: Tree, part: _Part, old: _Part | None) -> Iterator[str]:
    above = _request_above if part.kind == _CLAIM else _above
    ratios = None if part.kind == _CLAIM else limit.get("maxLimitRequestRatio")
    for judge, bounds in ((_below, limit.get("min")), (above, limit.get("max")), (_out_of_ratio, ratios)):
        for name, bound in _sorted(bounds):
            if not part.keeps(name, old):
                yield from judge(part, name, bound)


def _sorted(values: Mapping[str, object] | None) -> Iterable[tuple[str, Quantity]]:
    return [(name, from_json(value)) for name, value in sorted((values or {}).items())]


def _below(part: _Part, name: str, bound: Quantity) -> Iterator[str]:
    text = f"minimum {name} usage per {part.kind} is {bound}"
    request, limit = part.requests.get(name), part.limits.get(name)
    if request is None:
        yield f"{text}.  No request is specified"
    elif request < bound:
        yield f"{text}, but request is {request}"
    elif limit is not None and limit < bound:
        yield f"{text}, but limit is {limit}"


def _above(part: _Part, name: str, bound: Quantity) -> Iterator[str]:
    text = f"maximum {name} usage per {part.kind} is {bound}"
    request, limit = part.requests.get(name), part.limits.get(name)
    if limit is None:
        yield f"{text}.  No limit is specified"
    elif limit > bound:
        yield f"{text}, but limit is {limit}"
    elif request is not None and request > bound:
        yield f"{text}, but request is {request}"


def _request_above(part: _Part, name: str, bound: Quantity) -> Iterator[str]:
    text = f"maximum {name} usage per {part.kind} is {bound}"
    request = part.requests.get(name)
    if request is None:
        yield f"{text}.  No request is specified"
    elif request > bound:
        yield f"{text}, but request is {request}"


def _out_of_ratio(part: _Part, name: str, bound: Quantity) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {part.kind} is {bound}"
    request, limit = part.requests.get(name), part.limits.get(name)
    if not request:
        yield f"{text}, but no request is specified or request is 0"
    elif not limit:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit > make(request.amount * bound.amount, request.scale + bound.scale):
        finest = min(request.scale, limit.scale)
        asked = request.scaled_value(finest)
        millionths = (2 * 10**6 * limit.scaled_value(finest) + asked) // (2 * asked)
        yield f"{text}, but provided ratio is {millionths // 10**6}.{millionths % 10**6:06}"
