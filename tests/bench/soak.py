"""An hour of churn in less time: are memory, sockets, threads and series of metrics flat? A JSON line per sample.

    make soak                                   kcm on a sandbox, 16,200 writes: an hour of 4.5 a second
    KUBEBUILDER_ASSETS=DIR make soak            kcm, then kube-controller-manager, each on a kube-apiserver of its own
    make soak ARGS="--minutes 10 --write"       less; docs/soak.svg is drawn anew

A round makes a namespace with a workload of each kind, changes them and deletes all of it; every fifth also defines
a kind. Time is counted in minutes of churn, a minute being 270 writes of ours. The last lines say for each program by
what it grew in an hour after the first ten minutes (the line of least squares), and what it has at most and at rest.
"""

import argparse
import asyncio
import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import LinearRegression, linear_regression

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.bench import objects
from tests.bench.api import Api
from tests.bench.drawing import drawing
from tests.bench.process import Manager, flags
from tests.bench.run import Program, programs
from tests.kit.places import ROOT
from tests.kit.processes import free_port
from tests.kit.servers import TOKEN, real_server, sandbox_server

PICTURE = ROOT / "docs" / "soak.svg"
WRITES_A_MINUTE = 270
SETTLED_MIN = 10.0
"""Caches, pools and interned names have what they need by then."""
AT_ONCE = 24
"""Most of a round is the end of its namespace, which takes 16 s or more."""
PODS = 6
SAMPLE_S = 3.0
REST_S = 60.0
"""Between the last write and the last sample: what is at rest is given back."""
TITLES = {"rss_mib": "memory, MiB", "sockets": "sockets", "threads": "threads", "series": "series of /metrics"}
Sample = dict[str, float]
"""The keys of TITLES, and ``minutes``."""


@dataclass
class Churn:
    """Rounds until there were so many writes."""

    api: Api
    limit: int
    written: int = 0
    rounds: Iterator[int] = field(default_factory=lambda: iter(range(10**6)))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._rounds())

    async def until_served(self, manager: Manager) -> None:
        """Until the manager serves its metrics, so that each sample has all figures."""

        async def served() -> bool:
            with suppress(aiohttp.ClientError, RuntimeError):
                return bool(await manager.series())
            return False

        await self._until(served)

    async def _rounds(self) -> None:
        while self.written < self.limit:
            await self._round(next(self.rounds))

    async def _round(self, number: int) -> None:
        name = f"soak-{number}"
        core, apps = f"/api/v1/namespaces/{name}", f"/apis/apps/v1/namespaces/{name}"
        await self._write("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        await self._until(lambda: self._exists(f"{core}/serviceaccounts/default"))
        for path, body in _objects(name):
            await self._write("POST", path, body)
        kind = f"{name}s.soak.example.com"
        if number % 5 == 0:
            await self._define(kind, name)
        await self._until(lambda: self._has(f"{core}/pods", PODS))
        for index, pod in enumerate(await self.api.names(f"{core}/pods")):
            await self._write("PATCH", f"{core}/pods/{pod}/status", objects.running(index))
        for replicas, image in ((5, "img"), (2, "img:2")):
            template = {"metadata": {"annotations": {"image": image}}}
            await self._write(
                "PATCH", f"{apps}/deployments/web", {"spec": {"replicas": replicas, "template": template}}
            )
            await asyncio.sleep(0.2)
        await self._write("DELETE", f"{apps}/statefulsets/db", None)
        await self._write("DELETE", f"/api/v1/nodes/{name}", None)
        await self._write("DELETE", f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}", None)
        await self._write("DELETE", f"/api/v1/namespaces/{name}", None)
        if number % 5 == 0:
            await self._write("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}", None)
        await self._until(lambda: self._gone(f"/api/v1/namespaces/{name}"))

    async def _define(self, kind: str, name: str) -> None:
        """A kind, and an object of it that a ConfigMap owns."""
        await self._write("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(name))
        path = f"/apis/soak.example.com/v1/namespaces/{name}/{kind.partition('.')[0]}"
        owner = await self.api.call("GET", f"/api/v1/namespaces/{name}/configmaps/c0")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c0", "uid": owner["metadata"]["uid"]}
        body: objects.Doc = {"apiVersion": "soak.example.com/v1", "kind": _kind(name)}
        body |= {"metadata": {"name": "one", "ownerReferences": [reference]}}
        await self._until(lambda: self._made(path, body))

    async def _write(self, method: str, path: str, body: object) -> None:
        self.written += 1
        if method == "PATCH":
            await self.api.patch(path, body)
        else:
            await self.api.call(method, path, body)

    async def _exists(self, path: str) -> bool:
        return (await self.api.call("GET", path)).get("kind") != "Status"

    async def _gone(self, path: str) -> bool:
        return not await self._exists(path)

    async def _has(self, path: str, count: int) -> bool:
        return await self.api.count(path) >= count

    async def _made(self, path: str, body: object) -> bool:
        with suppress(aiohttp.ContentTypeError):  # a kind that is not served yet
            return (await self.api.call("POST", path, body)).get("kind") != "Status"
        return False

    @staticmethod
    async def _until(check: Callable[[], Awaitable[bool]], every_s: float = 0.2) -> None:
        async with asyncio.timeout(600):
            while not await check():
                await asyncio.sleep(every_s)


def _objects(name: str) -> Iterator[tuple[str, objects.Doc]]:
    """Paths and objects of a round; PODS pods come of them, and those of a DaemonSet and a CronJob."""
    core, apps, batch = (f"/{path}/namespaces/{name}" for path in ("api/v1", "apis/apps/v1", "apis/batch/v1"))
    yield "/api/v1/nodes", {"metadata": {"name": name, "labels": {"soak": name}}}
    yield f"{core}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "100", "configmaps": "100"}}}
    for number in range(3):
        yield f"{core}/configmaps", {"metadata": {"name": f"c{number}"}, "data": {"k": "v" * 2000}}
    yield f"{core}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v" * 2000}}
    yield f"{core}/services", objects.service("web")
    yield f"{apps}/deployments", objects.deployment("web", 3)
    yield f"{apps}/statefulsets", _stateful()
    agent = objects.workload("DaemonSet", "agent")
    agent["spec"]["template"]["spec"] |= {"terminationGracePeriodSeconds": 0, "nodeSelector": {"soak": name}}
    yield f"{apps}/daemonsets", agent
    yield f"{batch}/jobs", objects.job("once")
    yield (
        f"{batch}/cronjobs",
        {
            "metadata": {"name": "often"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": objects.job("often")["spec"]}},
        },
    )
    selector = {"matchLabels": {"app": "web"}}
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": selector}}
    yield f"/apis/policy/v1/namespaces/{name}/poddisruptionbudgets", budget
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}}
    yield f"/apis/autoscaling/v2/namespaces/{name}/horizontalpodautoscalers", scaler
    yield "/apis/certificates.k8s.io/v1/certificatesigningrequests", _request(name)


def _stateful() -> objects.Doc:
    """Two pods at once, with a claim each."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    spec = {"replicas": 2, "serviceName": "db", "podManagementPolicy": "Parallel", "volumeClaimTemplates": claims}
    return objects.workload("StatefulSet", "db", **spec)


def _kind(name: str) -> str:
    return f"Soak{name.partition('-')[2]}"


def _definition(name: str) -> objects.Doc:
    names = {"plural": f"{name}s", "singular": name, "kind": _kind(name), "listKind": f"{_kind(name)}List"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "soak.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": f"{name}s.soak.example.com"}, "spec": spec}


def _request(name: str) -> objects.Doc:
    """One that the approver looks at and leaves."""
    spec = {"request": _REQUEST, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    return {"metadata": {"name": name}, "spec": spec}


def _signed() -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "soak")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return b64encode(signed.public_bytes(Encoding.PEM)).decode()


_REQUEST = _signed()


# -- samples


async def sampled(manager: Manager, churn: Churn, say: Callable[[Sample], None]) -> None:
    """Until it is cancelled."""
    while True:
        say(await sample(manager, churn))
        await asyncio.sleep(SAMPLE_S)


async def sample(manager: Manager, churn: Churn) -> Sample:
    minutes = churn.written / WRITES_A_MINUTE
    figures = {"rss_mib": manager.rss_mib(), "sockets": manager.sockets(), "threads": manager.threads()}
    return {"minutes": minutes, **figures, "series": await manager.series()}


async def soak(url: str, manager: Manager, minutes: float, say: Callable[[Sample], None]) -> None:
    """So much churn on the API server at this URL, and a rest."""
    connector = aiohttp.TCPConnector(ssl=False, limit=64)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(url, headers=headers, connector=connector) as session:
        churn = Churn(Api(session), int(minutes * WRITES_A_MINUTE))
        await churn.until_served(manager)
        samples = asyncio.create_task(sampled(manager, churn, say))
        await churn.run()
        samples.cancel()
        await asyncio.sleep(REST_S)
        say(await sample(manager, churn))


def one_program(program: Program, assets: str, minutes: float) -> list[Sample]:
    """Its samples, on an API server of its own; the last one is at rest."""
    samples: list[Sample] = []

    def say(figures: Sample) -> None:
        samples.append(figures)
        rounded = {key: round(value, 2) for key, value in figures.items()}
        print(json.dumps({"program": program.name, **rounded}), flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        with real_server(Path(assets), folder) if assets else sandbox_server(folder) as url:
            command = [*program.command, *flags(folder, url, port)]
            manager = Manager(command, f"https://127.0.0.1:{port}/metrics", {**os.environ, **program.env})
            try:
                asyncio.run(soak(url, manager, minutes, say))
            finally:
                manager.stop()
    return samples


def growth(samples: list[Sample], key: str) -> float:
    """By how much a figure grew in an hour of churn, after the first minutes; 0 if there were no more."""
    settled = [one for one in samples[:-1] if one["minutes"] >= SETTLED_MIN]
    minutes = [one["minutes"] for one in settled]
    if len(set(minutes)) < 2:
        return 0.0
    line: LinearRegression = linear_regression(minutes, [one[key] for one in settled])
    return line.slope * 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="of churn (default 60)")
    parser.add_argument("--write", action="store_true", help="draw docs/soak.svg")
    args = parser.parse_args()
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    with programs(assets, "", causes=False) as there:
        samples = {program.name: one_program(program, assets, args.minutes) for program in there}
    for name, those in samples.items():
        for key, title in TITLES.items():
            most, rest = max(one[key] for one in those), those[-1][key]
            print(f"{name}: {title}: {growth(those, key):+.1f} an hour, at most {most:.0f}, at rest {rest:.0f}")
    if args.write:
        panels = [
            (title, [[(one["minutes"], one[key]) for one in those] for those in samples.values()])
            for key, title in TITLES.items()
        ]
        PICTURE.write_text("\n".join(drawing("An hour of churn", list(samples), panels, "minutes")))


if __name__ == "__main__":
    main()
