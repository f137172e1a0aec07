"""Plugins for pods: Priority, DefaultTolerationSeconds, RuntimeClass, PodTopologyLabels, PodResizeValidator.

upstream: plugin/pkg/admission/{priority,defaulttolerationseconds,runtimeclass,podtopologylabels,podresize}
"""

from collections.abc import Mapping

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import NOT_READY, REGION, UNREACHABLE, ZONE
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.quantity import ZERO, from_json
from kcm_cli.machinery.quoting import quote
from kcm_cli.planning.pod_resources import amounts_of, charged_amounts
from kcm_cli.sandbox.apiserver.admission.denial import denied, invalid_name
from kcm_cli.sandbox.apiserver.admission.listers import Lister
from kcm_cli.sandbox.apiserver.errors import plain
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.trees import put
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

PRIORITY_CLASSES = GVR("scheduling.k8s.io", "v1", "priorityclasses")
RUNTIME_CLASSES = GVR("node.k8s.io", "v1", "runtimeclasses")
NODES = GVR("", "v1", "nodes")
_TOPOLOGY = (ZONE, REGION)
_MOST_MERGED = 200


class Priority:
    """Resolves the PriorityClass of pods, and allows only one default class."""

    def __init__(self, store: Store) -> None:
        self._classes = Lister(store, PRIORITY_CLASSES)

    def admit(self, attrs: Attributes) -> None:
        """Set priority and preemptionPolicy of a new pod. Raises ApiError 403."""
        spec: Tree = (attrs.obj or {})["spec"]  # type: ignore[assignment]  # pods have a spec
        name, value, policy = self._resolve(attrs, spec.get("priorityClassName") or "")
        if name:
            spec["priorityClassName"] = name
        given = spec.get("priority")
        if given is not None and given != value:
            raise denied(
                attrs,
                f"the integer value of priority ({given}) must not be provided in pod spec; priority admission "
                f"controller computed {value} from the given PriorityClass name",
            )
        spec["priority"] = value
        if policy is None:
            return
        given_policy = spec.get("preemptionPolicy")
        if given_policy is not None and given_policy != policy:
            raise denied(
                attrs,
                f"the string value of PreemptionPolicy ({given_policy}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name",
            )
        spec["preemptionPolicy"] = policy

    def keep(self, attrs: Attributes) -> None:
        """Keep the priority of a pod if an update does not set it."""
        new: Tree = (attrs.obj or {})["spec"]  # type: ignore[assignment]  # pods have a spec
        old: Tree = (attrs.old or {})["spec"]  # type: ignore[assignment]  # pods have a spec
        for key in ("priority", "preemptionPolicy"):
            if new.get(key) is None and old.get(key) is not None:
                new[key] = old[key]

    def validate_class(self, attrs: Attributes) -> None:
        """Raises ApiError 403 for a second default class."""
        if not (attrs.obj or {}).get("globalDefault"):
            return
        default = self._default()
        if default is None or (attrs.operation == "UPDATE" and default["metadata"]["name"] == attrs.name):
            return
        name = default["metadata"]["name"]
        raise denied(attrs, f"PriorityClass {name} is already marked as default. Only one default can exist")

    def _resolve(self, attrs: Attributes, name: str) -> tuple[str, int, str | None]:
        if name:
            found = self._classes.get("", name)
            if found is None:
                raise denied(attrs, f"no PriorityClass with name {name} was found")
        else:
            found = self._default()
            if found is None:
                return "", 0, "PreemptLowerPriority"
            name = found["metadata"]["name"]
        return name, found.get("value", 0), found.get("preemptionPolicy")

    def _default(self) -> Tree | None:
        """The default class; of several the one with the lowest value."""
        classes: list[Tree] = [stored.doc for stored in self._classes.of()]
        defaults = [each for each in classes if each.get("globalDefault")]
        return min(defaults, key=lambda each: int(each.get("value", 0)), default=None)


def default_tolerations(attrs: Attributes) -> None:
    """DefaultTolerationSeconds: pods tolerate nodes that are not ready or unreachable for five minutes."""
    spec: Tree = (attrs.obj or {})["spec"]  # type: ignore[assignment]  # pods have a spec
    tolerations: list[Tree] = spec.get("tolerations") or []
    missing = {NOT_READY, UNREACHABLE}
    for each in tolerations:
        if each.get("effect") in (None, "", "NoExecute"):
            key = each.get("key")
            missing = missing - {key} if key else set()
    if missing:
        added = [_toleration(key) for key in (NOT_READY, UNREACHABLE) if key in missing]
        spec["tolerations"] = [*tolerations, *added]


def _toleration(key: str) -> Tree:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


class RuntimeClass:
    """Sets overhead and scheduling of a pod's RuntimeClass."""

    def __init__(self, store: Store) -> None:
        self._classes = Lister(store, RUNTIME_CLASSES)

    def admit(self, attrs: Attributes) -> None:
        """Change a new pod. Raises ApiError."""
        spec: Tree = (attrs.obj or {})["spec"]  # type: ignore[assignment]  # pods have a spec
        found = self._class(attrs, spec)
        if found is None:
            return
        overhead = found.get("overhead")
        if overhead is not None:
            if spec.get("overhead") and not _same(overhead.get("podFixed"), spec["overhead"]):
                raise denied(attrs, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            put(spec, "overhead", dict(overhead.get("podFixed") or {}))
        scheduling = found.get("scheduling")
        if scheduling is not None:
            _schedule(attrs, spec, scheduling)

    def validate(self, attrs: Attributes) -> None:
        """Check the overhead of a new pod. Raises ApiError."""
        spec: Tree = (attrs.obj or {})["spec"]  # type: ignore[assignment]  # pods have a spec
        found = self._class(attrs, spec)
        overhead = found.get("overhead") if found is not None else None
        if overhead is not None:
            if not _same(overhead.get("podFixed"), spec.get("overhead")):
                raise denied(attrs, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        elif spec.get("overhead") is not None:
            raise denied(attrs, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")

    def _class(self, attrs: Attributes, spec: Tree) -> Tree | None:
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        found = self._classes.get("", name)
        if found is None:
            if why := invalid_name(name):
                raise plain(why)
            raise denied(attrs, f"pod rejected: RuntimeClass {quote(name)} not found")
        return found


def _same(first: Mapping[str, object] | None, second: Mapping[str, object] | None) -> bool:
    return amounts_of(first) == amounts_of(second)


def _schedule(attrs: Attributes, spec: Tree, scheduling: Tree) -> None:
    selector: dict[str, str] = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        own = selector.setdefault(key, value)
        if own != value:
            raise denied(
                attrs,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own}",
            )
    if selector:
        spec["nodeSelector"] = selector
    merged = _merged([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
    if merged:
        spec["tolerations"] = merged


def _merged(tolerations: list[Tree]) -> list[Tree]:
    """The tolerations without those that another one covers. Of very many all are kept, since each is compared with
    each.

    upstream: pkg/util/tolerations/tolerations.go#MergeTolerations
    """
    if len(tolerations) > _MOST_MERGED:
        return tolerations
    kept: list[Tree] = []
    for index, each in enumerate(tolerations):
        later = tolerations[index + 1 :]
        if any(_covers(other, each) for other in kept):
            continue
        if any(_covers(other, each) and each != other for other in later):
            continue
        kept.append(dict(each))
    return kept


def _covers(one: Tree, other: Tree) -> bool:
    """Whether ``one`` tolerates all taints that ``other`` tolerates."""
    if one == other:
        return True
    key, effect = one.get("key", ""), one.get("effect", "")
    operator = one.get("operator") or "Equal"
    if key != other.get("key", "") and (key or operator != "Exists"):
        return False
    if effect and effect != other.get("effect", ""):
        return False
    if effect == "NoExecute" and one.get("tolerationSeconds") is not None:
        seconds = other.get("tolerationSeconds")
        if seconds is None or seconds > one["tolerationSeconds"]:
            return False
    if operator == "Equal":
        return other.get("operator") == "Equal" and other.get("value", "") == one.get("value", "")
    return bool(operator == "Exists")


class PodTopologyLabels:
    """Copies the zone and region labels of nodes to their pods."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit_pod(self, attrs: Attributes) -> None:
        pod: Tree = attrs.obj or {}
        self._label(pod, pod["spec"].get("nodeName", ""))

    def admit_binding(self, attrs: Attributes) -> None:
        binding: Tree = attrs.obj or {}
        target: Tree = binding.get("target") or {}
        if target.get("kind") == "Node":
            self._label(binding, target.get("name", ""))

    def _label(self, doc: Tree, node: str) -> None:
        stored = self._store.get(NODES, "", node) if node else None
        if stored is None:
            return
        labels = codec.decode(stored.data, Object).labels  # decoding the document takes eight times as long
        copied = {key: labels[key] for key in _TOPOLOGY if key in labels}
        if copied:
            metadata: Tree = doc.setdefault("metadata", {})
            metadata["labels"] = {**(metadata.get("labels") or {}), **copied}


class PodResize:
    """Rejects a resize to more than the node's allocatable resources."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate(self, attrs: Attributes) -> None:
        """Check a resize. Raises ApiError 403."""
        pod: Tree = attrs.obj or {}
        old: Tree = attrs.old or {}
        name = pod["spec"].get("nodeName")
        if not name or old["spec"] == pod["spec"]:
            return
        stored = self._store.get(NODES, "", name)
        if stored is None:
            raise denied(attrs, f"node {quote(name)} not found")
        node: Tree = stored.doc
        system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
        if system != "linux":
            why = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
            raise denied(attrs, why, [{"reason": "UnsupportedPlatform"}])
        if why := _beyond(pod, (node.get("status") or {}).get("allocatable") or {}):
            raise denied(attrs, why, [{"reason": "NodeCapacity"}])


def _beyond(pod: Tree, allocatable: Mapping[str, object]) -> str:
    requests = charged_amounts({**pod, "status": {}}, "requests")
    parts = []
    for name in ("cpu", "memory"):
        asked, room = requests.get(name, ZERO), from_json(allocatable.get(name))
        if asked > room:
            one, other = (asked.milli_value(), room.milli_value()) if name == "cpu" else (asked.value(), room.value())
            parts.append(f"{name}, requested: {one}, allocatable: {other}")
    return f"node didn't have enough allocatable resources: {'; '.join(parts)}" if parts else ""
