"""The variables of containers, as far as the pod and what it names tell them.

upstream: pkg/kubelet/kubelet_pods.go#makeEnvironmentVariables
"""

from collections.abc import Iterator, Mapping

from kcm_cli.sandbox.nodes import programs
from kcm_cli.sandbox.nodes.downward import field_of, resource_of
from kcm_cli.sandbox.nodes.volumes import Objects
from kcm_cli.sandbox.views import EnvSource, KeyRef, SimulatedContainer, SimulatedPod

_LONGEST_HOSTNAME = 63


def known_env(container: SimulatedContainer, pod: SimulatedPod, objects: Objects | None) -> dict[str, str]:
    """Those whose values are known, expanded in their order. ``objects``: what they come from."""
    known: dict[str, str] = {}
    if objects is not None:
        for source in container.env_from:
            for name, value in _of_objects(source.config_map_ref, source.secret_ref, pod, objects):
                known[f"{source.prefix}{name}"] = value
    for variable in container.env:
        if variable.value_from is None:
            known[variable.name] = programs.expand(variable.value, known)
            continue
        known.pop(variable.name, None)
        found = _value(variable.value_from, container, pod, objects)
        if found is not None:
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
    for name, text in _of_objects(source.config_map_key_ref, source.secret_key_ref, pod, objects):
        if name == (source.config_map_key_ref or source.secret_key_ref or KeyRef()).key:
            return text
    return None


def _of_objects(
    config_map: KeyRef | None, secret: KeyRef | None, pod: SimulatedPod, objects: Objects
) -> Iterator[tuple[str, str]]:
    """All keys of an object, as text."""
    found: Mapping[str, bytes] | None = None
    if config_map is not None:
        found = objects.config_map(pod.namespace, config_map.name, binary=False)
    elif secret is not None:
        found = objects.secret(pod.namespace, secret.name)
    for name, value in (found or {}).items():
        yield name, value.decode("utf-8", "surrogateescape")
