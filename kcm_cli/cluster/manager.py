"""The manager of a sandbox, which runs on the sandbox's loop.

Its controllers call the API server in process, unless flags name a kubeconfig: TLS and HTTP would be a quarter of the
cost of a pod. Port 10257 and the leader election run on their own thread, and use TLS.
"""

import asyncio
import socket
import sys
from collections.abc import Sequence
from typing import Any

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.component.clock import Clock
from kcm_cli.component.environment import Host
from kcm_cli.component.flagset import Parsed
from kcm_cli.manager.app import manage
from kcm_cli.manager.config import ConfigError, complete
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.lifecycle import Place
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.options import flag_set
from kcm_cli.manager.server.listener import listen
from kcm_cli.rest.access import Access
from kcm_cli.rest.metrics import SessionMetrics
from kcm_cli.rest.session import Session
from kcm_cli.rest.transport import Transport
from kcm_cli.runtime.cause_ring import MOST_BYTES, CauseRing
from kcm_cli.sandbox.run import ManagerFiles, SandboxServer
from kcm_cli.sandbox.transport import InProcessTransport

_PORT, _ADDRESS = 10257, "127.0.0.1"
_LEASE = ("--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=25s")
"""Twice the usual times: on a busy machine its API server may answer late, which should not end the sandbox."""
_LEASE_FLAGS = {"leader-elect-lease-duration", "leader-elect-renew-deadline"}
"""With one of them the other is the manager's own default: they have to fit together."""


ALONE = ("--leader-elect=false", "--secure-port=0")
"""The flags of a manager that has neither a port nor a lease."""


class SandboxManager:
    """The manager. Raises ConfigError for invalid flags. Who runs it sets up logging.

    real_time: whether a late loop has stalled, which is not so where time may be moved. started: set when all
    controllers run. causes: the record of what they do, and why, in which the other parts of the cluster may record
    theirs; None if the manager has no port to show it and is not to be recorded, or calls another API server.
    """

    def __init__(
        self, server: SandboxServer, flags: Sequence[str], *, real_time: bool = False, recorded: bool = False
    ) -> None:
        """recorded: also without a port."""
        self._server = server
        self._real_time = real_time
        given = flag_set().parse(flags)
        files = server.manager_files()
        self._user = files.user
        self._own_kubeconfig = not given.values.keys() & {"kubeconfig", "master"}
        address = str(given.values.get("bind-address", _ADDRESS))
        self._listener = _usual_port(address) if "secure-port" not in given.values else None
        port = _PORT if self._listener is not None else 0
        try:
            defaults = _defaults(files, port) + ([] if given.values.keys() & _LEASE_FLAGS else [*_LEASE])
            self.config = complete(_with_defaults(given, defaults))
        except ConfigError:
            if self._listener is not None:
                self._listener.close()
            raise
        shown = recorded or self.config.serving.port > 0 or self._listener is not None
        self.causes = CauseRing(server.clock, 2 * MOST_BYTES) if shown and self._own_kubeconfig else None
        self.started = asyncio.Event()
        self._show: Observability | None = None

    @property
    def gives_ranges(self) -> bool:
        """Whether it allocates pod CIDRs to nodes."""
        asked = self.config.component.kube_cloud_shared.allocate_node_cidrs
        return asked and any(one.node_ranges and one.name in self.config.controllers for one in all_controllers())

    async def run(self, cluster: Cluster[Any], stop: asyncio.Event) -> int:
        """Run until ``stop``, or until the manager ends by itself; returns the exit code."""
        host = Host(simulated_nodes=True)
        place = Place(self._dial, real_time=self._real_time, host=host, listener=self._listener, causes=self.causes)

        def abandon(why: str) -> None:
            sys.stderr.write(f"Error: leaderelection lost: {why}\n")

        def watched(show: Observability) -> None:
            self._show, show.running.all_started = show, self.started.set

        return await manage(self.config, stop, abandon=abandon, clock=cluster.clock, watched=watched, place=place)

    def _dial(self, access: Access, clock: Clock, metrics: SessionMetrics) -> Transport:
        if not self._own_kubeconfig:
            return Session(access, clock, metrics)
        named = access.tls is not None and access.tls != access.tls.anonymous
        return InProcessTransport(self._server.api, self._user if named else None)

    @property
    def observability(self) -> Observability | None:
        """Its metrics, once it runs."""
        return self._show


def _with_defaults(given: Parsed, defaults: Sequence[str]) -> Parsed:
    """The flags with the sandbox's values for those that the user has not given."""
    values = flag_set().parse(defaults).values
    return Parsed({**values, **given.values}, given.rest, given.problems, given.warnings)


def _defaults(files: ManagerFiles, port: int) -> list[str]:
    return [
        f"--cluster-signing-cert-file={files.signing_certificate}",
        f"--cluster-signing-key-file={files.signing_key}",
        f"--kubeconfig={files.kubeconfig}",
        f"--authentication-kubeconfig={files.kubeconfig}",
        f"--authorization-kubeconfig={files.kubeconfig}",
        f"--root-ca-file={files.root_ca}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--bind-address={_ADDRESS}",
        f"--secure-port={port}",
        "--kube-api-qps=5000",
        "--kube-api-burst=10000",
        "--authentication-tolerate-lookup-failure",
    ]


def _usual_port(address: str) -> socket.socket | None:
    """A socket on the manager's default port; None if another process has it, such as another sandbox."""
    try:
        return listen(address, _PORT)
    except (RunError, ValueError):  # a ValueError for what is no address: that is a problem of the flag
        return None
