"""A pod as the scheduler sees it, with its requirements parsed once.

upstream: pkg/scheduler/framework/types.go#PodInfo
"""

from collections.abc import Hashable, Iterator, Mapping
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import NOTHING, LabelSelector, Requirement, Selector, from_label_selector
from kcm_cli.planning.node_affinity import required
from kcm_cli.sandbox import requests
from kcm_cli.sandbox.requests import Amounts
from kcm_cli.sandbox.views import PodAffinity, PodAffinityTerm, SimulatedPod

Port = tuple[str, str, int]
"""Address, protocol, number."""
ANY_ADDRESS = "0.0.0.0"


class Disk(msgspec.Struct, frozen=True):
    """A volume that a node can mount for one pod only, or for several pods that only read it.

    names: names of the disk; another pod uses the same disk if any name matches.
    """

    kind: str
    names: frozenset[Hashable]
    read_only: bool = False

    def conflicts(self, other: "Disk") -> bool:
        same = self.kind == other.kind and not self.names.isdisjoint(other.names)
        return same and not (self.read_only and other.read_only)


class Term(msgspec.Struct, frozen=True):
    """A term of pod affinity or anti-affinity: pods that it selects in these namespaces, and in selected ones."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    weight: int = 0

    def matches(self, pod: SimulatedPod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term matches a pod in a namespace with these labels."""
        if pod.metadata.namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(pod.labels)


class PodInfo(msgspec.Struct, frozen=True):
    """A parsed pod.

    usual: the requests, with defaults for containers without any. weighed: the ``usual`` requests for scoring the pod's
    nodes, without pod-level requests (upstream's NodeResourcesFit ignores them there). resizing: the requests depend on
    the status. images: of containers and volumes. containers: the number of containers. size: one object for all pods
    with equal ``requests`` and ``weighed``. shape: one object for all pods that the filters of a single node do not
    distinguish. Both are keys that are compared by identity.
    """

    pod: SimulatedPod
    requests: Amounts
    usual: Amounts
    weighed: Amounts
    ports: tuple[Port, ...] = ()
    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_anti: tuple[Term, ...] = ()
    claims: tuple[str, ...] = ()
    disks: tuple[Disk, ...] = ()
    images: tuple[str, ...] = ()
    containers: int = 1
    priority: int = 0
    resizing: bool = False
    key: str = msgspec.field(default="")
    size: object = msgspec.field(default_factory=object)
    shape: object = msgspec.field(default_factory=object)


def pod_info(pod: SimulatedPod) -> PodInfo:
    """Parse a pod. An invalid selector selects nothing."""
    spec = pod.spec
    asked = requests.of_pod(pod)
    weighed = requests.of_pod(pod, requests.USUAL, whole=False, held=False)
    ports = host_ports(pod)
    size = _key(tuple(asked.items()), tuple(weighed.items()))
    shape = _key(size, ports, spec.tolerations, tuple((spec.node_selector or {}).items()), required(spec.affinity))
    return PodInfo(
        pod,
        asked,
        requests.of_pod(pod, requests.USUAL),
        weighed,
        ports,
        *_terms(pod),
        tuple(claim_names(pod)),
        tuple(_disks(pod)),
        tuple(map(_tagged, _images(pod))),
        len(spec.containers) + len(spec.init_containers),
        spec.priority or 0,
        requests.is_resizing(pod),
        pod.key,
        size,
        shape,
    )


def relabelled(info: PodInfo, pod: SimulatedPod) -> PodInfo:
    """A parsed pod whose labels have changed. Of the requirements only its terms depend on them."""
    affinity, anti_affinity, preferred, preferred_anti = _terms(pod)
    return replace(
        info,
        pod=pod,
        affinity=affinity,
        anti_affinity=anti_affinity,
        preferred=preferred,
        preferred_anti=preferred_anti,
    )


class _Key:
    """A key for equal parts. Compared by identity."""

    __slots__ = ("__weakref__",)


_keys: WeakValueDictionary[tuple[Hashable, ...], _Key] = WeakValueDictionary()


def _key(*parts: Hashable) -> _Key:
    """The same object for equal parts, while a pod has it."""
    return _keys.setdefault(parts, _Key())


def claim_names(pod: SimulatedPod) -> list[str]:
    """The claims that a pod mounts, including those from templates."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.name}-{volume.name}")
    return names


def conflict(wanted: Port, used: Port) -> bool:
    """Whether two ports conflict on a node."""
    if wanted[1:] != used[1:]:
        return False
    return wanted[0] == used[0] or ANY_ADDRESS in (wanted[0], used[0])


def selector_of(selector: LabelSelector | None) -> Selector:
    """The compiled selector; an absent or invalid one selects nothing."""
    try:
        return from_label_selector(selector)
    except FormatError:
        return NOTHING


def host_ports(pod: SimulatedPod) -> tuple[Port, ...]:
    """The host ports of a pod, without those of init containers that end."""
    found = []
    lasting = (each for each in pod.spec.init_containers if each.restart_policy == "Always")
    for container in (*pod.spec.containers, *lasting):
        for port in container.ports:
            if port.host_port > 0:
                found.append((port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port))
    return tuple(found)


def _disks(pod: SimulatedPod) -> Iterator[Disk]:
    for volume in pod.spec.volumes:
        if volume.gce_persistent_disk is not None:
            source = volume.gce_persistent_disk
            yield Disk("gcePersistentDisk", frozenset((_text(source, "pdName"),)), _reads(source))
        if volume.aws_elastic_block_store is not None:
            yield Disk("awsElasticBlockStore", frozenset((_text(volume.aws_elastic_block_store, "volumeID"),)))
        if volume.iscsi is not None:
            yield Disk("iscsi", frozenset((_text(volume.iscsi, "iqn"),)), _reads(volume.iscsi))
        if volume.rbd is not None:
            image = volume.rbd
            names = frozenset((monitor, image.pool, image.image) for monitor in image.monitors)
            yield Disk("rbd", names, image.read_only)


def _text(source: Doc, name: str) -> str:
    return str(source.get(name) or "")


def _reads(source: Doc) -> bool:
    return source.get("readOnly") is True


def _images(pod: SimulatedPod) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield container.image
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield volume.image.reference


def _tagged(image: str) -> str:
    """The name of the image with its tag."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


_Terms = tuple[Term, ...]


def _terms(pod: SimulatedPod) -> tuple[_Terms, _Terms, _Terms, _Terms]:
    """The terms of required affinity and anti-affinity, and of preferred ones."""
    wanted = pod.spec.affinity
    if wanted is None:
        return (), (), (), ()
    near, far = wanted.pod_affinity, wanted.pod_anti_affinity
    return _required(pod, near), _required(pod, far), _preferred(pod, near), _preferred(pod, far)


def _required(pod: SimulatedPod, affinity: PodAffinity | None) -> tuple[Term, ...]:
    return tuple(_term(pod, term, 0) for term in affinity.required) if affinity is not None else ()


def _preferred(pod: SimulatedPod, affinity: PodAffinity | None) -> tuple[Term, ...]:
    if affinity is None:
        return ()
    return tuple(_term(pod, weighted.pod_affinity_term, weighted.weight) for weighted in affinity.preferred)


def _term(pod: SimulatedPod, term: PodAffinityTerm, weight: int) -> Term:
    own_namespace = not term.namespaces and term.namespace_selector is None
    namespaces = frozenset((pod.namespace,) if own_namespace else term.namespaces)
    selector = selector_of(term.label_selector)
    keyed = [Requirement(k, "in", (pod.labels[k],)) for k in term.match_label_keys if k in pod.labels]
    keyed += [Requirement(k, "notin", (pod.labels[k],)) for k in term.mismatch_label_keys if k in pod.labels]
    missing = [r for r in keyed if r not in selector.requirements]  # the API server merges them into the selector
    if missing and selector.selectable:
        selector = Selector((*selector.requirements, *missing))
    return Term(term.topology_key, selector, namespaces, selector_of(term.namespace_selector), weight)
