"""One load after another on a manager that runs."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import psutil

from tests.bench import objects
from tests.bench.api import Api
from tests.bench.process import Manager

PODS = 1000
ENDPOINTS, STEPS = 5000, 50
REPLICAS = 200
NODES = 500
SETTLE_S = 2.0
"""What a load leaves behind (status writes, the namespaces of a new cluster) is not part of the next figure."""
LOADS = (
    "again",
    "burst",
    "scaledown",
    "wide",
    "cascade",
    "configmaps",
    "jobs",
    "statefulset",
    "daemonset",
    "endpoints",
    "idle",
)
"""All loads but those of a size: ``pods=NUMBER`` creates so many pods, ``restart=NUMBER`` is a restart on them."""
AFTER = {"scaledown": "burst", "cascade": "wide"}
"""Loads that need what another has made."""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
DEPLOYMENTS = 10
"""A size is so many Deployments."""
Check = Callable[[], Awaitable[bool]]
Say = Callable[[str, dict[str, float]], None]


class Bench:
    """The manager that ``start`` starts, and the loads by their names.

    server: the process of the API server, if it runs on this machine. say: takes the figures of a load: seconds, CPU
    seconds of the manager and of the API server until SETTLE_S later, MiB of resident memory, requests that write.
    ``cpu_s`` of a start is what the manager took until the pod existed, ``settled_cpu_s`` until SETTLE_S later;
    ``sockets`` are those at that time, with the ones that serve requests and are closed when idle for a minute.
    """

    def __init__(self, api: Api, start: Callable[[], Manager], server: psutil.Process | None, say: Say) -> None:
        self._api = api
        self._start = start
        self._server = server
        self._say = say
        self._run = uuid.uuid4().hex[:6]
        self._nodes = 0

    async def all(self, scenarios: list[str]) -> None:
        """A first start, then these loads, in this order."""
        await self._started("startup")
        try:
            for scenario in scenarios:
                name, _, size = scenario.partition("=")
                await getattr(self, name)(*([int(size)] if size else []))
        finally:
            self._manager.stop()

    # -- starts: a Deployment waits, until it has its pod

    async def again(self) -> None:
        """As every later start: the certificate is at hand."""
        self._manager.stop()
        await self._started("again")

    async def restart(self, pods: int) -> None:
        """The same on so many pods."""
        self._manager.stop()
        await asyncio.sleep(SETTLE_S)
        await self._started(f"restart={pods}")

    async def _started(self, scenario: str) -> None:
        what = scenario.replace("=", "-")
        await self._default_account(what)
        await self._api.call("POST", f"{self._path(what)['apps']}/deployments", objects.deployment("d", 1))
        await self._api.call("DELETE", LEASE)  # Go's does not give it back
        server_s, started = self._server_s(), time.monotonic()
        manager = self._manager = self._start()
        await self._until(self._pods(what, 1), every_s=0.02)
        figures = {"seconds": time.monotonic() - started, "cpu_s": manager.cpu_s()}
        await asyncio.sleep(SETTLE_S)
        figures |= {"settled_cpu_s": manager.cpu_s(), "server_cpu_s": self._server_s() - server_s}
        self._say(scenario, figures | {"rss_mib": manager.rss_mib(), "sockets": manager.sockets()})

    # -- pods of Deployments

    async def burst(self) -> None:
        path = (await self._namespace("burst"))["apps"]
        body = objects.deployment("big", PODS)
        await self._measure("burst", self._api.call("POST", f"{path}/deployments", body), self._pods("burst", PODS))

    async def scaledown(self) -> None:
        patch = self._api.patch(f"{self._path('burst')['apps']}/deployments/big", {"spec": {"replicas": 0}})
        await self._measure("scaledown", patch, self._pods("burst", 0))

    async def wide(self) -> None:
        path = f"{(await self._namespace('wide'))['apps']}/deployments"
        bodies = [(path, objects.deployment(f"d{n}", 5)) for n in range(PODS // 5)]
        await self._measure("wide", self._api.many("POST", bodies), self._pods("wide", PODS))

    async def cascade(self) -> None:
        path = f"{self._path('wide')['apps']}/deployments"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self._measure("cascade", self._api.call("DELETE", path, options), self._pods("wide", 0))

    async def pods(self, count: int) -> None:
        """So many pods of a few Deployments, which stay."""
        what = f"pods-{count}"
        path = f"{(await self._namespace(what))['apps']}/deployments"
        bodies = [(path, objects.deployment(f"d{n}", count // DEPLOYMENTS)) for n in range(DEPLOYMENTS)]
        load = self._api.many("POST", bodies)
        await self._measure(f"pods={count}", load, self._pods(what, count), pods=count)

    # -- pods that run and end, by our word

    async def jobs(self) -> None:
        paths = await self._namespace("jobs")
        path = f"{paths['batch']}/jobs"

        async def load() -> None:
            await self._api.many("POST", [(path, objects.job(f"j{n}")) for n in range(PODS)])
            await self._until(self._pods("jobs", PODS))
            await self._set_status(paths["core"], lambda number: objects.SUCCEEDED)

        async def done() -> bool:
            return all(_is_complete(job) for job in await self._api.items(path))

        await self._measure("jobs", load(), done)

    async def statefulset(self) -> None:
        path = f"{(await self._namespace('statefulset'))['apps']}/statefulsets"
        spec: dict[str, object] = {"replicas": REPLICAS, "podManagementPolicy": "Parallel", "serviceName": "db"}
        await self._made_ready("statefulset", path, objects.workload("StatefulSet", "db", **spec), "readyReplicas")

    async def daemonset(self) -> None:
        await self._make_nodes(NODES)
        path = f"{(await self._namespace('daemonset'))['apps']}/daemonsets"
        await self._made_ready("daemonset", path, objects.workload("DaemonSet", "agent"), "numberReady", NODES)

    async def _made_ready(self, what: str, path: str, body: objects.Doc, field: str, count: int = REPLICAS) -> None:
        """An owner is made, then all of its pods run, then its status says so."""

        async def load() -> None:
            await self._api.call("POST", path, body)
            await self._until(self._pods(what, count))
            await self._set_status(self._path(what)["core"], objects.running)

        async def done() -> bool:
            (owner,) = await self._api.items(path)
            return bool(owner["status"].get(field) == count)

        await self._measure(what, load(), done, pods=count)

    async def endpoints(self) -> None:
        """Pods of a big Service stop being ready and are ready again, one after the other."""
        await self._make_nodes(10)
        paths = await self._namespace("endpoints")
        core = paths["core"]
        pods = [(f"{core}/pods", objects.pod(f"p{n}", f"bench-{n % 10}")) for n in range(ENDPOINTS)]
        await self._api.many("POST", pods)
        await self._api.many("PATCH", [(f"{core}/pods/p{n}/status", objects.running(n)) for n in range(ENDPOINTS)])
        slices: dict[str, str] = {}

        async def placed() -> bool:
            for item in await self._api.items(f"{paths['discovery']}/endpointslices"):
                ready = [each for each in item.get("endpoints") or () if each["conditions"]["ready"]]
                slices.update((each["targetRef"]["name"], item["metadata"]["name"]) for each in ready)
            return len(slices) == ENDPOINTS

        await self._measure("bigservice", self._api.call("POST", f"{core}/services", objects.service("web")), placed)

        async def shown(pod: str, ready: bool) -> bool:
            found = await self._api.call("GET", f"{paths['discovery']}/endpointslices/{slices[pod]}")
            there = {each["targetRef"]["name"]: each["conditions"]["ready"] for each in found["endpoints"]}
            return there.get(pod) is ready

        async def restart() -> None:
            for number in range(0, ENDPOINTS, ENDPOINTS // STEPS):
                for ready in (False, True):
                    await self._api.patch(f"{core}/pods/p{number}/status", objects.running(number, ready=ready))
                    await self._until(lambda n=number, r=ready: shown(f"p{n}", r))  # type: ignore[misc]

        await self._measure("endpoints", restart(), placed, pods=2 * STEPS)

    # -- what it keeps

    async def configmaps(self) -> None:
        path = f"{(await self._namespace('mem'))['core']}/configmaps"
        before = self._manager.rss_mib()
        bodies = [(path, {"metadata": {"name": f"big{n}"}, "data": {"k": "v" * 524288}}) for n in range(100)]
        await self._api.many("POST", bodies)
        await asyncio.sleep(20)  # a cache that keeps them has them by now
        self._say("configmaps", {"rss_mib": self._manager.rss_mib(), "rss_before_mib": before})

    async def idle(self) -> None:
        await asyncio.sleep(10)  # for the last load's tail
        before = self._manager.cpu_s()
        await asyncio.sleep(60)  # the minute that is measured
        self._say("idle", {"cpu_s": self._manager.cpu_s() - before, "rss_mib": self._manager.rss_mib()})

    # -- means

    async def _measure(self, scenario: str, load: Awaitable[object], done: Check, *, pods: int = PODS) -> None:
        """CPU and writes until things are quiet again, seconds until it is done."""
        manager = self._manager
        writes = await manager.writes()  # before cpu_s: a scrape takes 20 ms of CPU
        cpu_s, server_s, started = manager.cpu_s(), self._server_s(), time.monotonic()
        await load
        await self._until(done)
        seconds = time.monotonic() - started
        await asyncio.sleep(SETTLE_S)
        figures = {"seconds": seconds, "per_s": pods / seconds, "cpu_s": manager.cpu_s() - cpu_s}
        figures |= {"server_cpu_s": self._server_s() - server_s, "rss_mib": manager.rss_mib()}
        self._say(scenario, figures | {"writes": await manager.writes() - writes})

    def _server_s(self) -> float:
        return sum(self._server.cpu_times()[:2]) if self._server else 0.0

    async def _set_status(self, core: str, status: Callable[[int], objects.Doc]) -> None:
        names = await self._api.names(f"{core}/pods")
        await self._api.many("PATCH", [(f"{core}/pods/{name}/status", status(n)) for n, name in enumerate(names)])

    async def _make_nodes(self, count: int) -> None:
        names = [f"bench-{number}" for number in range(self._nodes, count)]
        self._nodes = max(self._nodes, count)
        await self._api.many("POST", [("/api/v1/nodes", objects.node(name)) for name in names])
        await self._api.many("PATCH", [(f"/api/v1/nodes/{name}/status", objects.NODE_READY) for name in names])

        async def usable() -> bool:
            nodes = await self._api.items("/api/v1/nodes")
            return all("taints" not in node["spec"] for node in nodes if node["metadata"]["name"] in names)

        await self._until(usable)
        await asyncio.sleep(SETTLE_S)

    async def _namespace(self, what: str) -> dict[str, str]:
        """A new namespace in which pods can be made; the paths of its groups."""
        await self._api.call("POST", "/api/v1/namespaces", {"metadata": {"name": self._name(what)}})
        paths = self._path(what)

        async def there() -> bool:
            found = await self._api.call("GET", f"{paths['core']}/serviceaccounts/default")
            return found.get("kind") == "ServiceAccount"

        await self._until(there)
        await asyncio.sleep(SETTLE_S)
        return paths

    async def _default_account(self, what: str) -> None:
        """A namespace that needs no manager."""
        await self._api.call("POST", "/api/v1/namespaces", {"metadata": {"name": self._name(what)}})
        path = f"{self._path(what)['core']}/serviceaccounts"
        await self._api.call("POST", path, {"metadata": {"name": "default"}})

    def _name(self, what: str) -> str:
        return f"bench-{self._run}-{what}"

    def _path(self, what: str) -> dict[str, str]:
        roots = {"core": "/api/v1", "apps": "/apis/apps/v1", "batch": "/apis/batch/v1"}
        roots["discovery"] = "/apis/discovery.k8s.io/v1"
        return {group: f"{root}/namespaces/{self._name(what)}" for group, root in roots.items()}

    def _pods(self, what: str, wanted: int) -> Check:
        async def check() -> bool:
            return await self._api.count(f"{self._path(what)['core']}/pods") == wanted

        return check

    @staticmethod
    async def _until(check: Check, seconds: float = 600, every_s: float = 0.1) -> None:
        deadline = time.monotonic() + seconds
        while not await check():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds} s")
            await asyncio.sleep(every_s)


def _is_complete(job: dict[str, Any]) -> bool:
    return any(
        each["type"] == "Complete" and each["status"] == "True" for each in job["status"].get("conditions") or ()
    )
