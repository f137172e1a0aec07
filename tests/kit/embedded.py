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
from kcm_cli.sandbox.apiserver.settings import DEFAULTS, Settings
from kcm_cli.sandbox.apiserver.store import Store, StoreContent
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport

ADMIN = User("kubernetes-admin", groups=("system:masters", "system:authenticated"))


class EmbeddedServer:
    """A fresh API server. ``start`` once; nothing needs to be stopped."""

    def __init__(
        self, clock: Clock, rng: random.Random, certificates: Certificates, settings: Settings = DEFAULTS
    ) -> None:
        self._certificates = certificates
        self._clock = clock
        self._settings = settings
        self.store = Store(None)
        self.api = _assembled(self.store, clock, rng, certificates, settings)

    async def start(self) -> None:
        """Make the objects that every cluster has."""
        self.store.restore(await _first_objects(self._clock, self._certificates, self._settings))

    def transport(self, user: User = ADMIN) -> Transport:
        """Requests as this user."""
        return InProcessTransport(self.api, user)

    def component(self, name: str) -> Transport:
        """Requests as a part of the simulation."""
        return InProcessTransport(self.api, user_of(name))


_KEPT = 16
_SEED = "first objects"
_known: dict[tuple[datetime, bytes, tuple[str, ...], Kinds], StoreContent] = {}


def _assembled(
    store: Store, clock: Clock, rng: random.Random, certificates: Certificates, settings: Settings
) -> assembly.Server:
    return assembly.assemble(store, clock, rng, certificates, address="127.0.0.1:6443", settings=settings)


async def _first_objects(clock: Clock, certificates: Certificates, settings: Settings) -> StoreContent:
    """What a server has made by its start: made once for each moment, CA, ranges of Services and set of kinds, since
    that takes 35 ms."""
    now, ca = clock.now(), certificates.ca.certificate
    key = now, ca, settings.service_ranges, assembly.KINDS
    if key not in _known:
        store = Store(None)
        api = _assembled(store, clock, random.Random(_SEED), certificates, settings)
        await api.bootstrap(bootstrap_objects(client_ca=ca.decode(), today=f"{now:%Y-%m-%d}"))
        if len(_known) >= _KEPT:
            _known.clear()
        _known[key] = store.snapshot()
    return _known[key]
