"""Accounts, tokens and certificates."""

from functools import cache

from kcm_cli.api.certificates import CLUSTER_TRUST_BUNDLES, POD_CERTIFICATE_REQUESTS
from kcm_cli.planning.certificate_requests import CLIENT, KUBELET_CLIENT
from tests.kit.bootstrap_tokens import token
from tests.kit.simulation import World
from tests.kit.trust_bundles import Renaming
from tests.simulation.stories.kit import (
    ACCOUNTS,
    CONFIG_MAPS,
    SECRETS,
    SPACES,
    Step,
    Story,
    create,
    create_doc,
    delete,
    patch,
    serving,
    together,
    typed,
    until,
    wide,
)
from tests.unit.planning.certificates import in_base64, name, request

REQUESTS = wide("certificates.k8s.io/v1/certificatesigningrequests")
ROLES = wide("rbac.authorization.k8s.io/v1/clusterroles")
TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
SYSTEM, PUBLIC, HOUR = "kube-system", "kube-public", 3600.0
OF_ACCOUNT = {"annotations": {"kubernetes.io/service-account.name": "robot"}}
TOKEN = "kubernetes.io/service-account-token"
SIGNING = ("--cluster-signing-cert-file={files}/ca.crt", "--cluster-signing-key-file={files}/ca.key")


@cache
def asked(who: str, *organizations: str) -> str:
    return in_base64(request(name(who, *organizations)))


def asks(key: str, signer: str, usage: str, who: str, *organizations: str) -> Step:
    usages = ["digital signature", usage]
    return create(REQUESTS, key, spec={"signerName": signer, "usages": usages, "request": asked(who, *organizations)})


def approves(key: str) -> Step:
    async def step(world: World) -> None:
        doc = await world.client.get_doc(REQUESTS, "", key)
        approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "by a person"}
        doc["status"] = {"conditions": [approved]}
        await world.client.update(REQUESTS, "", key, doc, subresource="approval")

    return step


def rule(verb: str) -> dict[str, object]:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}


PART = {"labels": {"example.com/part": "true"}}
AGGREGATED = {"clusterRoleSelectors": [{"matchLabels": PART["labels"]}]}
INFO = {"data": {"kubeconfig": "text"}}

STORIES = {
    "accounts": Story(
        about=("serviceaccount", "root-ca-certificate-publisher"),
        flags=("--root-ca-file={files}/ca.crt",),
        steps=(
            create(SPACES, "extra"),
            delete(ACCOUNTS, "default", namespace="extra"),
            patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "spoilt"}}, "extra"),
            delete(CONFIG_MAPS, "kube-root-ca.crt", namespace="extra"),
        ),
    ),
    "tokens": Story(
        about=("serviceaccount-token",),
        flags=("--root-ca-file={files}/ca.crt", "--service-account-private-key-file={files}/ca.key"),
        steps=(
            create(ACCOUNTS, "robot"),
            create(SECRETS, "t", metadata=OF_ACCOUNT, type=TOKEN),
            patch(SECRETS, "t", {"data": {"ca.crt": "c3BvaWx0"}}),
            delete(ACCOUNTS, "robot"),
            create(SECRETS, "nobodys", metadata=OF_ACCOUNT, type=TOKEN),
        ),
    ),
    "referenced-token": Story(
        about=("serviceaccount-token",),
        flags=("--root-ca-file={files}/ca.crt", "--service-account-private-key-file={files}/ca.key"),
        steps=(
            together(
                create(ACCOUNTS, "robot", secrets=[{"name": "t"}]),
                create(SECRETS, "t", metadata=OF_ACCOUNT, type=TOKEN),
            ),
            delete(SECRETS, "t"),
        ),
    ),
    "unused-token": Story(
        about=("legacy-serviceaccount-token-cleaner",),
        only=("legacy-serviceaccount-token-cleaner-controller",),
        flags=("--legacy-service-account-token-clean-up-period=1h",),
        before=(
            create(SECRETS, "t", metadata=OF_ACCOUNT, type=TOKEN),
            create(ACCOUNTS, "robot", secrets=[{"name": "t"}]),
            patch(CONFIG_MAPS, TRACKING, {"data": {"since": "2025-01-01"}}, SYSTEM),
            until(2 * HOUR),
        ),
        steps=(until(60 * HOUR),),
        start=True,
    ),
    "bootstrap-tokens": Story(
        about=("bootstrap-signer", "token-cleaner"),
        steps=(
            create(CONFIG_MAPS, "cluster-info", PUBLIC, **INFO),
            create_doc(SECRETS, token(expiration="2026-01-01T00:30:00Z"), SYSTEM),
            create_doc(SECRETS, token("other1"), SYSTEM),
            patch(CONFIG_MAPS, "cluster-info", {"data": {"kubeconfig": "more"}}, PUBLIC),
            delete(SECRETS, "bootstrap-token-other1", namespace=SYSTEM),
            until(2000),
        ),
    ),
    "certificates": Story(
        about=("certificatesigningrequest-approving", "certificatesigningrequest-signing"),
        flags=SIGNING,
        steps=(
            asks("node", KUBELET_CLIENT, "client auth", "system:node:n1", "system:nodes"),
            asks("person", CLIENT, "client auth", "ann"),
            approves("person"),
            asks("wrong", CLIENT, "server auth", "ann"),
            approves("wrong"),
        ),
    ),
    "old-certificates": Story(
        about=("certificatesigningrequest-cleaner",),
        only=("certificatesigningrequest-cleaner-controller",),
        steps=(asks("person", CLIENT, "client auth", "ann"), until(27 * HOUR)),
    ),
    "pod-certificates": Story(
        about=("podcertificaterequest-cleaner",),
        flags=("--feature-gates=PodCertificateRequest=true",),
        before=(serving(POD_CERTIFICATE_REQUESTS, "PodCertificateRequest"),),
        steps=(
            together(
                typed(POD_CERTIFICATE_REQUESTS, "PodCertificateRequest", {"metadata": {"name": "a"}}),
                typed(POD_CERTIFICATE_REQUESTS, "PodCertificateRequest", {"metadata": {"name": "b"}}),
            ),
            until(1800),
        ),
    ),
    "trust-bundle": Story(
        about=("kube-apiserver-serving-clustertrustbundle-publisher",),
        only=("kube-apiserver-serving-clustertrustbundle-publisher-controller",),
        flags=("--feature-gates=ClusterTrustBundle=true", "--root-ca-file={files}/ca.crt"),
        before=(serving(CLUSTER_TRUST_BUNDLES, "ClusterTrustBundle", "signerName"),),
        served=frozenset({f"{CLUSTER_TRUST_BUNDLES.api_version}/{CLUSTER_TRUST_BUNDLES.plural}"}),
        through=Renaming,
        steps=(
            typed(
                CLUSTER_TRUST_BUNDLES,
                "ClusterTrustBundle",
                {
                    "metadata": {"name": "kubernetes.io.kube-apiserver-serving.old"},
                    "spec": {"signerName": "kubernetes.io/kube-apiserver-serving", "trustBundle": "old"},
                },
            ),
        ),
        start=True,
    ),
    "roles": Story(
        about=("clusterrole-aggregation",),
        steps=(
            create(ROLES, "all", aggregationRule=AGGREGATED, rules=[]),
            create(ROLES, "part", metadata=PART, rules=[rule("get")]),
            patch(ROLES, "part", {"rules": [rule("list")]}),
            delete(ROLES, "part"),
        ),
    ),
}
