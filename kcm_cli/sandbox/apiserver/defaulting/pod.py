"""Defaults of pods and of pod templates.

Fields that upstream writes even if they are not set (``resources: {}``) are set, too.

upstream: pkg/apis/core/v1/{defaults,zz_generated.defaults}.go
"""

from kcm_cli.machinery.images import pull_policy
from kcm_cli.sandbox.apiserver.defaulting import fill, resources, volumes
from kcm_cli.sandbox.apiserver.types import Tree

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_INIT_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/{name}"
    for stage in ("alpha", "beta")
    for name in ("init-containers", "init-container-statuses")
)


def template(holder: Tree) -> None:
    """Default the pod template in the field ``template``, which is created if it is missing."""
    found = holder.setdefault("template", {})
    drop_init_annotations(found.setdefault("metadata", {}))
    pod_spec(found.setdefault("spec", {}))


def pod_spec(spec: Tree) -> None:
    """Default the spec of a pod or a template."""
    fill.empty(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    fill.absent(spec, securityContext={}, terminationGracePeriodSeconds=30)
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        volumes.volume(volume)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for item in spec.get(field) or ():
            container(item)
    resources.resource_list(spec.get("overhead"))
    resources.limits_and_requests(spec.get("resources"))


def container(item: Tree) -> None:
    """Default a container, init container or ephemeral container."""
    if not item.get("imagePullPolicy"):
        item["imagePullPolicy"] = pull_policy(item.get("image", ""))
    fill.empty(item, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    resources.requirements(item)
    for port in item.get("ports") or ():
        fill.empty(port, protocol="TCP")
    for variable in item.get("env") or ():
        if source := variable.get("valueFrom"):
            _value_source(source)
    for field in _PROBES:
        if (found := item.get(field)) is not None:
            probe(found)
    if lifecycle := item.get("lifecycle"):
        for hook in ("postStart", "preStop"):
            _http_get(lifecycle.get(hook))


def probe(found: Tree) -> None:
    """Default a probe."""
    fill.empty(found, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _http_get(found)
    fill.absent(found.get("grpc"), service="")


def _http_get(handler: Tree | None) -> None:
    fill.empty((handler or {}).get("httpGet"), path="/", scheme="HTTP")


def _value_source(source: Tree) -> None:
    fill.empty(source.get("fieldRef"), apiVersion="v1")
    fill.absent(source.get("fileKeyRef"), optional=False)
    if (reference := source.get("resourceFieldRef")) is not None:
        volumes.divisor(reference)


def drop_init_annotations(meta: Tree) -> None:
    # upstream: pkg/apis/core/v1/conversion.go#dropInitContainerAnnotations
    annotations = meta.get("annotations")
    if annotations and not _INIT_ANNOTATIONS.isdisjoint(annotations):
        meta["annotations"] = {k: v for k, v in annotations.items() if k not in _INIT_ANNOTATIONS}
        if not meta["annotations"]:
            del meta["annotations"]
