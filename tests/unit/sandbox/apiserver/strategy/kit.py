"""Small objects, and what the server does with them, without a server."""

import copy
from typing import Any

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo

Tree = dict[str, Any]


def info(group: str, plural: str, kind: str, *, namespaced: bool = True, version: str = "v1") -> ResourceInfo:
    return ResourceInfo(GVR(group, version, plural), kind, kind.lower(), namespaced, frozenset())


PODS = info("", "pods", "Pod")
DEPLOYMENTS = info("apps", "deployments", "Deployment")
JOBS = info("batch", "jobs", "Job")
CRON_JOBS = info("batch", "cronjobs", "CronJob")
STATEFUL_SETS = info("apps", "statefulsets", "StatefulSet")
CLAIMS = info("", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = info("", "persistentvolumes", "PersistentVolume", namespaced=False)


def meta(**more: Any) -> Tree:
    base = {"name": "x", "namespace": "d", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return base | more


def pod(spec: Tree | None = None, *, container: Tree | None = None, **metadata: Any) -> Tree:
    containers = [{"name": "c", "image": "i", **(container or {})}]
    return {"metadata": meta(**metadata), "spec": {"containers": containers, **(spec or {})}}


def template(**spec: Any) -> Tree:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def deployment(**spec: Any) -> Tree:
    base = {"selector": {"matchLabels": {"app": "x"}}, "template": template()}
    return {"metadata": meta(), "spec": base | spec}


def job(pod_spec: Tree | None = None, **spec: Any) -> Tree:
    made = template(restartPolicy="Never", **(pod_spec or {}))
    made["metadata"] = {}
    return {"metadata": meta(), "spec": {"template": made, **spec}}


def claim(**spec: Any) -> Tree:
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": meta(), "spec": base | spec, "status": {}}


def rules(resource: ResourceInfo, subresource: str = "") -> Strategy:
    return KINDS.strategy(resource, subresource)


def created(resource: ResourceInfo, doc: Tree) -> Tree:
    """The object as it is after defaults and the strategy's preparation."""
    doc = copy.deepcopy(doc)
    KINDS.of(resource).defaults(doc)
    rules(resource).prepare_create(doc)
    return doc


def stored(resource: ResourceInfo, doc: Tree) -> Tree:
    """A created object without errors, with a version."""
    made = created(resource, doc)
    assert rules(resource).validate_create(made) == []
    made["metadata"]["resourceVersion"] = "1"
    return made


def problems(resource: ResourceInfo, doc: Tree) -> list[str]:
    """The errors of the creation of an object: path and text."""
    return [f"{error.field}: {error.message}" for error in rules(resource).validate_create(created(resource, doc))]


def changed(old: Tree, **paths: Any) -> Tree:
    """A copy with other values: ``spec__replicas=2``; ``None`` removes."""
    doc = copy.deepcopy(old)
    for path, value in paths.items():
        *parents, last = path.split("__")
        holder = doc
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder.setdefault(part, {})
        if value is None:
            holder.pop(last, None)
        else:
            holder[last] = value
    return doc


def update_problems(resource: ResourceInfo, old: Tree, new: Tree) -> list[str]:
    """The errors of an update, without duplicates."""
    new = copy.deepcopy(new)
    KINDS.of(resource).defaults(new)
    rules(resource).prepare_update(new, old)
    return list(dict.fromkeys(f"{error.field}: {error.message}" for error in rules(resource).validate_update(new, old)))
