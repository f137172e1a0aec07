"""The variables of containers, as far as the pod and what it names tell them.

upstream: pkg/kubelet/kubelet_pods.go#makeEnvironmentVariables
"""

from collections.abc import Mapping

from kcm_cli.sandbox.nodes.downward import field_of, resource_of
from kcm_cli.sandbox.nodes.expansion import expand
from kcm_cli.sandbox.nodes.volumes import Objects
from kcm_cli.sandbox.views import EnvSource, KeyRef, SimulatedContainer, SimulatedPod

_LONGEST_HOSTNAME = 63
_MOST_CHARACTERS = 2 << 20
"""Of all variables of a container."""


def known_env(container: SimulatedContainer, pod: SimulatedPod, objects: Objects | None) -> dict[str, str]:
    """Those whose values are known, expanded in their order. ``objects``: what they come from.

    Those that would make them longer than Linux lets them be are left out.
    """
    known: dict[str, str] = {}
    length = 0
    if objects is not None:
        for source in container.env_from:
            values = _of_objects(source.config_map_ref, source.secret_ref, pod, objects)
            length += sum(map(len, values.values()))
            if length <= _MOST_CHARACTERS:
                known |= {f"{source.prefix}{name}": _text(value) for name, value in values.items()}
    for variable in container.env:
        if variable.value_from is None:
            found = expand(variable.value, known)
        else:
            found = _value(variable.value_from, container, pod, objects)
        known.pop(variable.name, None)
        length += len(found or "")
        if found is not None and length <= _MOST_CHARACTERS:
            known[variable.name] = found
    return known


def hostname_of(pod: SimulatedPod) -> str:
    """As its containers know it."""
    name = pod.spec.node_name if pod.spec.host_network else pod.spec.hostname or pod.name
    return name[:_LONGEST_HOSTNAME].rstrip("-.")


def _value(source: EnvSource, container: SimulatedContainer, pod: SimulatedPod, objects: Objects | None) -> str | None:
    if source.field_ref is not None:
        return field_of(pod, source.field_ref.field_path)
    if objects is None:
        return None
    if source.resource_field_ref is not None:
        return resource_of(pod, container, source.resource_field_ref, objects.allocatable(pod.spec.node_name))
    found = _of_objects(source.config_map_key_ref, source.secret_key_ref, pod, objects)
    value = found.get((source.config_map_key_ref or source.secret_key_ref or KeyRef()).key)
    return None if value is None else _text(value)


def _of_objects(
    config_map: KeyRef | None, secret: KeyRef | None, pod: SimulatedPod, objects: Objects
) -> Mapping[str, bytes]:
    """All keys of an object."""
    found: Mapping[str, bytes] | None = None
    if config_map is not None:
        found = objects.config_map(pod.namespace, config_map.name, binary=False)
    elif secret is not None:
        found = objects.secret(pod.namespace, secret.name)
    return found or {}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
