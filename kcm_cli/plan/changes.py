"""What is to happen to a cluster, as values."""

from dataclasses import dataclass, field

from kcm_cli.machinery.codec import Doc


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply an object, server-side. where: the file and document that it comes from."""

    doc: Doc = field(hash=False)
    where: str = "manifest"


@dataclass(frozen=True, slots=True)
class Target:
    """An object by its kind, as users write it: ``deploy``, ``deployments.apps``, ``Deployment``."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Drain:
    """Cordon a node and evict its pods, as kubectl drain does."""

    node: str


@dataclass(frozen=True, slots=True)
class FailNode:
    """A node's kubelet stops: no heartbeats, and nothing happens on it any more."""

    node: str


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """A Node object is deleted, as an autoscaler or a cloud does after the machine."""

    node: str


@dataclass(frozen=True, slots=True)
class AddNode:
    """Nodes are added: as ``like``, with nothing on them."""

    like: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class SetImage:
    """A workload's container gets another image. container: may be empty where there is one only."""

    target: Target
    image: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """A workload gets so many replicas."""

    target: Target
    replicas: int


@dataclass(frozen=True, slots=True)
class Delete:
    """An object is deleted. propagation: ``Background``, ``Foreground`` or ``Orphan``, of its dependents."""

    target: Target
    propagation: str = "Background"


@dataclass(frozen=True, slots=True)
class Metric:
    """What an autoscaler sees from now on. kind: of its target, as ``Deployment``. percent: of what the pods request;
    else value: per pod, or in all for metrics that are not of pods, in thousandths."""

    namespace: str
    kind: str
    name: str
    metric: str
    percent: float | None = None
    value: float = 0.0


Change = Apply | Drain | FailNode | RemoveNode | AddNode | SetImage | Scale | Delete | Metric


@dataclass(frozen=True, slots=True)
class Options:
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
