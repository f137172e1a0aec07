"""The environment variables of containers, as far as they are known.

upstream: pkg/kubelet/kubelet_pods.go#makeEnvironmentVariables, pkg/kubelet/envvars
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import cast

from kcm_cli.api.core import Service
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.sandbox.nodes.downward import field_of, resource_of
from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs
from kcm_cli.sandbox.nodes.env_files import EnvFileError, NotSet, file_value
from kcm_cli.sandbox.nodes.expansion import expand
from kcm_cli.sandbox.nodes.volumes import Objects
from kcm_cli.sandbox.views import EnvSource, KeyRef, SimulatedContainer, SimulatedPod

_MOST_CHARACTERS = 2 << 20
"""The limit for all variables of a container."""
MASTER = "default", "kubernetes"
"""Namespace and name of the Service of the API server, which all containers find."""


def known_env(
    container: SimulatedContainer, pod: SimulatedPod, objects: Objects | None, made: EmptyDirs | None = None
) -> dict[str, str]:
    """Return the variables whose values are known, expanded in order.

    objects: the ConfigMaps, Secrets and Services. made: the pod's emptyDirs. Variables that would exceed Linux's limit
    on the length of an environment are left out.
    """
    known: dict[str, str] = {}
    services: Mapping[str, str] = {}
    length = 0
    if objects is not None:
        services = objects.services(pod.namespace, links=pod.spec.enable_service_links is not False)
        for source in container.env_from:
            values = _of_objects(source.config_map_ref, source.secret_ref, pod, objects)
            length += sum(map(len, values.values()))
            if length <= _MOST_CHARACTERS:
                known |= {f"{source.prefix}{name}": _text(value) for name, value in values.items()}
    seen = ChainMap(known, cast("dict[str, str]", services))
    for variable in container.env:
        if variable.value_from is None:
            found = expand(variable.value, seen)
        else:
            try:
                found = _value(variable.value_from, container, pod, objects, made)
            except NotSet:
                continue
        known.pop(variable.name, None)
        length += len(found or "")
        if found is not None and length <= _MOST_CHARACTERS:
            known[variable.name] = found
    return {**services, **known}


def of_services(variables: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the variables of several Services, or nothing if they exceed Linux's limit on the length of an
    environment."""
    found: dict[str, str] = {}
    for each in variables:
        found.update(each)
    return found if sum(map(len, found)) + sum(map(len, found.values())) <= _MOST_CHARACTERS else {}


def of_service(service: Service) -> dict[str, str]:
    """Return the variables with a Service's address and ports."""
    address, ports = service.spec.cluster_ip, service.spec.ports
    if address in ("", "None") or not ports:
        return {}
    prefix = _variable_of(service.name)
    found = {
        f"{prefix}_SERVICE_HOST": address,
        f"{prefix}_SERVICE_PORT": str(ports[0].port),
        f"{prefix}_PORT": f"{ports[0].protocol.lower()}://{host_and_port(address, ports[0].port)}",
    }
    for port in ports:
        if port.name:
            found[f"{prefix}_SERVICE_PORT_{_variable_of(port.name)}"] = str(port.port)
        link, protocol = f"{prefix}_PORT_{port.port}_{port.protocol.upper()}", port.protocol.lower()
        found[link] = f"{protocol}://{host_and_port(address, port.port)}"
        found[f"{link}_PROTO"] = protocol
        found[f"{link}_PORT"] = str(port.port)
        found[f"{link}_ADDR"] = address
    return found


def _variable_of(name: str) -> str:
    return name.replace("-", "_").upper()


def _value(
    source: EnvSource,
    container: SimulatedContainer,
    pod: SimulatedPod,
    objects: Objects | None,
    made: EmptyDirs | None,
) -> str | None:
    """Return a variable's value, or None if it is unknown. Raises NotSet."""
    if source.field_ref is not None:
        return field_of(pod, source.field_ref.field_path)
    if source.file_key_ref is not None:
        with suppress(EnvFileError):  # the container does not start
            return None if made is None else file_value(source.file_key_ref, pod, made)
        return None
    if objects is None:
        return None
    if source.resource_field_ref is not None:
        return resource_of(pod, container, source.resource_field_ref, objects.allocatable(pod.spec.node_name))
    found = _of_objects(source.config_map_key_ref, source.secret_key_ref, pod, objects)
    ref = source.config_map_key_ref or source.secret_key_ref or KeyRef()
    value = found.get(ref.key)
    if value is None and ref.optional:
        raise NotSet
    return None if value is None else _text(value)


def _of_objects(
    config_map: KeyRef | None, secret: KeyRef | None, pod: SimulatedPod, objects: Objects
) -> Mapping[str, bytes]:
    """Return all keys of a ConfigMap or a Secret."""
    found: Mapping[str, bytes] | None = None
    if config_map is not None:
        found = objects.config_map(pod.namespace, config_map.name, binary=False)
    elif secret is not None:
        found = objects.secret(pod.namespace, secret.name)
    return found or {}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
