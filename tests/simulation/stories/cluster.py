"""Namespaces, ownership, policies and stored versions."""

from typing import Any

from tests.kit.simulation import NAMESPACE, World
from tests.simulation.stories.kit import (
    CONFIG_MAPS,
    SECRETS,
    SPACES,
    Step,
    Story,
    create,
    delete,
    kind,
    patch,
    serving,
    together,
    typed,
    wide,
)

MIGRATIONS = wide("storagemigration.k8s.io/v1beta1/storageversionmigrations")
VERSIONS = wide("internal.apiserver.k8s.io/v1alpha1/storageversions")
LEASES = kind("coordination.k8s.io/v1/leases")
POLICIES = wide("admissionregistration.k8s.io/v1/validatingadmissionpolicies")
WIDGETS = kind("example.com/v1/widgets")
IDENTITY = {"labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}
SYSTEM = "kube-system"


def owned(name: str, owner: str, *, blocking: bool = False) -> Step:
    """A ConfigMap that belongs to another."""

    async def step(world: World) -> None:
        uid = (await world.client.get_doc(CONFIG_MAPS, NAMESPACE, owner))["metadata"]["uid"]
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": blocking}
        await create(CONFIG_MAPS, name, metadata={"ownerReferences": [ref]})(world)

    return step


def stored(name: str, *servers: str) -> Step:
    entries = [{"apiServerID": one, "encodingVersion": "v1", "servedVersions": ["v1"]} for one in servers]
    return together(
        typed(VERSIONS, "StorageVersion", {"metadata": {"name": name}, "spec": {}}),
        patch(VERSIONS, name, {"status": {"storageVersions": entries}}, subresource="status"),
    )


def policy(text: str) -> dict[str, Any]:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    return {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": text}]}


STORIES = {
    "namespace": Story(
        about=("namespace", "serviceaccount"),
        steps=(
            create(SPACES, "extra"),
            together(
                create(CONFIG_MAPS, "free", "extra"),
                create(CONFIG_MAPS, "held", "extra", metadata={"finalizers": ["example.com/wait"]}),
            ),
            delete(SPACES, "extra"),
            patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "extra"),
        ),
    ),
    "ownership": Story(
        about=("garbage-collector",),
        steps=(
            create(CONFIG_MAPS, "a"),
            owned("b", "a", blocking=True),
            together(owned("c", "b"), owned("d", "a")),
            delete(CONFIG_MAPS, "b", "Orphan"),
            delete(CONFIG_MAPS, "a", "Foreground"),
            delete(CONFIG_MAPS, "c"),
        ),
    ),
    "policy": Story(
        about=("validatingadmissionpolicy-status",),
        steps=(
            create(POLICIES, "p", spec=policy("object.spec.replica > 1")),
            patch(POLICIES, "p", {"spec": policy("object.spec.replicas > 1")}),
        ),
    ),
    "migration": Story(
        about=("storage-version-migrator",),
        flags=("--feature-gates=StorageVersionMigrator=true",),
        before=(
            serving(MIGRATIONS, "StorageVersionMigration"),
            *(create(SECRETS, f"s{number}") for number in range(3)),
        ),
        steps=(
            together(
                *(
                    typed(
                        MIGRATIONS,
                        "StorageVersionMigration",
                        {"metadata": {"name": name}, "spec": {"resource": {"group": "", "resource": plural}}},
                    )
                    for name, plural in (("m", "secrets"), ("n", "secrets"), ("none", "nothings"))
                )
            ),
        ),
    ),
    "stored-versions": Story(
        about=("storageversion-garbage-collector",),
        flags=("--feature-gates=StorageVersionAPI=true,APIServerIdentity=true",),
        before=(
            serving(VERSIONS, "StorageVersion"),
            create(LEASES, "a", SYSTEM, metadata=IDENTITY, spec={}),
            create(LEASES, "b", SYSTEM, metadata=IDENTITY, spec={}),
        ),
        steps=(
            stored("x.y", "a", "b"),
            stored("x.z", "a", "gone"),
            delete(LEASES, "a", namespace=SYSTEM),
            delete(LEASES, "b", namespace=SYSTEM),
        ),
    ),
}
