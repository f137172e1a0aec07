"""The changes to plan, and the options of a plan."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_str


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply an object as kubectl apply does. where: its file and document."""

    doc: Doc = field(hash=False)
    where: str = "manifest"


class Target(msgspec.Struct, frozen=True):
    """An object by its kind in any form: ``deploy``, ``deployments.apps``, ``Deployment``."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def is_selector(word: str) -> bool:
    """Whether a word for nodes is a label selector: it has a sign that no node's name has."""
    return not _OF_SELECTORS.isdisjoint(word)


_OF_SELECTORS = frozenset("=!/(")


class Drain(msgspec.Struct, frozen=True):
    """Cordon a node and evict its pods, as kubectl drain does. node: its name, or a label selector, here and below."""

    node: str


class FailNode(msgspec.Struct, frozen=True):
    """Stop a node's kubelet: no heartbeats, and nothing happens on the node."""

    node: str


class RemoveNode(msgspec.Struct, frozen=True):
    """Delete a Node object, as an autoscaler or a cloud does after the machine."""

    node: str


class AddNode(msgspec.Struct, frozen=True):
    """Add empty nodes with the properties of ``like``."""

    like: str
    count: int = 1


class SetImage(msgspec.Struct, frozen=True):
    """Set the image of a workload's container. container: may be empty if there is one only."""

    target: Target
    image: str
    container: str = ""


class Scale(msgspec.Struct, frozen=True):
    """Set the number of a workload's replicas."""

    target: Target
    replicas: int


class Delete(msgspec.Struct, frozen=True):
    """Delete an object. propagation: ``Background``, ``Foreground`` or ``Orphan``."""

    target: Target
    propagation: str = "Background"


class Metric(msgspec.Struct, frozen=True):
    """Set the value of an autoscaler's metric. kind, name: of its target. namespace: may be empty, as a Target's.

    percent: in percent of the pods' requests. value: otherwise, in thousandths; per pod, or the total for metrics that
    do not belong to pods.
    """

    namespace: str
    kind: str
    name: str
    metric: str
    percent: float | None = None
    value: float = 0.0


Change = Apply | Drain | FailNode | RemoveNode | AddNode | SetImage | Scale | Delete | Metric


_DEFINITION = "CustomResourceDefinition"
_DEFINITIONS = frozenset(("crd", "crds", _DEFINITION.lower(), f"{_DEFINITION.lower()}s"))


def custom_kinds(changes: Iterable[Change]) -> frozenset[str]:
    """The kinds that changes name, also by their definition, in lower case, such as ``thing.example.com`` or
    ``things``; most are built in."""
    found: set[str] = set()
    for change in changes:
        if isinstance(change, Apply):
            kind, group = nested_str(change.doc, "kind"), nested_str(change.doc, "apiVersion").rpartition("/")[0]
            found.add(f"{kind}.{group}".lower())
            if kind == _DEFINITION:
                found.add(nested_str(change.doc, "metadata", "name"))
        elif isinstance(change, Scale | SetImage | Delete):
            word = change.target.kind.lower()
            found.add(word)
            if word.partition(".")[0] in _DEFINITIONS:
                found.add(change.target.name)
    return frozenset(found)


class Options(msgspec.Struct, frozen=True):
    """The options of a plan.

    horizon_s: how many seconds to look ahead. seeds: one run for each; differences between them are reported.
    namespace: that of targets and manifests without one and, if set, the only one that the answer covers; otherwise the
    snapshot's (the kubeconfig's context), or default. selector: the
    labels of the objects that the answer covers. flags: the manager's, in both runs. server_side: apply all manifests
    server-side; without it only objects that kubectl applied so before. force_conflicts: the same, and take over fields
    of other managers.
    """

    horizon_s: float = 3600.0
    seeds: tuple[int, ...] = (1,)
    namespace: str = ""
    selector: str = ""
    flags: tuple[str, ...] = ()
    server_side: bool = False
    force_conflicts: bool = False
