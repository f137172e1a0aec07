"""What is to happen to a cluster, as values."""

from dataclasses import dataclass, field

import msgspec

from kcm_cli.machinery.codec import Doc


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply an object, server-side. where: the file and document that it comes from."""

    doc: Doc = field(hash=False)
    where: str = "manifest"


class Target(msgspec.Struct, frozen=True):
    """An object by its kind, as users write it: ``deploy``, ``deployments.apps``, ``Deployment``."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Drain(msgspec.Struct, frozen=True):
    """Cordon a node and evict its pods, as kubectl drain does."""

    node: str


class FailNode(msgspec.Struct, frozen=True):
    """A node's kubelet stops: no heartbeats, and nothing happens on it any more."""

    node: str


class RemoveNode(msgspec.Struct, frozen=True):
    """A Node object is deleted, as an autoscaler or a cloud does after the machine."""

    node: str


class AddNode(msgspec.Struct, frozen=True):
    """Nodes are added: as ``like``, with nothing on them."""

    like: str
    count: int = 1


class SetImage(msgspec.Struct, frozen=True):
    """A workload's container gets another image. container: may be empty where there is one only."""

    target: Target
    image: str
    container: str = ""


class Scale(msgspec.Struct, frozen=True):
    """A workload gets so many replicas."""

    target: Target
    replicas: int


class Delete(msgspec.Struct, frozen=True):
    """An object is deleted. propagation: ``Background``, ``Foreground`` or ``Orphan``, of its dependents."""

    target: Target
    propagation: str = "Background"


class Metric(msgspec.Struct, frozen=True):
    """What an autoscaler sees from now on. kind: of its target, as ``Deployment``. percent: of what the pods request;
    else value: per pod, or in all for metrics that are not of pods, in thousandths."""

    namespace: str
    kind: str
    name: str
    metric: str
    percent: float | None = None
    value: float = 0.0


Change = Apply | Drain | FailNode | RemoveNode | AddNode | SetImage | Scale | Delete | Metric


class Options(msgspec.Struct, frozen=True):
    """How to look ahead.

    horizon_s: how long. seeds: the number of runs; what differs between them is reported. namespace: of targets and
    manifests that name none, and, if set, the only one that the answer is about. selector: labels of the objects that
    the answer is about. flags: of the manager, in both runs.
    force_conflicts: take fields over from other managers when applying.
    """

    horizon_s: float = 3600.0
    seeds: tuple[int, ...] = (1,)
    namespace: str = ""
    selector: str = ""
    flags: tuple[str, ...] = ()
    force_conflicts: bool = False
