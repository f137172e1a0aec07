"""This process's LeaseCandidate, which registers it as a candidate with the API server (CoordinatedLeaderElection).

Expected flow: the object is created once its cache is synced, renewed every five minutes, and renewed at once when the
API server pings it (pingTime after renewTime), which happens before an election.

upstream: staging/src/k8s.io/client-go/tools/leaderelection/leasecandidate.go
"""

import asyncio
import random

from kcm_cli.api.coordination import LEASE_CANDIDATES, LeaseCandidate
from kcm_cli.component.clock import Clock
from kcm_cli.component.version import RELEASE, EffectiveVersion
from kcm_cli.engine.worker import Worker
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.times import format_micro_time, parse_micro_time
from kcm_cli.rest.client import Client
from kcm_cli.runtime.informer import Informer, Scope
from kcm_cli.runtime.workqueue import QueueMetrics, WorkQueue

NAMESPACE = "kube-system"
STRATEGY = "OldestEmulationVersion"
QUEUE = "leasecandidate"
HEALTH_CHECK = "informer-sync"
RENEW_S = 300.0


class Candidate:
    """A candidate for one lease. ``identity``: the candidate's name, and that of the holder that it may become."""

    def __init__(
        self, client: Client, identity: str, lease: str, version: EffectiveVersion, clock: Clock, rng: random.Random
    ) -> None:
        self._client = client
        self._identity = identity
        self._lease = lease
        self._version = version
        self._clock = clock
        scope = Scope(namespace=NAMESPACE, field_selector=f"metadata.name={identity}")
        self._informer = Informer(LEASE_CANDIDATES, client, clock, rng, scope)

    def check(self) -> str | None:
        """The health check. May be called on any thread."""
        return None if self._informer.synced.is_set() else "1 informers not started yet: [*v1beta1.LeaseCandidate]"

    async def run(self, metrics: QueueMetrics | None = None) -> None:
        """Create and renew the LeaseCandidate until cancelled."""
        queue = WorkQueue(QUEUE, self._clock, metrics=metrics)

        def updated(old: LeaseCandidate, new: LeaseCandidate) -> None:
            if _pinged(new):
                queue.add(self._identity)

        self._informer.listen(on_update=updated)
        queue.add(self._identity)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            await self._informer.synced.wait()
            await Worker(controller=QUEUE, queue=queue, sync=self._ensure, clock=self._clock).run()

    async def _ensure(self, key: str) -> float:
        """Create or renew the LeaseCandidate. Returns the seconds until the next renewal."""
        known = self._informer.store.get(f"{NAMESPACE}/{self._identity}")
        if known is None or known.raw is None:
            await self._client.create(LEASE_CANDIDATES, NAMESPACE, self._new())
            return RENEW_S
        doc = codec.decode_doc(known.raw)
        doc["spec"] = {**nested_map(doc, "spec"), "renewTime": self._now()}
        await self._client.update(LEASE_CANDIDATES, NAMESPACE, self._identity, doc)
        return RENEW_S

    def _new(self) -> Doc:
        return {
            "apiVersion": LEASE_CANDIDATES.api_version,
            "kind": LEASE_CANDIDATES.kind,
            "metadata": {"name": self._identity, "namespace": NAMESPACE},
            "spec": {
                "leaseName": self._lease,
                "binaryVersion": RELEASE,
                "emulationVersion": f"{self._version.emulation}.0",
                "strategy": STRATEGY,
                "renewTime": self._now(),
            },
        }

    def _now(self) -> str:
        return format_micro_time(self._clock.now())


def _pinged(candidate: LeaseCandidate) -> bool:
    """Whether the API server waits for a renewal."""
    try:
        pinged = parse_micro_time(candidate.spec.ping_time or "")
    except ValueError:
        return False
    try:
        return pinged > parse_micro_time(candidate.spec.renew_time or "")
    except ValueError:
        return True
