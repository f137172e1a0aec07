"""Tables of the core group's other kinds and of networking.

upstream: pkg/printers/internalversion/printers.go (v1.36)
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, age, created, more, wide
from kcm_cli.sandbox.apiserver.tables.workloads import NONE, label_set, selector_text
from kcm_cli.sandbox.apiserver.types import Tree

UNSET = "<unset>"


def name_of(doc: Tree) -> str:
    """The name of an object."""
    return str(doc["metadata"].get("name", ""))


def named(doc: Tree, now: datetime) -> list[object]:
    """Name and age."""
    return [name_of(doc), created(doc, now)]


def _namespace(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), (doc.get("status") or {}).get("phase", ""), created(doc, now)]


def _config_map(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), len(doc.get("data") or ()) + len(doc.get("binaryData") or ()), created(doc, now)]


def _secret(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), doc.get("type", ""), len(doc.get("data") or ()), created(doc, now)]


def _service(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    ips = spec.get("clusterIPs") or ()
    ports = ",".join(_port(port) for port in spec.get("ports") or ())
    return [
        name_of(doc),
        spec.get("type", ""),
        ips[0] if ips else NONE,
        _external_ip(doc, spec),
        ports or NONE,
        created(doc, now),
        label_set(spec.get("selector")),
    ]


def _port(port: Tree) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def _external_ip(doc: Tree, spec: Tree) -> str:
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            balancer = _balancer(doc)
            return ",".join([*filter(None, [balancer]), *external]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _balancer(doc: Tree) -> str:
    status = (doc.get("status") or {}).get("loadBalancer") or {}
    return ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in status.get("ingress") or ()} - {""}))


def _ingress(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    rules = spec.get("rules") or []
    hosts = [rule["host"] for rule in rules[:3] if rule.get("host")]
    text = ",".join(hosts) or "*"
    if hosts and len(rules) > 3:
        text += f" + {len(rules) - 3} more..."
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(doc), spec.get("ingressClassName") or NONE, text, _balancer(doc), ports, created(doc, now)]


def _default_name(doc: Tree, annotation: str) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    return name_of(doc) + (" (default)" if annotations.get(annotation) == "true" else "")


def _ingress_class(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    reference, text = spec.get("parameters"), NONE
    if reference is not None:
        group = f".{reference['apiGroup']}" if reference.get("apiGroup") is not None else ""
        text = f"{reference['kind']}{group}/{reference['name']}"
    name = _default_name(doc, "ingressclass.kubernetes.io/is-default-class")
    return [name, spec.get("controller", ""), text, created(doc, now)]


def _endpoints(doc: Tree, now: datetime) -> list[object]:
    found: list[str] = []
    for subset in doc.get("subsets") or ():
        ips = [one["ip"] for one in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [_joined(ip, port["port"]) for port in ports for ip in ips] if ports else ips
    text = more(found, 3) if doc.get("subsets") else NONE
    return [name_of(doc), text, created(doc, now)]


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _slice(doc: Tree, now: datetime) -> list[object]:
    ports = [str(p["port"]) if p.get("port") is not None else p.get("name", "*") for p in doc.get("ports") or ()]
    found = [ip for endpoint in doc.get("endpoints") or () for ip in endpoint.get("addresses") or ()]
    return [
        name_of(doc),
        doc.get("addressType", ""),
        more(ports, 3) or UNSET,
        more(found, 3) or UNSET,
        created(doc, now),
    ]


def _network_policy(doc: Tree, now: datetime) -> list[object]:
    selector = selector_text((doc.get("spec") or {}).get("podSelector") or {})
    return [name_of(doc), selector, created(doc, now)]


def _node(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    words = [
        "Ready" if c["status"] == "True" else "NotReady" for c in status.get("conditions") or () if c["type"] == "Ready"
    ]
    words = words[-1:] or ["Unknown"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    about = status.get("nodeInfo") or {}
    kernel = about.get("kernelVersion") or "<unknown>"
    if about.get("architecture"):
        kernel += f" ({about['architecture']})"
    return [
        name_of(doc),
        ",".join(words),
        ",".join(_roles(doc)) or NONE,
        created(doc, now),
        about.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        about.get("osImage") or "<unknown>",
        kernel,
        about.get("containerRuntimeVersion") or "<unknown>",
    ]


def _roles(doc: Tree) -> list[str]:
    prefix, roles = "node-role.kubernetes.io/", set()
    for key, value in (doc["metadata"].get("labels") or {}).items():
        if key.startswith(prefix):
            roles.add(key.removeprefix(prefix))
        elif key == "kubernetes.io/role":
            roles.add(value)
    return sorted(roles - {""})


def _address(status: Tree, type_: str) -> str:
    return next((a["address"] for a in status.get("addresses") or () if a["type"] == type_), NONE)


def _event(doc: Tree, now: datetime) -> list[object]:
    first = age(doc.get("firstTimestamp") or doc.get("eventTime"), now)
    last = age(doc["lastTimestamp"], now) if doc.get("lastTimestamp") else first
    count, series = doc.get("count", 0) or 1, doc.get("series")
    if series is not None:
        last, count = age(series.get("lastObservedTime"), now), series.get("count", 0)
    about, source = doc.get("involvedObject") or {}, doc.get("source") or {}
    kind = about.get("kind", "").lower()
    where = source.get("host") or doc.get("reportingInstance") or ""
    who = source.get("component") or doc.get("reportingComponent") or ""
    return [
        last,
        doc.get("type", ""),
        doc.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{who}, {where}" if where else who,
        doc.get("message", "").strip(),
        first,
        count,
        name_of(doc),
    ]


def _quota(doc: Tree, now: datetime) -> list[object]:
    status = doc.get("status") or {}
    used, hard = status.get("used") or {}, status.get("hard") or {}
    texts: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(doc), ", ".join(texts[False]), ", ".join(texts[True]), created(doc, now)]


def _component(doc: Tree, now: datetime) -> list[object]:
    healthy: Tree = next((one for one in doc.get("conditions") or () if one["type"] == "Healthy"), {})
    state = {"True": "Healthy", "False": "Unhealthy"}.get(healthy.get("status", ""), "Unknown")
    return [name_of(doc), state, healthy.get("message", ""), healthy.get("error", "")]


_EVENTS = Layout(
    (
        Column("Last Seen", "Event.lastTimestamp"),
        Column("Type", "Event.type"),
        Column("Reason", "Event.reason"),
        Column("Object", "Event.involvedObject"),
        wide("Subobject", "ObjectReference.fieldPath"),
        wide("Source", "Event.source"),
        Column("Message", "Event.message"),
        wide("First Seen", "Event.firstTimestamp"),
        wide("Count", "Event.count"),
        wide("Name", "ObjectMeta.name", format_="name"),
    ),
    _event,
)

LAYOUTS: dict[str, Layout] = {
    "componentstatuses": Layout(
        (NAME, *(Column(name, f"{name} of the component conditions") for name in ("Status", "Message", "Error"))),
        _component,
    ),
    "namespaces": Layout((NAME, Column("Status", "The status of the namespace"), AGE), _namespace),
    "configmaps": Layout((NAME, Column("Data", "ConfigMap.data"), AGE), _config_map),
    "secrets": Layout((NAME, Column("Type", "Secret.type"), Column("Data", "Secret.data"), AGE), _secret),
    "serviceaccounts": Layout((NAME, AGE), named),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "services": Layout(
        (
            NAME,
            Column("Type", "ServiceSpec.type"),
            Column("Cluster-IP", "ServiceSpec.clusterIP"),
            Column("External-IP", "ServiceSpec.externalIPs"),
            Column("Port(s)", "ServiceSpec.ports"),
            AGE,
            wide("Selector", "ServiceSpec.selector"),
        ),
        _service,
    ),
    "endpoints": Layout((NAME, Column("Endpoints", "Endpoints.subsets"), AGE), _endpoints),
    "endpointslices.discovery.k8s.io": Layout(
        (
            NAME,
            Column("AddressType", "EndpointSlice.addressType"),
            Column("Ports", "EndpointSlice.ports"),
            Column("Endpoints", "EndpointSlice.endpoints"),
            AGE,
        ),
        _slice,
    ),
    "ingresses.networking.k8s.io": Layout(
        (
            NAME,
            Column("Class", "The name of the IngressClass resource that should be used for additional configuration"),
            Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
            Column("Address", "Address is a list containing ingress points for the load-balancer"),
            Column("Ports", "Ports of TLS configurations that open"),
            AGE,
        ),
        _ingress,
    ),
    "ingressclasses.networking.k8s.io": Layout(
        (
            NAME,
            Column("Controller", "Controller that is responsible for handling this class"),
            Column("Parameters", "A reference to a resource with additional parameters"),
            AGE,
        ),
        _ingress_class,
    ),
    "networkpolicies.networking.k8s.io": Layout(
        (NAME, Column("Pod-Selector", "NetworkPolicySpec.podSelector"), AGE), _network_policy
    ),
    "nodes": Layout(
        (
            NAME,
            Column("Status", "The status of the node"),
            Column("Roles", "The roles of the node"),
            AGE,
            Column("Version", "NodeSystemInfo.kubeletVersion"),
            wide("Internal-IP", "NodeStatus.addresses"),
            wide("External-IP", "NodeStatus.addresses"),
            wide("OS-Image", "NodeSystemInfo.osImage"),
            wide("Kernel-Version", "NodeSystemInfo.kernelVersion"),
            wide("Container-Runtime", "NodeSystemInfo.containerRuntimeVersion"),
        ),
        _node,
    ),
    "resourcequotas": Layout(
        (
            NAME,
            Column("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
            Column(
                "Limit",
                "Limits control the maximum amount of cpu/memory that a container may use independent of contention "
                "on the node.",
            ),
            AGE,
        ),
        _quota,
    ),
}
