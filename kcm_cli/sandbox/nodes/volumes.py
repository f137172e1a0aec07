"""The files in the volumes of containers: of ConfigMaps, Secrets, the downward API and service account tokens.

upstream: pkg/volume/{configmap,secret,downwardapi,projected}
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from posixpath import normpath
from typing import Protocol

from kcm_cli.sandbox.nodes.downward import field_of, resource_of
from kcm_cli.sandbox.nodes.expansion import expand
from kcm_cli.sandbox.nodes.hostnames import file_of, fqdn_of
from kcm_cli.sandbox.views import (
    ConfigMapSource,
    DownwardFile,
    DownwardSource,
    SecurityContext,
    SimulatedContainer,
    SimulatedPod,
    SimulatedVolume,
    TokenSource,
    VolumeMount,
)

Contents = Mapping[str, bytes | Callable[[], bytes]]
"""The contents of files by their paths in a volume. A callable is called when the file is read."""


class Objects(Protocol):
    """The objects that volumes and variables refer to. None: the object does not exist."""

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        """``binary``: with its binaryData."""

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None: ...

    def allocatable(self, node: str) -> Mapping[str, str]:
        """Quantities by resource; empty if the node does not exist."""

    def services(self, namespace: str, *, links: bool) -> Mapping[str, str]:
        """The variables for the Services of a namespace and for the API server. ``links``: whether there are any
        besides the API server's (``enableServiceLinks``)."""

    def token(self, pod: SimulatedPod, source: TokenSource) -> bytes:
        """Raises UnknownContent."""


_ROOT = ("bin", "dev", "etc", "home", "lib", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")
"""The folders in the root of most images."""


class UnknownContent(LookupError):
    """The content of a path is unknown."""


class ReadOnce:
    """Objects that are decoded once for all volumes and variables of a pod."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[tuple[object, ...], Mapping[str, bytes] | None] = {}
        self.allocatable = objects.allocatable
        self.services = objects.services
        self.token = objects.token

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        key = ("config map", namespace, name, binary)
        if key not in self._known:
            self._known[key] = self._objects.config_map(namespace, name, binary=binary)
        return self._known[key]

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        key = ("secret", namespace, name)
        if key not in self._known:
            self._known[key] = self._objects.secret(namespace, name)
        return self._known[key]


class Volumes:
    """The files below the mounts of a container. Paths are absolute."""

    def __init__(
        self,
        pod: SimulatedPod,
        container: SimulatedContainer,
        env: Mapping[str, str | None],
        objects: Objects,
        then: "Volumes | None" = None,
    ) -> None:
        """``env``: the container's variables, as far as they are known. ``then``: the files when the container started,
        which it keeps where it mounts a part of a volume (``subPath``)."""
        self._then = then or self
        self._pod = pod
        self._container = container
        self._env = env
        self._objects = objects
        self._known: dict[str, tuple[Contents, list[str]]] = {}
        mounts = ((normpath("/" + each.mount_path.lstrip("/")), each) for each in container.volume_mounts)
        self._mounts = sorted(mounts, key=lambda each: len(each[0]), reverse=True)

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError, IsADirectoryError, UnknownContent."""
        if (managed := self._managed(path)) is not None:
            return managed
        contents, paths, inner = self._place(path)
        found = contents.get(inner)
        if found is None:
            if not inner or _first_below(paths, f"{inner}/") is not None:
                raise IsADirectoryError
            raise FileNotFoundError
        return found() if callable(found) else found

    def _managed(self, path: str) -> bytes | None:
        """A file that the kubelet writes; None if it is none."""
        if self.mount_point(path):
            return None
        services = self._objects.services(self._pod.namespace, links=False)
        return file_of(self._pod, normpath(path), services.get("KUBERNETES_SERVICE_HOST", ""))

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted. Raises FileNotFoundError, NotADirectoryError, UnknownContent."""
        if not path.strip("/") and not self.mount_point("/"):
            return sorted({*_ROOT, *(mounted.split("/")[1] for mounted, _ in self._mounts)})
        if self._managed(path) is not None:
            raise NotADirectoryError
        contents, paths, inner = self._place(path)
        if inner in contents:
            raise NotADirectoryError
        folder = f"{inner}/" if inner else ""
        found: list[str] = []
        first = _first_below(paths, folder)
        while first is not None:
            name = first[len(folder) :].partition("/")[0]
            if not found or found[-1] != name:
                found.append(name)
            first = _first_below(
                paths, folder, f"{folder}{name}{_AFTER_SLASH if '/' in first[len(folder) :] else _FIRST}"
            )
        if inner and not found:
            raise FileNotFoundError
        return sorted(found)

    @property
    def working_dir(self) -> str:
        """The working directory of the container; empty if it is the image's."""
        return self._container.working_dir if self._container.working_dir.startswith("/") else ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of the container's first process; empty if it is the image's."""
        words = (*self._container.command, *self._container.args) if self._container.command else ()
        return tuple(expand(word, self._env) or "" for word in words)

    @property
    def user(self) -> int | None:
        """The user ID of the container; None: the image's."""
        return next((each.run_as_user for each in self._contexts() if each.run_as_user is not None), None)

    @property
    def group(self) -> int | None:
        """The group ID of the container; None: the image's. It is 0 for a user that is not in the image."""
        asked = next((each.run_as_group for each in self._contexts() if each.run_as_group is not None), None)
        return 0 if asked is None and self.user else asked

    @property
    def groups(self) -> tuple[int, ...]:
        """The supplemental groups of the pod."""
        context = self._pod.spec.security_context
        if context is None:
            return ()
        return (*(() if context.fs_group is None else (context.fs_group,)), *context.supplemental_groups)

    def _contexts(self) -> Iterator[SecurityContext]:
        contexts = self._container.security_context, self._pod.spec.security_context
        return (each for each in contexts if each is not None)

    @property
    def fqdn(self) -> str:
        """The fully qualified host name of the pod."""
        return fqdn_of(self._pod)

    def read_only(self, path: str) -> bool:
        """Whether a path is read-only."""
        _, mount = self._mount(path)
        volume = self._volume(mount.name) if mount is not None else None
        if mount is None:
            context = self._container.security_context
            fixed = context is not None and context.read_only_root_filesystem
            return bool(fixed) and not path.startswith(("/dev/", "/proc/"))
        if volume is None:
            return False
        others = volume.config_map or volume.secret or volume.downward_api or volume.projected or volume.image
        return mount.read_only or others is not None

    def mount_point(self, path: str) -> str:
        """The mount point that contains a path; empty if there is none."""
        return self._mount(path)[0]

    def _mount(self, path: str) -> tuple[str, VolumeMount | None]:
        path = normpath(path)
        return next((each for each in self._mounts if _below(each[0], path)), ("", None))

    def _volume(self, name: str) -> SimulatedVolume | None:
        return next((each for each in self._pod.spec.volumes if each.name == name), None)

    def _place(self, path: str) -> tuple[Contents, list[str], str]:
        """The files of a volume, their paths sorted, and the path in it."""
        path = normpath(path)
        at, mount = self._mount(path)
        if not path.startswith("/") or mount is None:
            raise UnknownContent
        rest = path[len(at) :].strip("/")
        if rest == "..data" or rest.startswith("..data/"):
            rest = rest[len("..data") :].strip("/")
        path_there = sub_path_of(mount, self._env)
        if path_there is None:
            raise UnknownContent
        inner = "/".join(part for part in (path_there and normpath(path_there), rest) if part)
        source = self._then if path_there else self
        return *source._contents(mount.name), inner

    def _contents(self, name: str) -> tuple[Contents, list[str]]:
        if name not in self._known:
            volume = self._volume(name)
            if volume is None:
                raise UnknownContent
            found = dict(self._files(volume))
            self._known[name] = found, sorted(found)
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
                    raise UnknownContent
        else:
            raise UnknownContent

    def _config_map(self, source: ConfigMapSource) -> Iterator[tuple[str, bytes]]:
        return _chosen(source, self._objects.config_map(self._pod.namespace, source.name))

    def _secret(self, source: ConfigMapSource, name: str) -> Iterator[tuple[str, bytes]]:
        return _chosen(source, self._objects.secret(self._pod.namespace, name))

    def _token(self, source: TokenSource) -> Callable[[], bytes]:
        return lambda: self._objects.token(self._pod, source)

    def _downward(self, source: DownwardSource) -> Iterator[tuple[str, Callable[[], bytes]]]:
        for item in source.items:
            yield normpath(item.path), partial(self._of_pod, item)

    def _of_pod(self, item: DownwardFile) -> bytes:
        value = None
        if item.field_ref is not None:
            value = field_of(self._pod, item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            allocatable = self._objects.allocatable(self._pod.spec.node_name)
            value = resource_of(self._pod, self._container, item.resource_field_ref, allocatable)
        if value is None:
            raise UnknownContent
        return value.encode()


def sub_path_of(mount: VolumeMount, env: Mapping[str, str | None]) -> str | None:
    """The part of a volume that is mounted, empty for all of it; None if a variable in it is unknown."""
    path = expand(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path
    return None if path is None or "$(" in path else path


def _chosen(source: ConfigMapSource, found: Mapping[str, bytes] | None) -> Iterator[tuple[str, bytes]]:
    if found is None:
        return
    if not source.items:
        yield from found.items()
    for item in source.items:
        if item.key in found:
            yield normpath(item.path), found[item.key]


_FIRST, _AFTER_SLASH = "\0", chr(ord("/") + 1)


def _first_below(paths: list[str], folder: str, at_least: str = "") -> str | None:
    """The first path below the folder that is not less than ``at_least``."""
    index = bisect_left(paths, at_least or folder)
    return paths[index] if index < len(paths) and paths[index].startswith(folder) else None


def _below(folder: str, path: str) -> bool:
    """Whether a path is a folder, or in it."""
    return not folder or folder == "/" or path == folder or path.startswith(f"{folder}/")
