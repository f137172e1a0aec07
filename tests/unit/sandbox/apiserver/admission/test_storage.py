"""Default classes, protection finalizers, expansion of claims, and CertificateSigningRequests."""

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm_cli.sandbox.apiserver.types import User
from tests.kit.api import Answer, Api

Tree = dict[str, Any]
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


async def storage_class(api: Api, name: str, *, default: bool = False, **more: Any) -> None:
    metadata = {"name": name, "annotations": DEFAULT if default else {}}
    await api.make(CLASSES, {"metadata": metadata, "provisioner": "p", **more})


async def claim(api: Api, namespace: str, **spec: Any) -> Answer:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return await api.post(
        f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec}
    )


async def test_a_claim_gets_the_default_class_and_a_finalizer(api: Api) -> None:
    await storage_class(api, "plain")
    assert "storageClassName" not in (await claim(api, await api.namespace())).doc["spec"]
    await storage_class(api, "standard", default=True)
    made = (await claim(api, await api.namespace())).doc
    assert made["spec"]["storageClassName"] == "standard"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (await claim(api, await api.namespace(), storageClassName="")).doc["spec"]["storageClassName"] == ""
    assert (await claim(api, await api.namespace(), storageClassName="plain")).doc["spec"][
        "storageClassName"
    ] == "plain"


@pytest.mark.parametrize(
    ("grows", "why"),
    [
        pytest.param(
            False,
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize",
            id="a class that cannot",
        ),
        pytest.param(True, "", id="allowed"),
    ],
)
async def test_claims_grow_where_their_class_lets_them(api: Api, grows: bool, why: str) -> None:
    namespace = await api.namespace()
    await storage_class(api, namespace, allowVolumeExpansion=grows)
    made = (await claim(api, namespace, storageClassName=namespace, volumeName="v")).doc
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/c"
    made["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert (await api.put(f"{path}/status", made)).status == 200
    answer = await api.merge(path, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    if why:
        assert (answer.status, answer.message) == (403, f'persistentvolumeclaims "c" is forbidden: {why}')
    else:
        assert answer.status == 200, answer.message


async def test_an_ingress_gets_the_default_class(api: Api) -> None:
    namespace = await api.namespace()
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}}
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"
    assert "ingressClassName" not in (await api.make(path, ingress))["spec"]
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    made = {"metadata": {"name": "edge", "annotations": annotations}, "spec": {"controller": "example.com/c"}}
    await api.make("/apis/networking.k8s.io/v1/ingressclasses", made)
    ingress["metadata"] = {"name": "j"}
    assert (await api.make(path, ingress))["spec"]["ingressClassName"] == "edge"


def request(*groups: str) -> str:
    """A CertificateSigningRequest."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, "someone")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


async def csr(api: Api, name: str, *groups: str, signer: str = "kubernetes.io/kube-apiserver-client") -> Answer:
    spec = {"request": request(*groups), "signerName": signer, "usages": ["client auth"]}
    return await api.post(CSRS, {"metadata": {"name": name}, "spec": spec})


async def test_certificates_for_masters_are_refused(api: Api) -> None:
    answer = await csr(api, "bad", "system:masters")
    assert answer.message == (
        'certificatesigningrequests.certificates.k8s.io "bad" is forbidden: use of '
        "kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    )
    assert (await csr(api, "good", "people")).status == 201
    assert (await csr(api, "other", "system:masters", signer="example.com/own")).status == 201


async def test_only_the_first_block_of_a_request_counts(api: Api) -> None:
    masters, people = (base64.b64decode(request(group)) for group in ("system:masters", "people"))
    for name, text, status in (("first", masters + people, 403), ("hidden", b"#" + masters + people, 201)):
        encoded = base64.b64encode(text).decode()
        spec = {"request": encoded, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
        assert (await api.post(CSRS, {"metadata": {"name": name}, "spec": spec})).status == status


@pytest.mark.parametrize(("resource", "verb"), [("example.com/own", "approve"), ("example.com/*", "approve")])
async def test_approving_requires_permission_for_the_signer(api: Api, resource: str, verb: str) -> None:
    name = resource.replace("/", "-").replace("*", "any")
    await csr(api, name, signer="example.com/own")
    user = User(f"approver-{name}")
    rules = [
        {
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests/approval"],
            "verbs": ["update"],
        },
    ]
    roles = "/apis/rbac.authorization.k8s.io/v1"
    await api.make(f"{roles}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    await api.make(f"{roles}/clusterrolebindings", binding)
    made = (await api.get(f"{CSRS}/{name}")).doc
    made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}
    answer = await api.put(f"{CSRS}/{name}/approval", made, user=user)
    why = 'user not permitted to approve requests with signerName "example.com/own"'
    assert answer.message == f'certificatesigningrequests.certificates.k8s.io "{name}" is forbidden: {why}'
    right = {
        "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [resource], "verbs": [verb]
    }  # fmt: skip
    assert (await api.merge(f"{roles}/clusterroles/{name}", {"rules": [*rules, right]})).status == 200
    assert (await api.put(f"{CSRS}/{name}/approval", made, user=user)).status == 200
