"""The files that containers find in their volumes: what ConfigMaps, Secrets, the pod itself and its account put there.

upstream: pkg/volume/{configmap,secret,downwardapi,projected}
"""

from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from typing import Protocol

from kcm_cli.sandbox.nodes.downward import field_of, resource_of
from kcm_cli.sandbox.nodes.programs import expand
from kcm_cli.sandbox.views import (
    ConfigMapSource,
    DownwardSource,
    SimulatedContainer,
    SimulatedPod,
    SimulatedVolume,
    TokenSource,
    VolumeMount,
)

Contents = Mapping[str, bytes | Callable[[], bytes]]
"""Files by their paths in a volume; what is callable is made when it is read."""


class Objects(Protocol):
    """Where contents come from. None: there is no such object."""

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        """``binary``: with its binaryData."""

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None: ...

    def allocatable(self, node: str) -> Mapping[str, str]:
        """Quantities as text; empty where there is no such node."""

    def token(self, pod: SimulatedPod, source: TokenSource) -> bytes:
        """Raises Unseen."""


class Unseen(LookupError):
    """Nobody can say what is there."""


class Volumes:
    """What a container finds below its mounts. Paths are absolute."""

    def __init__(
        self, pod: SimulatedPod, container: SimulatedContainer, env: Mapping[str, str], objects: Objects
    ) -> None:
        """``env``: the container's variables, as far as they are known."""
        self._pod = pod
        self._container = container
        self._env = env
        self._objects = objects
        self._known: dict[str, Contents] = {}

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, IsADirectoryError, Unseen."""
        contents, inner = self._place(path)
        found = contents.get(inner)
        if found is None:
            if any(_below(inner, each) for each in contents) or not inner:
                raise IsADirectoryError
            raise FileNotFoundError
        return found() if callable(found) else found

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted. Raises FileNotFoundError, NotADirectoryError, Unseen."""
        contents, inner = self._place(path)
        if inner in contents:
            raise NotADirectoryError
        found = {each[len(inner) :].lstrip("/").partition("/")[0] for each in contents if _below(inner, each)}
        if inner and not found:
            raise FileNotFoundError
        return sorted(found)

    def _place(self, path: str) -> tuple[Contents, str]:
        """The files of a volume, and the path in it."""
        path = normpath(path)
        mounts = [each for each in self._container.volume_mounts if _below(normpath(each.mount_path), path)]
        if not path.startswith("/") or not mounts:
            raise Unseen
        mount = max(mounts, key=lambda each: len(normpath(each.mount_path)))
        rest = path[len(normpath(mount.mount_path)) :].strip("/")
        if rest == "..data" or rest.startswith("..data/"):
            rest = rest[len("..data") :].strip("/")
        path_there = sub_path_of(mount, self._env)
        if path_there is None:
            raise Unseen
        inner = "/".join(part for part in (path_there and normpath(path_there), rest) if part)
        return self._contents(mount.name), inner

    def _contents(self, name: str) -> Contents:
        if name not in self._known:
            volume = next((each for each in self._pod.spec.volumes if each.name == name), None)
            if volume is None:
                raise Unseen
            self._known[name] = dict(self._files(volume))
        return self._known[name]

    def _files(self, volume: SimulatedVolume) -> Iterator[tuple[str, bytes | Callable[[], bytes]]]:
        if volume.config_map is not None:
            yield from self._config_map(volume.config_map)
        elif volume.secret is not None:
            yield from self._secret(volume.secret, volume.secret.secret_name)
        elif volume.downward_api is not None:
            yield from self._downward(volume.downward_api)
        elif volume.projected is not None:
            for part in volume.projected.sources:
                if part.config_map is not None:
                    yield from self._config_map(part.config_map)
                elif part.secret is not None:
                    yield from self._secret(part.secret, part.secret.name)
                elif part.downward_api is not None:
                    yield from self._downward(part.downward_api)
                elif part.service_account_token is not None:
                    yield normpath(part.service_account_token.path), self._token(part.service_account_token)
                else:
                    raise Unseen
        else:
            raise Unseen

    def _config_map(self, source: ConfigMapSource) -> Iterator[tuple[str, bytes]]:
        return _chosen(source, self._objects.config_map(self._pod.namespace, source.name))

    def _secret(self, source: ConfigMapSource, name: str) -> Iterator[tuple[str, bytes]]:
        return _chosen(source, self._objects.secret(self._pod.namespace, name))

    def _token(self, source: TokenSource) -> Callable[[], bytes]:
        return lambda: self._objects.token(self._pod, source)

    def _downward(self, source: DownwardSource) -> Iterator[tuple[str, bytes]]:
        for item in source.items:
            if item.field_ref is not None:
                value = field_of(self._pod, item.field_ref.field_path)
            elif item.resource_field_ref is not None:
                allocatable = self._objects.allocatable(self._pod.spec.node_name)
                value = resource_of(self._pod, self._container, item.resource_field_ref, allocatable)
            else:
                value = None
            if value is None:
                raise Unseen
            yield normpath(item.path), value.encode()


def sub_path_of(mount: VolumeMount, env: Mapping[str, str]) -> str | None:
    """The part of a volume that is mounted, empty for all of it; None where a variable of it is not known."""
    path = expand(mount.sub_path_expr, env) or mount.sub_path
    return None if "$(" in path else path


def _chosen(source: ConfigMapSource, found: Mapping[str, bytes] | None) -> Iterator[tuple[str, bytes]]:
    if found is None:
        return
    if not source.items:
        yield from found.items()
    for item in source.items:
        if item.key in found:
            yield normpath(item.path), found[item.key]


def _below(folder: str, path: str) -> bool:
    """Whether a path is a folder, or in it."""
    return not folder or folder == "/" or path == folder or path.startswith(f"{folder}/")
