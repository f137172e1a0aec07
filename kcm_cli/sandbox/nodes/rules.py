"""Rules: what the annotations of pods say, for all pods that a selector chooses.

A rule is a ConfigMap with the label ``sandbox.kcm.dev/rule: pods``. It holds for the pods of its namespace, in
``kube-system`` for those of all. Its data has ``selector`` (as of ``kubectl -l``; without one, all pods), and values by
the names of the annotations, without their prefix. What a pod's own annotations say comes first, then the rules of its
namespace, then those for all; of several rules, by name.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from kcm_cli.machinery import labels
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import Selector
from kcm_cli.runtime.informer import Informer
from kcm_cli.sandbox.nodes.script import PREFIX
from kcm_cli.sandbox.views import Keyed, SimulatedPod

LABEL, VALUE = f"{PREFIX}rule", "pods"
SELECTOR = "selector"
EVERYWHERE = "kube-system"


class Rules:
    """Follows the ConfigMaps. ``changed`` is called with the namespace whose pods are told something else, which is
    empty for all.
    """

    def __init__(self, config_maps: Informer[Keyed], changed: Callable[[str], None]) -> None:
        self._rules: dict[str, dict[str, Keyed]] = {}
        self._changed = changed
        config_maps.listen(on_add=self._put, on_update=lambda _, new: self._put(new), on_delete=self._drop)

    def annotations(self, pod: SimulatedPod) -> Mapping[str, str]:
        """The pod's own, and what rules add to them."""
        if not self._rules:
            return pod.annotations
        told: dict[str, str] = {}
        for rule in self._of(pod):
            for name, value in (rule.data or {}).items():
                if name != SELECTOR and isinstance(value, str):
                    told.setdefault(f"{PREFIX}{name}", value)
        return {**told, **pod.annotations} if told else pod.annotations

    def _of(self, pod: SimulatedPod) -> Iterator[Keyed]:
        for namespace in dict.fromkeys((pod.namespace, EVERYWHERE)):
            known = self._rules.get(namespace) or {}
            for name in sorted(known):
                selector = _selector(str((known[name].data or {}).get(SELECTOR) or ""))
                if selector is not None and selector.matches(pod.labels):
                    yield known[name]

    def _put(self, found: Keyed) -> None:
        if found.labels.get(LABEL) != VALUE:
            self._drop(found)
            return
        known = self._rules.setdefault(found.namespace, {})
        before = known.get(found.name)
        known[found.name] = found
        if before is None or before.data != found.data:
            self._notify(found.namespace)

    def _drop(self, found: Keyed) -> None:
        known = self._rules.get(found.namespace)
        if known and known.pop(found.name, None) is not None:
            if not known:
                del self._rules[found.namespace]
            self._notify(found.namespace)

    def _notify(self, namespace: str) -> None:
        self._changed("" if namespace == EVERYWHERE else namespace)


@lru_cache(1024)
def _selector(text: str) -> Selector | None:
    """None for one that cannot be read: it chooses nothing."""
    try:
        return labels.parse(text)
    except FormatError:
        return None
