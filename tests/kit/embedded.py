"""An API server in this process, without a socket.

It runs on the loop and clock that it is given, so on virtual time, too.
"""

import random
from datetime import datetime

from kcm_cli.cluster.sandbox import user_of
from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox import assembly
from kcm_cli.sandbox.apiserver.registry.core import Kinds
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.store import Store, StoreContent
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport

ADMIN = User("kubernetes-admin", groups=("system:masters", "system:authenticated"))


class EmbeddedServer:
    """A fresh API server. ``start`` once; nothing needs to be stopped."""

    def __init__(self, clock: Clock, rng: random.Random, certificates: Certificates) -> None:
        self._certificates = certificates
        self._clock = clock
        self.store = Store(None)
        self.api = assembly.assemble(self.store, clock, rng, certificates, address="127.0.0.1:6443")

    async def start(self) -> None:
        """Make the objects that every cluster has."""
        self.store.restore(await _first_objects(self._clock, self._certificates))

    def transport(self, user: User = ADMIN) -> Transport:
        """Requests as this user."""
        return InProcessTransport(self.api, user)

    def component(self, name: str) -> Transport:
        """Requests as a part of the simulation."""
        return InProcessTransport(self.api, user_of(name))


_KEPT = 16
_SEED = "first objects"
_known: dict[tuple[datetime, bytes, Kinds], StoreContent] = {}


async def _first_objects(clock: Clock, certificates: Certificates) -> StoreContent:
    """What a server has made by its start: made once for each moment, CA and set of kinds, since that takes 35 ms."""
    now, ca = clock.now(), certificates.ca.certificate
    key = now, ca, assembly.KINDS
    if key not in _known:
        store = Store(None)
        api = assembly.assemble(store, clock, random.Random(_SEED), certificates, address="127.0.0.1:6443")
        await api.bootstrap(bootstrap_objects(client_ca=ca.decode(), today=f"{now:%Y-%m-%d}"))
        if len(_known) >= _KEPT:
            _known.clear()
        _known[key] = store.snapshot()
    return _known[key]
