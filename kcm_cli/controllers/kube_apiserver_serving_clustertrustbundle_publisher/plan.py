"""The ClusterTrustBundle with the CA of the API servers.

upstream: pkg/controller/certificates/clustertrustbundlepublisher/publisher.go
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from kcm_cli.api.certificates import ClusterTrustBundle
from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Action, Create, Delete, Mode, Plan, Stage, Update, stages

SIGNER = "kubernetes.io/kube-apiserver-serving"


def bundle_name(ca: str) -> str:
    """The bundle's name, which contains a hash of the CA, so that a bundle never changes."""
    return f"{SIGNER.replace('/', ':')}:{sha256(ca.encode()).hexdigest()[:24]}"


def plan(resource: Resource[ClusterTrustBundle], bundles: Iterable[ClusterTrustBundle], ca: str) -> Plan:
    """The writes: first the right bundle, then the deletion of bundles with former CAs."""
    name = bundle_name(ca)
    by_name = {bundle.name: bundle for bundle in bundles}
    found = by_name.pop(name, None)
    obsolete = tuple(Delete(resource, "", old.name, uid=old.uid, reason="CA was replaced") for old in by_name.values())
    return stages(Stage(_repair(resource, found, name, ca), Mode.SEQUENTIAL), Stage(obsolete))


def _repair(resource: Resource[Any], found: ClusterTrustBundle | None, name: str, ca: str) -> tuple[Action, ...]:
    if found is None:
        spec: Doc = {"signerName": SIGNER, "trustBundle": ca}
        body: Doc = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        return (Create(resource, "", body, reason="no bundle has the CA"),)
    if found.spec.trust_bundle == ca:
        return ()
    return (Update(resource, found, {("spec", "trustBundle"): ca}, reason="bundle differs from the CA"),)
