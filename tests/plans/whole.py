"""Records one cluster with a bit of everything, settled by the Go manager: what the takeover audit is held against.

    KUBEBUILDER_ASSETS=... python -m tests.plans.whole

tests/recorded/plans/whole/cluster.kcm is what ``kcm plan --save`` makes of it.
"""

import asyncio
import base64
import os
import random
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm_cli.component.clock import LoopClock
from kcm_cli.plan import Apply, Delete, Target, save
from kcm_cli.plan.live import take
from kcm_cli.rest import access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.session import Session
from kcm_cli.sandbox.nodes.agents import NodeOptions
from tests.kit.servers import real_cluster
from tests.kit.space import Space, Tree
from tests.kit.world import simulated
from tests.plans.metrics_api import MetricsApi
from tests.plans.record import PLACE, Recorder
from tests.plans.scenarios import Scenario

NAME = "whole"
FILE = PLACE / NAME / "cluster.kcm"
SETTLE_S = 75.0


def first() -> Iterator[Tree]:
    """What is made first."""
    s = Space(NAME)
    yield from (s.deployment("web", 3), s.service("web"), s.budget("web", minAvailable=2))
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    yield s.autoscaler("web", cpu)
    yield s.deployment("half", 4)
    yield s.deployment("hung", 2, progressDeadlineSeconds=5)
    yield s.deployment("paused", 2, paused=True)
    yield s.deployment("big", 3, s.template("big", cpu="3"))
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    mounts = [{"name": "data", "mountPath": "/data"}]
    db = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    yield s.stateful_set("db", 3, s.template("db", mounts=mounts), **db, updateStrategy=_partition(0))
    yield s.service("db", clusterIP="None")
    yield s.daemon_set("agent")
    yield s.job("done", completions=2)
    yield s.job("failed", {"run-time": "1s", "exit-code": "1"}, backoffLimit=0)
    yield s.job("running", {"run-time": "10h"}, completions=2, parallelism=2)
    yield s.job("held", suspend=True)
    yield s.cron_job("tick", "0 0 1 1 *")
    yield s.cron_job("stopped", "* * * * *", suspend=True)
    replicas = {"replicas": 2, "selector": {"app": "old"}, "template": s.template("old")}
    yield s.doc("v1", "ReplicationController", "old", replicas)
    bare = {"replicas": 2, "selector": {"matchLabels": {"app": "bare"}}, "template": s.template("bare")}
    yield s.doc("apps/v1", "ReplicaSet", "bare", bare)
    yield s.doc("v1", "ResourceQuota", "much", {"hard": {"pods": "60", "requests.cpu": "60", "count/services": "9"}})
    outer = s.service("outer")
    outer["spec"].pop("selector")
    yield outer
    subsets = [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}]
    yield s.doc("v1", "Endpoints", "outer", subsets=subsets)
    yield s.budget("nothing", maxUnavailable=1)
    yield s.doc("v1", "PersistentVolumeClaim", "waits", claim)
    yield s.doc("v1", "PersistentVolumeClaim", "taken", {**claim, "storageClassName": "", "volumeName": "kept"})
    device = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    devices: Tree = {"spec": {"devices": {"requests": [device]}}}
    yield s.doc("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", devices)
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    yield s.doc("v1", "Pod", "with-devices", s.template("x", resourceClaims=claims)["spec"])
    for doc in _of_cluster():
        doc["metadata"].pop("namespace", None)
        yield doc


def _of_cluster() -> Iterator[Tree]:
    s = Space(NAME)
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/data"},
    }
    yield s.doc("v1", "PersistentVolume", "kept", volume)
    yield s.doc("v1", "PersistentVolume", "free", {**volume, "storageClassName": "none"})
    part = {"matchLabels": {"aggregate": "monitoring"}}
    yield s.doc(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "monitoring",
        aggregationRule={"clusterRoleSelectors": [part]},
        rules=[],
    )
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    labels = {"labels": {"aggregate": "monitoring"}}
    yield s.doc("rbac.authorization.k8s.io/v1", "ClusterRole", "monitoring-pods", metadata=labels, rules=rules)
    yield s.doc("resource.k8s.io/v1", "DeviceClass", "gpu", {})
    spec = {"request": _request(), "signerName": "example.com/own", "usages": ["client auth"]}
    yield s.doc("certificates.k8s.io/v1", "CertificateSigningRequest", "waits", spec)
    constraints = {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"]}]}
    constraints["resourceRules"][0]["resources"] = ["deployments"]
    policy = {
        "matchConstraints": constraints,
        "validations": [{"expression": "object.spec.replicas >= 0"}],
        "failurePolicy": "Ignore",
    }
    yield s.doc("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "replicas", policy)
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    crd = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    yield s.doc("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com", crd)


def then() -> Iterator[Tree]:
    """What is changed when that has settled, and stays half way."""
    s = Space(NAME)
    yield s.deployment("half", 4, s.template("half", "app:2", notes={"ready-delay": "never"}))
    bad = s.template("hung", "app:2", notes={"ready-delay": "never"})
    yield s.deployment("hung", 2, bad, progressDeadlineSeconds=5)
    yield s.deployment("paused", 2, s.template("paused", "app:2"), paused=True)
    held = s.doc("v1", "ConfigMap", "held", metadata={"namespace": f"{NAME}-dying"})
    held["metadata"]["finalizers"] = ["example.com/hold"]
    yield held
    yield {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": NAME}}


def _partition(value: int) -> Tree:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": value}}


def _request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "someone")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


async def _run(folder: Path, audit: Path) -> None:
    clock = LoopClock()
    found = await access.load(path=str(folder / "kubeconfig"), master="", clock=clock)
    transport = Authorized(Session(found, clock), found.credentials)
    await clock.sleep(5)
    async with simulated(transport, clock, random.Random(1), NodeOptions(0)).running():
        recorder = Recorder(transport, clock, audit)
        metrics = MetricsApi(recorder.usage)
        await metrics.start(recorder.client, folder)
        recorder.known = await discover(recorder.client)
        dying = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{NAME}-dying"}}
        await recorder.send(Apply(dying), "")
        await recorder.setup(Scenario(NAME, tuple(first()), (), nodes="abc", load=(("web", 120),)))
        await clock.sleep(SETTLE_S)
        recorder.known = await discover(recorder.client)
        for doc in then():
            await recorder.send(Apply(doc), NAME)
        await recorder.send(Delete(Target("namespace", f"{NAME}-dying")), "")
        await clock.sleep(SETTLE_S)
        snapshot = await take(str(folder / "kubeconfig"), include=("configmaps", "custom"))
        FILE.parent.mkdir(parents=True, exist_ok=True)
        save(snapshot, FILE)
        await metrics.stop()


def main() -> None:
    with real_cluster(Path(os.environ["KUBEBUILDER_ASSETS"])) as (_, folder, audit):
        asyncio.run(_run(folder, audit))


if __name__ == "__main__":
    main()
