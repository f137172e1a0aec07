"""Rules: annotations for all pods that a selector matches.

A rule is a ConfigMap with the label ``sandbox.kcm.dev/rule: pods``. It applies to the pods of its namespace, and in
``kube-system`` to all pods. Its data has ``selector`` (as for ``kubectl -l``; without it, all pods), ``image`` (a
pattern with ``*`` and ``?``; it applies to the containers whose images match), and values by the names of annotations,
without their prefix. A pod's own annotations have precedence, then the rules of its namespace,
then those of ``kube-system``, each in the order of their names, and last the rules in the sandbox's options.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kcm_cli.machinery import labels
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.remembered import remembered
from kcm_cli.runtime.informer import Informer
from kcm_cli.sandbox.nodes.annotations import OF_PODS, PARSERS, PREFIX
from kcm_cli.sandbox.views import Keyed, SimulatedPod, containers_of

LABEL, VALUE = f"{PREFIX}rule", "pods"
SELECTOR = "selector"
NAMESPACE = "namespace"
IMAGE = "image"
EVERYWHERE = "kube-system"
_LONGEST_PATTERN, _LONGEST_SELECTOR = 256, 4096
"""Longer ones match nothing: it would take seconds to read one as long as a ConfigMap may be."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that is not in a ConfigMap: ``Rule({"exit-code": "1", "run-time": "5s"}, image="*/worker:*")``.

    words: values by the names of annotations, which may end in ``.CONTAINER``. selector: of labels, as for ``kubectl
    -l``. namespace: empty for all. image: a pattern with ``*`` and ``?``, as ``Sandbox.fail_image`` has it; empty for
    all.
    """

    words: Mapping[str, str]
    selector: str = ""
    namespace: str = ""
    image: str = ""
    chosen: Selector = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ValueError."""
        for word, value in self.words.items():
            name = word.partition(".")[0]
            if name not in PARSERS:
                raise ValueError(f'"{word}" is none of: {", ".join(sorted(PARSERS))}')
            try:
                if value:  # an empty one counts as absent
                    PARSERS[name](value)
            except FormatError as error:
                raise ValueError(f"{word}: {error}") from None
        try:
            object.__setattr__(self, "chosen", labels.parse(self.selector))
        except FormatError as error:
            raise ValueError(f'selector "{self.selector}": {error}') from None

    def applies(self, pod: SimulatedPod) -> bool:
        """Whether it is for this pod, by its namespace and labels."""
        return self.namespace in ("", pod.namespace) and self.chosen.matches(pod.labels)


def rules_of(found: object) -> tuple[Rule, ...]:
    """Read a rule or a list of rules from parsed YAML: selector, namespace, image and words. Raises ValueError."""
    if not isinstance(found, list):
        return (_rule(found),)
    rules = []
    for number, item in enumerate(found, 1):
        try:
            rules.append(_rule(item))
        except ValueError as error:
            raise ValueError(f"rule {number}: {error}") from None
    return tuple(rules)


def _rule(found: object) -> Rule:
    if not isinstance(found, Mapping):
        raise ValueError(f"a rule is an object, not {found!r}")
    texts = {str(name): _text(name, value) for name, value in found.items()}
    selector, namespace, image = (texts.pop(name, "") for name in (SELECTOR, NAMESPACE, IMAGE))
    return Rule(texts, selector, namespace, image)


def _text(name: object, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{name}: {value!r} is not a string (put it in quotes)")


class Rules:
    """The current rules. ``given``: rules in addition to the ConfigMaps, in order of precedence."""

    def __init__(self, config_maps: Informer[Keyed], given: Sequence[Rule] = ()) -> None:
        self._given = tuple(given)
        self._rules: dict[str, dict[str, Keyed]] = {}
        self._listeners: list[Callable[[str], None]] = []
        config_maps.listen(on_add=self._put, on_update=lambda _, new: self._put(new), on_delete=self._drop)

    def listen(self, changed: Callable[[str], None]) -> None:
        """Call a function with each namespace whose rules changed; it is empty for those of all."""
        self._listeners.append(changed)

    def annotations(self, pod: SimulatedPod) -> Mapping[str, str]:
        """The annotations of a pod: its own, and those of rules."""
        if not self._rules and not self._given:
            return pod.annotations
        added: dict[str, str] = {}
        for rule in self._of(pod):
            data = {name: value for name, value in (rule.data or {}).items() if isinstance(value, str)}
            _add(added, pod, data, data.pop(IMAGE, ""))
        for given in self._given:
            if given.applies(pod):
                _add(added, pod, given.words, given.image)
        return {**added, **pod.annotations} if added else pod.annotations

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
        for changed in self._listeners:
            changed("" if namespace == EVERYWHERE else namespace)


def _add(added: dict[str, str], pod: SimulatedPod, words: Mapping[str, str], image: str) -> None:
    """Add the annotations of a rule that are not there yet. Its values for one container come before those for all."""
    for name, value in sorted(words.items(), key=lambda each: "." not in each[0]):
        if name == SELECTOR:
            continue
        if not image:
            added.setdefault(f"{PREFIX}{name}", value)
            continue
        word, _, of = name.partition(".")
        for container in containers_of(pod):
            if not _matches(container.image, image) or (of and of != container.name):
                continue
            if word in OF_PODS:
                added.setdefault(f"{PREFIX}{word}", value)
            elif not (container in pod.spec.containers and _has(word, pod.annotations, added)):
                added.setdefault(f"{PREFIX}{word}.{container.name}", value)


def _matches(image: str, pattern: str) -> bool:
    return len(pattern) <= _LONGEST_PATTERN and fnmatchcase(image, pattern)


def _has(word: str, *annotations: Mapping[str, str]) -> bool:
    """Whether there is a value for all regular containers, from what has precedence."""
    return any(f"{PREFIX}{word}" in each for each in annotations)


@remembered(1024)
def _selector(text: str) -> Selector | None:
    """The selector; None if it is invalid or too long, which matches nothing."""
    try:
        return labels.parse(text) if len(text) <= _LONGEST_SELECTOR else None
    except FormatError:
        return None
