"""The JSON of the patched object in errors about patches.

Objects that the patch changes have sorted keys. The others have their fields in the order of the API types, as far as
it is known.

upstream: apiserver pkg/endpoints/handlers/patch.go#applyPatchToCurrentObject
"""

import re
from functools import cache, lru_cache
from typing import cast

from kcm_cli.api.protobuf.messages import message, message_names
from kcm_cli.machinery import codec, go_types
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.schema.model import Node

_ESCAPES = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
_field = re.compile(r"(\w+)(?:=([\w.]+))?:(\S+)")
_MOVED = """
v1.AllocatedDeviceStatus device>shareID
v1.CertificateSigningRequestCondition type>status
v1.CertificateSigningRequestSpec request>signerName>expirationSeconds>usages
v1.CronJobSpec schedule>timeZone
v1.CustomResourceDefinitionVersion storage>deprecated>deprecationWarning
v1.DeploymentCondition lastTransitionTime>reason>message
v1.DeploymentStatus updatedReplicas>readyReplicas unavailableReplicas>terminatingReplicas
v1.EndpointAddress nodeName>targetRef
v1.EndpointPort name>protocol
v1.HTTPIngressPath pathType>backend
v1.ISCSIPersistentVolumeSource chapAuthSession>secretRef
v1.IngressBackend service>resource
v1.IngressSpec >ingressClassName
v1.JobSpec activeDeadlineSeconds>podFailurePolicy>successPolicy>backoffLimit>backoffLimitPerIndex>maxFailedIndexes
v1.JobStatus failed>terminating completedIndexes>failedIndexes
v1.MutatingWebhook failurePolicy>matchPolicy namespaceSelector>objectSelector
v1.NamedRuleWithOperations resourceNames>operations
v1.NodeSpec podCIDR>podCIDRs configSource>externalID
v1.PersistentVolumeClaim >kind>apiVersion
v1.PersistentVolumeSpec capacity>gcePersistentDisk awsElasticBlockStore>hostPath>glusterfs>nfs>rbd>iscsi
  cinder>cephfs flocker>flexVolume>azureFile>vsphereVolume>quobyte>azureDisk scaleIO>local
  storageos>csi>accessModes>claimRef>persistentVolumeReclaimPolicy>storageClassName>mountOptions>volumeMode
  volumeMode>nodeAffinity
v1.PodCondition type>observedGeneration
v1.PodStatus >observedGeneration reason>nominatedNodeName hostIP>hostIPs podIP>podIPs startTime>initContainerStatuses
v1.ReplicaSetSpec replicas>minReadySeconds
v1.ReplicaSetStatus terminatingReplicas>observedGeneration>conditions
v1.ReplicationControllerSpec replicas>minReadySeconds
v1.ReplicationControllerStatus availableReplicas>observedGeneration
v1.ServicePort protocol>appProtocol
v1.ServiceSpec clusterIP>clusterIPs ipFamilies>ipFamilyPolicy
v1.SubjectAccessReviewStatus allowed>denied
v1.TokenRequestSpec expirationSeconds>boundObjectRef
v1.TokenReviewStatus audiences>error
v1.ValidatingWebhook failurePolicy>matchPolicy namespaceSelector>objectSelector
v1.WebhookClientConfig >url
v2.HPAScalingRules >stabilizationWindowSeconds
v2.MetricSpec containerResource>external
v2.MetricStatus containerResource>external
"""
"""The fields that are not in the order of their numbers, by type: in ``a>b>c`` c follows b, and b follows a; in ``>b``
b is first."""
_RAW = "as it was sent"


def echo(node: Node, doc: Doc, patch: object) -> str:
    """``patch``: the merge patch, or for a JSON patch the result of ``touched``."""
    text = codec.encode(_arranged(node, doc, patch)).decode()
    for plain, escaped in _ESCAPES:
        text = text.replace(plain, escaped)
    return text


def touched(operations: list[Doc]) -> Doc:
    """The objects and lists on the paths of a JSON patch's operations, as a tree of dicts; values that it adds stay as
    they were sent.
    """
    tree: Doc = {}
    for operation in operations:
        for name in ("path", "from"):
            pointer = operation.get(name)
            if isinstance(pointer, str):
                *parts, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]] or [""]
                at = tree
                for part in parts:
                    if at.get(part, _RAW) is _RAW:
                        at[part] = {}
                    at = cast("Doc", at[part])
                if name == "path" and "value" in operation:
                    at[last] = _RAW
    return tree


def _arranged(node: Node | None, value: object, patch: object) -> object:
    if isinstance(patch, list):
        return _sorted(value)
    if patch is _RAW:
        return value
    if isinstance(value, dict):
        inner = patch if isinstance(patch, dict) else None
        keys = sorted(value) if inner is not None or node is None else _field_order(node, value)
        return {key: _arranged(_child(node, key), value[key], (inner or {}).get(key)) for key in keys}
    if isinstance(value, list):
        item = node.item if node is not None else None
        places = patch if isinstance(patch, dict) else {}
        return [_arranged(item, entry, places.get(str(index))) for index, entry in enumerate(value)]
    return value


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _child(node: Node | None, key: str) -> Node | None:
    if node is None:
        return None
    if node.kind == "struct":
        field = node.fields.get(key)
        return field.node if field else None
    return node.item


def _field_order(node: Node, value: Doc) -> list[str]:
    order = _places(node) if node.kind == "struct" else {}
    return sorted(value, key=lambda key: (order.get(key, len(order)), key))


@cache
def _orders() -> dict[str, dict[str, int]]:
    """The positions of fields, by type and field."""
    lines = go_types.declarations()
    found = {type_: _names(type_, lines) for type_ in lines}
    return {type_: {name: place for place, name in enumerate(names)} for type_, names in found.items()}


@cache
def _numbers() -> dict[str, dict[str, int]]:
    """The same by the field numbers of protobuf messages, for types whose order in Go is not known."""
    found: dict[str, dict[str, int]] = {}
    for name in message_names():
        fields = message(name) or {}
        short = ".".join(name.rsplit(".", 2)[-2:])
        found.setdefault(short, {one.name: number for number, one in fields.items()})
    return found


@cache
def _moved() -> dict[str, list[list[str]]]:
    """The chains of ``_MOVED``, by type."""
    lines = (line.split() for line in _MOVED.strip().replace("\n  ", " ").split("\n"))
    return {type_: [chain.split(">") for chain in chains] for type_, *chains in lines}


@lru_cache(1024)
def _places(node: Node) -> dict[str, int]:
    """The positions of a struct's fields."""
    if known := _orders().get(node.go):
        return known
    numbers = _numbers().get(node.go, {})
    names = sorted(node.fields, key=lambda name: (numbers.get(name, len(numbers)), name))
    for before, *moved in _moved().get(node.go, ()):
        names = [name for name in names if name not in moved]
        at = names.index(before) + 1 if before in names else 0
        names[at:at] = moved
    return {name: place for place, name in enumerate(names)}


def _names(type_: str, lines: dict[str, str]) -> list[str]:
    names: list[str] = []
    for match in _field.finditer(lines.get(type_, "")):
        if match[2] == ".":
            names += _names(match[3].lstrip("*"), lines)
        else:
            names.append(match[2] or match[1][0].lower() + match[1][1:])
    return names
