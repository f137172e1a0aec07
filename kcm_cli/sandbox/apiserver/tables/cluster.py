"""Tables of cluster-wide kinds: access, certificates, admission, devices, drivers, flow control.

upstream: pkg/printers/internalversion/printers.go (v1.36)
"""

from collections.abc import Callable
from datetime import datetime

from kcm_cli.machinery.ages import human_duration
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, flag, number, wide
from kcm_cli.sandbox.apiserver.tables.core import UNSET, name_of, named
from kcm_cli.sandbox.apiserver.tables.workloads import NONE
from kcm_cli.sandbox.apiserver.types import Tree


def _binding(doc: Tree, now: datetime) -> list[object]:
    role = doc.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in doc.get("subjects") or ():
        name = f"{one['namespace']}/{one['name']}" if one.get("namespace") else one["name"]
        subjects.setdefault(one["kind"], []).append(name if one["kind"] == "ServiceAccount" else one["name"])
    shown = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(doc), f"{role.get('kind', '')}/{role.get('name', '')}", created(doc, now), *shown]


def _signing_request(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    types = {one["type"] for one in status.get("conditions") or ()}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    state += (",Failed" if "Failed" in types else "") + (",Issued" if status.get("certificate") else "")
    lifetime = spec.get("expirationSeconds")
    return [
        name_of(doc),
        created(doc, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if lifetime is None else human_duration(lifetime),
        state,
    ]


def _lease(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), (doc.get("spec") or {}).get("holderIdentity") or "", created(doc, now)]


def _priority_class(doc: Tree, now: datetime) -> list[object]:
    head = [name_of(doc), doc.get("value", 0), bool(doc.get("globalDefault"))]
    return [*head, created(doc, now), doc.get("preemptionPolicy") or ""]


def _runtime_class(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), doc.get("handler", ""), created(doc, now)]


def _attachment(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    attached = bool(status.get("attached"))
    return [name_of(doc), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, created(doc, now)]


def _attributes_class(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), doc.get("driverName", ""), created(doc, now)]


def _csi_node(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), len((doc.get("spec") or {}).get("drivers") or ()), created(doc, now)]


def _csi_driver(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    requests = spec.get("tokenRequests")
    return [
        name_of(doc),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(one.get("audience", "") for one in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        created(doc, now),
    ]


def _webhooks(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), len(doc.get("webhooks") or ()), created(doc, now)]


def _policy(rules: str) -> Callable[[Tree, datetime], list[object]]:
    def cells(doc: Tree, now: datetime) -> list[object]:
        spec = doc.get("spec") or {}
        kind = spec.get("paramKind")
        text = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
        return [name_of(doc), len(spec.get(rules) or ()), text, created(doc, now)]

    return cells


def _policy_binding(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    reference, text = spec.get("paramRef"), UNSET
    if reference is not None and reference.get("name"):
        text = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference is not None and reference.get("selector") is not None:
        text = _go_selector(reference["selector"])
    return [name_of(doc), spec.get("policyName", ""), text, created(doc, now)]


def _go_selector(selector: Tree) -> str:
    """As the original's generated code prints the struct."""
    found = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {found[key]}," for key in sorted(found))
    terms = "".join(_go_requirement(one) for one in selector.get("matchExpressions") or ())
    expressions = f"[]LabelSelectorRequirement{{{terms}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},MatchExpressions:{expressions},}}"


def _go_requirement(one: Tree) -> str:
    values = " ".join(one.get("values") or ())
    return f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},Values:[{values}],}},"


def _flow_schema(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    method = spec.get("distinguisherMethod")
    dangling = next((one["status"] for one in status.get("conditions") or () if one["type"] == "Dangling"), "?")
    return [
        name_of(doc),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        NONE if method is None else method["type"],
        created(doc, now),
        dangling,
    ]


def _priority_level(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    queues = [NONE] * 3 if queuing is None else [queuing.get(f, 0) for f in ("queues", "handSize", "queueLengthLimit")]
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares")
    return [name_of(doc), spec.get("type", ""), shares, *queues, created(doc, now)]


def _service_cidr(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), ",".join((doc.get("spec") or {}).get("cidrs") or ()), created(doc, now)]


def _ip_address(doc: Tree, now: datetime) -> list[object]:
    parent, text = (doc.get("spec") or {}).get("parentRef"), NONE
    if parent is not None:
        group = f".{parent['group']}" if parent.get("group") else ""
        text = f"{parent.get('resource', '')}{group}".lower()
        text += f"/{parent['namespace']}" if parent.get("namespace") else ""
        text += f"/{parent.get('name', '')}"
    return [name_of(doc), text, created(doc, now)]


def _resource_claim(doc: Tree, now: datetime) -> list[object]:
    status, deleted = doc.get("status") or {}, bool(doc["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return [name_of(doc), ",".join(states), created(doc, now)]


def _resource_slice(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [name_of(doc), spec.get("nodeName") or "", spec.get("driver", ""), pool, created(doc, now)]


def _api_service(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    service = spec.get("service")
    where = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    state = "Unknown"
    for condition in status.get("conditions") or ():
        if condition["type"] == "Available":
            true = condition.get("status") == "True"
            state = "True" if true else f"{condition.get('status')} ({condition.get('reason', '')})"
    return [name_of(doc), where, state, created(doc, now)]


def plain(doc: Tree, now: datetime) -> list[object]:
    """Name and creation time: for kinds without a table of their own."""
    return [name_of(doc), doc["metadata"].get("creationTimestamp")]


PLAIN = Layout((NAME, Column("Created At", "ObjectMeta.creationTimestamp", "date")), plain)


def _binding_columns(word: str, scope: str) -> tuple[Column, ...]:
    role = f"RoleRef can {scope}. If the RoleRef cannot be resolved, the Authorizer must return an error."
    return (
        NAME,
        Column("Role", role),
        AGE,
        wide("Users", f"Users in the {word}"),
        wide("Groups", f"Groups in the {word}"),
        wide("ServiceAccounts", f"ServiceAccounts in the {word}"),
    )


def _policy_columns(counted: str, about: str) -> tuple[Column, ...]:
    kind = "ParamKind specifies the kind of resources used to parameterize this policy"
    return (NAME, number(counted, about), Column("ParamKind", kind), AGE)


_WEBHOOKS = Layout(
    (NAME, number("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration"), AGE),
    _webhooks,
)
_POLICY_BINDING = Layout(
    (
        NAME,
        Column("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
        Column("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
        AGE,
    ),
    _policy_binding,
)

# These tables are headed with what earlier versions of their kinds said of the fields.
_SIGNER = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. "
    "If empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."
)
_ANY_ROLE = "reference a Role in the current namespace or a ClusterRole in the global namespace"
_CLUSTER_ROLE = "only reference a ClusterRole in the global namespace"

_ADMISSION = "admissionregistration.k8s.io"
_FLOWS = "flowcontrol.apiserver.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_DEVICES = "resource.k8s.io"
_STORAGE = "storage.k8s.io"

LAYOUTS: dict[str, Layout] = {
    f"rolebindings.{_RBAC}": Layout(_binding_columns("roleBinding", _ANY_ROLE), _binding),
    f"clusterrolebindings.{_RBAC}": Layout(_binding_columns("clusterRoleBinding", _CLUSTER_ROLE), _binding),
    "certificatesigningrequests.certificates.k8s.io": Layout(
        (
            NAME,
            AGE,
            Column("SignerName", _SIGNER),
            Column("Requestor", "Base64-encoded PKCS#10 CSR data"),
            Column("RequestedDuration", "CertificateSigningRequestSpec.expirationSeconds"),
            Column("Condition", "Conditions applied to the request, such as approval or denial."),
        ),
        _signing_request,
    ),
    "leases.coordination.k8s.io": Layout((NAME, Column("Holder", "LeaseSpec.holderIdentity"), AGE), _lease),
    "priorityclasses.scheduling.k8s.io": Layout(
        (
            NAME,
            number("Value", "PriorityClass.value"),
            flag("Global-Default", "PriorityClass.globalDefault"),
            AGE,
            Column("PreemptionPolicy", "PriorityClass.preemptionPolicy"),
        ),
        _priority_class,
    ),
    "runtimeclasses.node.k8s.io": Layout((NAME, Column("Handler"), AGE), _runtime_class),
    f"volumeattachments.{_STORAGE}": Layout(
        (
            NAME,
            Column("Attacher", "VolumeAttachmentSpec.attacher", format="name"),
            Column("PV", "VolumeAttachmentSource.persistentVolumeName"),
            Column("Node", "VolumeAttachmentSpec.nodeName"),
            flag("Attached", "VolumeAttachmentStatus.attached"),
            AGE,
        ),
        _attachment,
    ),
    f"volumeattributesclasses.{_STORAGE}": Layout(
        (NAME, Column("DriverName", "VolumeAttributesClass.driverName"), AGE), _attributes_class
    ),
    f"csinodes.{_STORAGE}": Layout(
        (NAME, number("Drivers", "Drivers indicates the number of CSI drivers registered on the node"), AGE), _csi_node
    ),
    f"csidrivers.{_STORAGE}": Layout(
        (
            NAME,
            flag("AttachRequired", "CSIDriverSpec.attachRequired"),
            flag("PodInfoOnMount", "CSIDriverSpec.podInfoOnMount"),
            flag("StorageCapacity", "CSIDriverSpec.storageCapacity"),
            Column("TokenRequests", "CSIDriverSpec.tokenRequests"),
            flag("RequiresRepublish", "CSIDriverSpec.requiresRepublish"),
            Column("Modes", "CSIDriverSpec.volumeLifecycleModes"),
            AGE,
        ),
        _csi_driver,
    ),
    f"mutatingwebhookconfigurations.{_ADMISSION}": _WEBHOOKS,
    f"validatingwebhookconfigurations.{_ADMISSION}": _WEBHOOKS,
    f"validatingadmissionpolicies.{_ADMISSION}": Layout(
        _policy_columns(
            "Validations", "Validations indicates the number of validation rules defined in this configuration"
        ),
        _policy("validations"),
    ),
    f"mutatingadmissionpolicies.{_ADMISSION}": Layout(
        _policy_columns("Mutations", "Mutation indicates the number of mutations rules defined in this configuration"),
        _policy("mutations"),
    ),
    f"validatingadmissionpolicybindings.{_ADMISSION}": _POLICY_BINDING,
    f"mutatingadmissionpolicybindings.{_ADMISSION}": _POLICY_BINDING,
    f"flowschemas.{_FLOWS}": Layout(
        (
            NAME,
            Column("PriorityLevel", "PriorityLevelConfigurationReference.name"),
            Column("MatchingPrecedence", "FlowSchemaSpec.matchingPrecedence"),
            Column("DistinguisherMethod", "FlowSchemaSpec.distinguisherMethod"),
            AGE,
            Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
        ),
        _flow_schema,
    ),
    f"prioritylevelconfigurations.{_FLOWS}": Layout(
        (
            NAME,
            Column("Type", "PriorityLevelConfigurationSpec.type"),
            Column("NominalConcurrencyShares", "LimitedPriorityLevelConfiguration.nominalConcurrencyShares"),
            Column("Queues", "QueuingConfiguration.queues"),
            Column("HandSize", "QueuingConfiguration.handSize"),
            Column("QueueLengthLimit", "QueuingConfiguration.queueLengthLimit"),
            AGE,
        ),
        _priority_level,
    ),
    "servicecidrs.networking.k8s.io": Layout((NAME, Column("CIDRs", "ServiceCIDRSpec.cidrs"), AGE), _service_cidr),
    "ipaddresses.networking.k8s.io": Layout((NAME, Column("ParentRef", "IPAddressSpec.parentRef")), _ip_address),
    f"deviceclasses.{_DEVICES}": Layout((NAME, AGE), named),
    f"resourceclaims.{_DEVICES}": Layout(
        (NAME, Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."), AGE),
        _resource_claim,
    ),
    f"resourceclaimtemplates.{_DEVICES}": Layout((NAME, AGE), named),
    f"resourceslices.{_DEVICES}": Layout(
        (
            NAME,
            Column("Node", "ResourceSliceSpec.nodeName"),
            Column("Driver", "ResourceSliceSpec.driver"),
            Column("Pool", "ResourcePool.name"),
            AGE,
        ),
        _resource_slice,
    ),
    "apiservices.apiregistration.k8s.io": Layout(
        (
            NAME,
            Column("Service", "The reference to the service that hosts this API endpoint."),
            Column("Available", "Whether this service is available."),
            AGE,
        ),
        _api_service,
    ),
}
