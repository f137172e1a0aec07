"""ServiceAccount: sets the account of pods, and mounts its token and adds its pull secrets.

upstream: plugin/pkg/admission/serviceaccount/admission.go
"""

import random
from collections.abc import Iterator

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import ENFORCE_MOUNTABLE_SECRETS, MIRROR, ROOT_CA
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.booleans import parse_bool
from kcm_cli.machinery.names import generate_name
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.admission.denial import denied, invalid_name
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.trees import put
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

SERVICE_ACCOUNTS = GVR("", "v1", "serviceaccounts")
_DEFAULT = "default"
_VOLUME, _MOUNT_PATH = "kube-api-access-", "/var/run/secrets/kubernetes.io/serviceaccount"
_ATTEMPTS, _INTERVAL_S = 10, 0.15
"""How often, and in which interval, the default account of a new namespace is looked up."""
_LISTS = (("initContainers", "init container"), ("containers", "container"))


class ServiceAccounts:
    """See the module."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random) -> None:
        self._store = store
        self._clock = clock
        self._random = rng

    async def admit(self, attrs: Attributes) -> None:
        """Change a new pod. Raises ApiError 403."""
        pod: Tree = attrs.obj or {}
        if _is_mirror(pod):
            return
        spec: Tree = pod["spec"]
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = _DEFAULT
        account = await self._account(attrs, spec["serviceAccountName"])
        if _automount(account, spec):
            self._mount_token(spec)
        if not spec.get("imagePullSecrets"):
            secrets = [{"name": each.get("name", "")} for each in account.get("imagePullSecrets") or ()]
            put(spec, "imagePullSecrets", secrets)

    def validate(self, attrs: Attributes) -> None:
        """Check a new pod. Raises ApiError 403."""
        pod: Tree = attrs.obj or {}
        spec: Tree = pod["spec"]
        if _is_mirror(pod):
            if why := next(_mirror_problems(spec), ""):
                raise denied(attrs, why)
            return
        account = self._required(attrs, pod)
        if _enforces(account) and (why := next(_unmountable(account, spec), "")):
            raise denied(attrs, why)

    def validate_ephemeral(self, attrs: Attributes) -> None:
        """Check the ephemeral containers of a pod. Raises ApiError 403."""
        pod: Tree = attrs.obj or {}
        account = self._required(attrs, pod)
        if not _enforces(account):
            return
        secrets = _names(account, "secrets")
        containers = pod["spec"].get("ephemeralContainers") or ()
        if why := next(_container_secrets(containers, "ephemeral container", secrets, account), ""):
            raise denied(attrs, why)

    def _required(self, attrs: Attributes, pod: Tree) -> Tree:
        name = pod["spec"].get("serviceAccountName", "")
        where = f"{attrs.namespace}/{attrs.name}"
        if not name:
            raise denied(attrs, f"no service account specified for pod {where}")
        stored = self._store.get(SERVICE_ACCOUNTS, attrs.namespace, name)
        if stored is None:
            raise denied(attrs, _missing(attrs.namespace, name))
        return stored.doc

    async def _account(self, attrs: Attributes, name: str) -> Tree:
        for attempt in range(_ATTEMPTS if name == _DEFAULT else 1):
            if attempt:
                await self._clock.sleep(_INTERVAL_S)
            stored = self._store.get(SERVICE_ACCOUNTS, attrs.namespace, name)
            if stored is not None:
                return stored.doc
        raise denied(attrs, _missing(attrs.namespace, name))

    def _mount_token(self, spec: Tree) -> None:
        volumes: list[Tree] = spec.get("volumes") or []
        known = next((each["name"] for each in volumes if each["name"].startswith(_VOLUME)), None)
        name = known or generate_name(_VOLUME, self._random)
        mounted = False
        for key, _ in _LISTS:
            for container in spec.get(key) or ():
                mounts: list[Tree] = container.get("volumeMounts") or []
                if not any(each.get("mountPath") == _MOUNT_PATH for each in mounts):
                    mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
                    container["volumeMounts"] = [*mounts, mount]
                    mounted = True
        if mounted and known is None:
            spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Tree:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {
                "configMap": {
                    "name": ROOT_CA,
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }
            },
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def _missing(namespace: str, name: str) -> str:
    why = invalid_name(name) or f"serviceaccount {quote(name)} not found"
    return f"error looking up service account {namespace}/{name}: {why}"


def _is_mirror(pod: Tree) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _automount(account: Tree, spec: Tree) -> bool:
    wanted: bool | None = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken")
    return True if wanted is None else wanted


def _enforces(account: Tree) -> bool:
    return bool(parse_bool((account["metadata"].get("annotations") or {}).get(ENFORCE_MOUNTABLE_SECRETS, "")))


def _names(account: Tree, key: str) -> set[str]:
    return {each.get("name", "") for each in account.get(key) or ()}


def _mirror_problems(spec: Tree) -> Iterator[str]:
    if spec.get("serviceAccountName"):
        yield "a mirror pod may not reference service accounts"
    if _uses_secrets(spec):
        yield "a mirror pod may not reference secrets"
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                yield "a mirror pod may not use ServiceAccountToken volume projections"


_SECRET_VOLUMES = (
    ("secret", "secretName"),
    ("azureFile", "secretName"),
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
)


def _uses_secrets(spec: Tree) -> bool:
    """Whether a pod uses secrets. upstream: pkg/api/pod/util.go#VisitPodSecretNames"""
    if spec.get("imagePullSecrets"):
        return True
    for key in ("initContainers", "containers", "ephemeralContainers"):
        if any(True for container in spec.get(key) or () for _ in _secrets_of(container)):
            return True
    for volume in spec.get("volumes") or ():
        if any((volume.get(kind) or {}).get(field) for kind, field in _SECRET_VOLUMES):
            return True
        sources = (volume.get("projected") or {}).get("sources") or ()
        if any(source.get("secret") is not None for source in sources):
            return True
    return False


def _secrets_of(container: Tree) -> Iterator[tuple[str, str]]:
    """The secrets of a container: their places in errors, and their names."""
    for env in container.get("env") or ():
        reference = (env.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield f"envVar {env.get('name', '')}", reference.get("name", "")
    for source in container.get("envFrom") or ():
        if source.get("secretRef") is not None:
            yield "envFrom", source["secretRef"].get("name", "")


def _unmountable(account: Tree, spec: Tree) -> Iterator[str]:
    """An error for each secret of a pod that its account does not list."""
    secrets, who = _names(account, "secrets"), account["metadata"]["name"]
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is not None:
            name = volume["secret"].get("secretName", "")
            if name not in secrets:
                yield (
                    f'volume with secret.secretName="{name}" is not allowed because service account {who} '
                    "does not reference that secret"
                )
    for key, word in _LISTS:
        yield from _container_secrets(spec.get(key) or (), word, secrets, account)
    pulls = _names(account, "imagePullSecrets")
    for index, each in enumerate(spec.get("imagePullSecrets") or ()):
        name = each.get("name", "")
        if name not in pulls:
            yield (
                f'imagePullSecrets[{index}].name="{name}" is not allowed because service account {who} does '
                "not reference that imagePullSecret"
            )


def _container_secrets(
    containers: list[Tree] | tuple[()], word: str, secrets: set[str], account: Tree
) -> Iterator[str]:
    who = account["metadata"]["name"]
    for container in containers:
        for where, name in _secrets_of(container):
            if name not in secrets:
                yield (
                    f'{word} {container["name"]} with {where} referencing secret.secretName="{name}" is not '
                    f"allowed because service account {who} does not reference that secret"
                )
