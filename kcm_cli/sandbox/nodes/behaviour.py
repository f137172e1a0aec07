"""What the containers of simulated pods do: as their specs and annotations say, or rules."""

from typing import Protocol

from kcm_cli.sandbox.nodes import script
from kcm_cli.sandbox.nodes.rules import Rules
from kcm_cli.sandbox.nodes.script import PodScript
from kcm_cli.sandbox.nodes.volumes import Objects
from kcm_cli.sandbox.views import SimulatedPod


class Behaviour(Protocol):
    """How pods behave on their nodes."""

    def script(self, pod: SimulatedPod, files: frozenset[str]) -> PodScript:
        """Return what the pod's containers will do.

        files: the files that they find in folders of the node.
        """

    def rests_s(self, pod: SimulatedPod, now: float) -> float:
        """Return for how many seconds a pod that is not being deleted keeps its status; infinity until it is
        deleted."""


class ByRules:
    """Pods behave as their spec, annotations, volumes and rules say.

    objects: the ConfigMaps, Secrets and other objects that volumes and variables are filled from.
    """

    def __init__(self, rules: Rules, objects: Objects) -> None:
        self._rules = rules
        self._objects = objects

    def script(self, pod: SimulatedPod, files: frozenset[str]) -> PodScript:
        return script.read(pod, annotations=self._rules.annotations(pod), files=files, objects=self._objects)

    def rests_s(self, pod: SimulatedPod, now: float) -> float:
        return 0.0
