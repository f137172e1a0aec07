"""What pods refer to, and what ConfigMaps and Secrets lack of it, in a kubelet's words.

upstream: pkg/kubelet/kubelet_pods.go#makeEnvironmentVariables, pkg/volume/{configmap,secret,projected}
"""

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Protocol

from kcm_cli.api.well_known import ROOT_CA
from kcm_cli.machinery.errors import aggregated
from kcm_cli.planning.pod_claims import claims_of
from kcm_cli.sandbox.views import (
    ConfigMapSource,
    KeyRef,
    SecretSource,
    SimulatedContainer,
    SimulatedPod,
    SimulatedVolume,
    containers_of,
)

_NONE: Mapping[str, str] = {}
CONFIG_MAP, SECRET, CLAIM = "configmap", "secret", "claim"


def object_id(kind: str, key: str) -> str:
    """What stands for an object of one of these kinds. key: its namespace/name."""
    return f"{kind} {key}"


def referred_to(pod: SimulatedPod) -> frozenset[str]:
    """The ids of all ConfigMaps, Secrets and claims that a pod's volumes and variables name."""
    named = {object_id(kind, f"{pod.namespace}/{name}") for kind, name in _named(pod)}
    return frozenset(named.union(object_id(CLAIM, key) for key in claims_of(pod)))


def _named(pod: SimulatedPod) -> Iterator[tuple[str, str]]:
    for volume in pod.spec.volumes:
        for config_map, secret in _sources(volume):
            if config_map is not None:
                yield CONFIG_MAP, config_map.name
            if secret is not None:
                yield SECRET, secret.secret_name or secret.name
    for container in containers_of(pod):
        refs = [(source.config_map_ref, source.secret_ref) for source in container.env_from]
        sources = (variable.value_from for variable in container.env if variable.value_from is not None)
        refs += [(source.config_map_key_ref, source.secret_key_ref) for source in sources]
        for config_map_ref, secret_ref in refs:
            if config_map_ref is not None:
                yield CONFIG_MAP, config_map_ref.name
            if secret_ref is not None:
                yield SECRET, secret_ref.name


def _sources(volume: SimulatedVolume) -> Iterator[tuple[ConfigMapSource | None, SecretSource | None]]:
    yield volume.config_map, volume.secret
    for part in volume.projected.sources if volume.projected is not None else ():
        yield part.config_map, part.secret


class Entries(Protocol):
    """The keys of a ConfigMap or Secret."""

    @property
    def data(self) -> Container[str] | None: ...
    @property
    def binary_data(self) -> Container[str] | None: ...


Find = Callable[[str], Entries | None]
"""Finds an object by namespace/name."""


class References:
    """Looks up what pods refer to."""

    def __init__(self, config_maps: Find, secrets: Find) -> None:
        self._config_maps = config_maps
        self._secrets = secrets

    def of_volumes(self, pod: SimulatedPod) -> list[str]:
        """The failures of a pod's volumes."""
        return [
            f'MountVolume.SetUp failed for volume "{volume.name}" : {problem}'
            for volume in pod.spec.volumes
            if (problem := self._of_volume(pod.namespace, volume))
        ]

    def of_variables(
        self, pod: SimulatedPod, container: SimulatedContainer, of_files: Mapping[str, str] = _NONE
    ) -> Iterator[str]:
        """The failures of a container's variables. of_files: those of variables whose values are in files."""
        for source in container.env_from:
            yield from self._ref(pod, source.config_map_ref, self._config_maps, "ConfigMap")
            yield from self._ref(pod, source.secret_ref, self._secrets, "Secret")
        for variable in container.env:
            if variable.value_from is not None and not variable.value:
                yield from self._ref(pod, variable.value_from.config_map_key_ref, self._config_maps, "ConfigMap")
                yield from self._ref(pod, variable.value_from.secret_key_ref, self._secrets, "Secret")
                if variable.name in of_files:
                    yield of_files[variable.name]

    def _of_volume(self, namespace: str, volume: SimulatedVolume) -> str:
        """All problems of a volume; empty if there are none."""
        return aggregated(text for source in _sources(volume) for text in self._of_sources(namespace, *source))

    def _ref(self, pod: SimulatedPod, ref: KeyRef | None, find: Find, kind: str) -> Iterator[str]:
        if ref is None or ref.optional:
            return
        found = find(f"{pod.namespace}/{ref.name}")
        if found is None:
            yield f'{kind.lower()} "{ref.name}" not found'
        elif ref.key and ref.key not in (found.data or ()):
            yield f"couldn't find key {ref.key} in {kind} {pod.namespace}/{ref.name}"

    def _of_sources(
        self, namespace: str, config_map: ConfigMapSource | None, secret: SecretSource | None
    ) -> Iterator[str]:
        if config_map is not None and not config_map.optional and config_map.name != ROOT_CA:
            found = self._config_maps(f"{namespace}/{config_map.name}")
            if found is None:
                yield f'configmap "{config_map.name}" not found'
            elif missing := _missing(config_map, found):
                yield f"configmap references non-existent config key: {missing}"
        if secret is not None and not secret.optional:
            name = secret.secret_name or secret.name
            found = self._secrets(f"{namespace}/{name}")
            if found is None:
                yield f'secret "{name}" not found'
            elif missing := _missing(secret, found):
                yield f"references non-existent secret key: {missing}"


def _missing(source: ConfigMapSource | SecretSource, found: Entries) -> str:
    there = (found.data or (), found.binary_data or ())
    return next((item.key for item in source.items if not any(item.key in keys for keys in there)), "")
