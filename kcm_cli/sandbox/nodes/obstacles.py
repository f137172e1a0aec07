"""What prevents volumes from being mounted and containers from starting: missing ConfigMaps or Secrets, claims, images.

upstream: pkg/kubelet/kubelet_pods.go#makeEnvironmentVariables, pkg/kubelet/images/image_manager.go,
pkg/volume/{configmap,secret,projected}
"""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain

from msgspec.structs import replace

from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.remembered import remembered
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.runtime.informers import Informers
from kcm_cli.sandbox.nodes.claims import Claims
from kcm_cli.sandbox.nodes.containers import full_image
from kcm_cli.sandbox.nodes.environment import known_env
from kcm_cli.sandbox.nodes.expansion import expand, references
from kcm_cli.sandbox.nodes.hostnames import left_out
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.nodes.machine import MOUNT, PULL, Hold
from kcm_cli.sandbox.nodes.objects import CachedObjects
from kcm_cli.sandbox.nodes.references import CONFIG_MAP, SECRET, References, object_id
from kcm_cli.sandbox.nodes.script import PodScript
from kcm_cli.sandbox.nodes.volumes import ReadOnce
from kcm_cli.sandbox.views import (
    CONFIG_MAP_KEYS,
    SECRET_KEYS,
    ImageSource,
    SimulatedContainer,
    SimulatedPod,
    containers_of,
)

INVALID_IMAGE, NEVER_PULL, CONFIG_ERROR = "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"
_NAME = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?::[0-9]+)?/)?{_NAME}(?:/{_NAME})*(?::\w[\w.-]{{0,127}})?(?:@[a-z0-9]+:[0-9a-f]{{32,}})?"
)


@remembered(4096)
def is_image(name: str) -> bool:
    """Whether a kubelet accepts it as the name of an image."""
    return len(name) <= 4096 and _IMAGE.fullmatch(name) is not None


class Obstacles:
    """Finds obstacles in the caches."""

    def __init__(self, informers: Informers) -> None:
        self._claims = Claims(informers, self._changed, self._attached)
        self._objects = CachedObjects(informers)
        self._config_maps = informers.get(CONFIG_MAP_KEYS)
        self._secrets = informers.get(SECRET_KEYS)
        self._references = References(self._config_maps.store.get, self._secrets.store.get)
        self._failing: dict[str, str] = {}
        self._listeners: list[tuple[Callable[[str], None], Callable[[str], None]]] = []

        self._follow(CONFIG_MAP, self._config_maps)
        self._follow(SECRET, self._secrets)

    def _follow(self, kind: str, informer: AnyInformer) -> None:
        def seen(obj: Object) -> None:
            self._changed(object_id(kind, obj.key))

        informer.listen(on_add=seen, on_update=lambda _, new: seen(new), on_delete=seen)

    def listen(self, changed: Callable[[str], None], attached: Callable[[str], None]) -> None:
        """Call functions: with the id (``references.object_id``) of a ConfigMap, Secret or claim that changed (empty:
        any may have), and with the node whose attached volumes changed."""
        self._listeners.append((changed, attached))

    def _changed(self, which: str) -> None:
        for changed, _ in self._listeners:
            changed(which)

    def _attached(self, node: str) -> None:
        for _, attached in self._listeners:
            attached(node)

    async def synced(self) -> None:
        """Wait until the caches are filled."""
        await self._config_maps.synced.wait()
        await self._secrets.synced.wait()
        await self._claims.synced()

    def fail_image(self, pattern: str, message: str) -> None:
        """Make pulls of images fail that match a pattern with ``*`` and ``?``. message: empty if they do not exist."""
        self._failing[pattern] = message

    def restore_image(self, pattern: str) -> None:
        """Undo ``fail_image`` for a pattern."""
        self._failing.pop(pattern, None)

    def restore_images(self) -> None:
        """Undo ``fail_image`` for all patterns."""
        self._failing.clear()

    def of_volumes(self, pod: SimulatedPod) -> Hold | None:
        """The obstacle for the volumes of a pod; None if there is none."""
        return self._claims.unbound(pod) or self._of_objects(pod) or self._claims.unattached(pod)

    def _of_objects(self, pod: SimulatedPod) -> Hold | None:
        texts = self._references.of_volumes(pod)
        return Hold(MOUNT, texts[0], tuple(texts[1:])) if texts else None

    def remarks(self, pod: SimulatedPod) -> Iterator[tuple[str, str]]:
        """Reason and message of the Events about a pod that starts nevertheless: image pull Secrets that do not exist,
        a resolver with too many servers or domains."""
        names = (secret.name for secret in pod.spec.image_pull_secrets)
        missing = [name for name in names if name and self._secrets.store.get(f"{pod.namespace}/{name}") is None]
        if missing:
            text = f"Unable to retrieve some image pull secrets ({', '.join(missing)}); "
            yield "FailedToRetrieveImagePullSecret", f"{text}attempting to pull the image may not succeed."
        if pod.spec.dns_config is not None:
            server = self._objects.services(pod.namespace, links=False).get("KUBERNETES_SERVICE_HOST", "")
            for text in left_out(pod, server):
                yield "DNSConfigForming", text

    def of_containers(self, pod: SimulatedPod, script: PodScript, images: Images) -> list[Hold | None]:
        """The obstacle for each container, None if there is none, in the order of the script."""
        known = {container.name: container for container in script.containers}
        sources = {volume.name: volume.image for volume in pod.spec.volumes if volume.image is not None}
        found: list[Hold | None] = []
        for container in containers_of(pod):
            own = known.get(container.name)
            failure, problems = (own.pull_error, dict(own.env_problems)) if own is not None else ("", {})
            found.append(
                self._volume_image(sources, container, images)
                or self._image(container.image, container.image_pull_policy, failure, images)
                or self._config(pod, container, problems)
            )
        return found

    def _volume_image(
        self, sources: Mapping[str, ImageSource], container: SimulatedContainer, images: Images
    ) -> Hold | None:
        """The obstacle for an image volume that the container mounts; of several, the last one."""
        for mount in reversed(container.volume_mounts) if sources else ():
            source = sources.get(mount.name)
            hold = self._image(source.reference, source.pull_policy, "", images) if source is not None else None
            if source is not None and hold is not None:
                return replace(hold, image=source.reference)
        return None

    def _image(self, image: str, policy: str, failure: str, images: Images) -> Hold | None:
        if not is_image(image):
            why = f'couldn\'t parse image name "{image}": invalid reference format'
            return Hold(INVALID_IMAGE, f'Failed to apply default image tag "{image}": {why}')
        if not failure and not self._failing:
            return None
        if policy != "Always" and images.has(image):
            return None
        name = full_image(image)
        rules = (
            text for pattern, text in self._failing.items() if fnmatchcase(image, pattern) or fnmatchcase(name, pattern)
        )
        error = failure or next(rules, None)
        if error is not None and policy == "Never":
            return Hold(NEVER_PULL, f'Container image "{image}" is not present with pull policy of Never')
        return Hold(PULL, error or _not_found(name)) if error is not None else None

    def _config(self, pod: SimulatedPod, container: SimulatedContainer, of_files: Mapping[str, str]) -> Hold | None:
        """of_files: the errors of variables whose values are in files."""
        for message in chain(
            self._references.of_variables(pod, container, of_files),
            self._mount_problems(pod, container),
            root_problems(pod, container),
        ):
            return Hold(CONFIG_ERROR, message)
        return None

    def _mount_problems(self, pod: SimulatedPod, container: SimulatedContainer) -> Iterator[str]:
        expressions = [mount.sub_path_expr for mount in container.volume_mounts if mount.sub_path_expr]
        if not expressions:
            return
        env = known_env(container, pod, ReadOnce(self._objects))
        unknown = {variable.name for variable in container.env} - env.keys()
        for expression in expressions:
            missing = {name for name in references(expression) if not env.get(name)} - unknown
            path = expand(expression, env)
            if missing:
                yield f"missing value for {', '.join(sorted(missing))}"
            elif path is None:
                yield f"error SubPath `{expression}` is too long"
            elif path.startswith("/"):
                yield f"error SubPath `{path}` must not be an absolute path"
            elif ".." in path.split("/"):
                yield f"unable to provision SubPath `{path}`: must not contain '..'"


def root_problems(pod: SimulatedPod, container: SimulatedContainer) -> Iterator[str]:
    """``runAsNonRoot`` with ``runAsUser: 0``. The user of an image is unknown, and accepted."""
    contexts = [each for each in (container.security_context, pod.spec.security_context) if each is not None]
    non_root = next((each.run_as_non_root for each in contexts if each.run_as_non_root is not None), False)
    user = next((each.run_as_user for each in contexts if each.run_as_user is not None), None)
    if non_root and user == 0:
        where = f'pod: "{pod.name}_{pod.namespace}({pod.uid})", container: {container.name}'
        yield f"container's runAsUser breaks non-root policy ({where})"


def _not_found(image: str) -> str:
    text = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {image}: not found'
    return f"rpc error: code = NotFound desc = {text}"
