"""Defaults of pods and of pod templates.

Fields that the original always writes (``resources: {}``) are set here too.

Source: pkg/apis/core/v1/{defaults,zz_generated.defaults}.go.
"""

from kcm_cli.sandbox.apiserver.defaulting import fill, pod_resources, resources, volumes
from kcm_cli.sandbox.apiserver.defaulting.images import pull_policy
from kcm_cli.sandbox.apiserver.types import Tree

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HTTP_DEFAULTS = (("path", "/"), ("scheme", "HTTP"))
_CONTAINER_DEFAULTS = (("terminationMessagePath", "/dev/termination-log"), ("terminationMessagePolicy", "File"))
_INIT_ANNOTATIONS = frozenset(
    f"pod.{stage}.kubernetes.io/{name}"
    for stage in ("alpha", "beta")
    for name in ("init-containers", "init-container-statuses")
)
_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_SPEC_DEFAULTS: tuple[tuple[str, object], ...] = (
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("schedulerName", "default-scheduler"),
)
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def pod(doc: Tree) -> None:
    """A Pod."""
    spec = doc.setdefault("spec", {})
    containers, inits = spec.get("containers") or (), spec.get("initContainers") or ()
    for container in containers:
        resources.requests_from_limits(container)
    for container in inits:
        resources.requests_from_limits(container)
    if spec.get("resources") is not None:
        pod_resources.pod_level(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _host_ports(containers)
        _host_ports(inits)
    pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _drop_init_annotations(doc["metadata"])
    status = doc.setdefault("status", {})
    if status:
        _status(status)


def template(holder: Tree) -> None:
    """The pod template in a field ``template``; made if it is missing."""
    found = holder.setdefault("template", {})
    _drop_init_annotations(found.setdefault("metadata", {}))
    pod_spec(found.setdefault("spec", {}))


def pod_spec(spec: Tree) -> None:
    """What pods and templates have in common."""
    fill.empty(spec, _SPEC_DEFAULTS)
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if found := spec.get("volumes"):
        for volume in found:
            volumes.volume(volume)
    for item in spec.get("containers") or ():
        container(item)
    for item in spec.get("initContainers") or ():
        container(item)
    for item in spec.get("ephemeralContainers") or ():
        container(item)
    resources.resource_list(spec.get("overhead"))
    if own := spec.get("resources"):
        resources.resource_list(own.get("limits"))
        resources.resource_list(own.get("requests"))


def container(item: Tree) -> None:
    """A container of any sort."""
    if not item.get("imagePullPolicy"):
        item["imagePullPolicy"] = pull_policy(item.get("image", ""))
    fill.empty(item, _CONTAINER_DEFAULTS)
    resources.requirements(item)
    for port in item.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
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
    """A probe of a container."""
    fill.empty(found, _PROBE_DEFAULTS)
    _http_get(found)
    grpc = found.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _http_get(handler: Tree | None) -> None:
    action = (handler or {}).get("httpGet")
    if action is not None:
        fill.empty(action, _HTTP_DEFAULTS)


def _value_source(source: Tree) -> None:
    reference = source.get("fieldRef")
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"
    reference = source.get("fileKeyRef")
    if reference is not None and reference.get("optional") is None:
        reference["optional"] = False
    reference = source.get("resourceFieldRef")
    if reference is not None:
        volumes.divisor(reference)


def _host_ports(containers: list[Tree] | tuple[Tree, ...]) -> None:
    for item in containers:
        for port in item.get("ports") or ():
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]


def _drop_init_annotations(meta: Tree) -> None:
    # upstream: pkg/apis/core/v1/conversion.go#dropInitContainerAnnotations
    annotations = meta.get("annotations")
    if annotations and not _INIT_ANNOTATIONS.isdisjoint(annotations):
        meta["annotations"] = {k: v for k, v in annotations.items() if k not in _INIT_ANNOTATIONS}


def _status(status: Tree) -> None:
    if ip := status.get("podIP"):
        addresses = status.get("podIPs")
        if not addresses or addresses[0].get("ip") != ip:
            status["podIPs"] = [{"ip": ip}]
    elif addresses := status.get("podIPs"):
        status["podIP"] = addresses[0].get("ip", "")
    for field in _STATUSES:
        for item in status.get(field) or ():
            _status_resources(item)
    _status_resources(status)


def _status_resources(item: Tree) -> None:
    resources.resource_list(item.get("allocatedResources"))
    if found := item.get("resources"):
        resources.resource_list(found.get("limits"))
        resources.resource_list(found.get("requests"))
