"""Assembles an API server: the only module that imports all of its parts."""

import random

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.admission import Admission
from kcm_cli.sandbox.apiserver.admission.dynamic.reviews import Reviewer
from kcm_cli.sandbox.apiserver.admission.dynamic.users import UserDefined
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.components import Components
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.own_writes import OwnWrites
from kcm_cli.sandbox.apiserver.registry.versions import KindVersions
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.server import ApiServer
from kcm_cli.sandbox.apiserver.settings import DEFAULTS, Settings
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.webhooks import Calls, WebhookCalls
from kcm_cli.sandbox.kubelet_api.server import KubeletApi


class Server(ApiServer):
    """An API server, with the simulated API of kubelets."""

    def __init__(self, core: Core, custom: CustomResources, kubelets: KubeletApi) -> None:
        super().__init__(core, custom)
        self.kubelets = kubelets


def assemble(  # noqa: PLR0913  # the parts, and a server's settings
    store: Store,
    clock: Clock,
    rng: random.Random,
    certificates: Certificates,
    *,
    address: str,
    settings: Settings = DEFAULTS,
    calls: Calls | None = None,
) -> Server:
    """address: host:port at which the server reaches itself. calls: how webhooks are called; by default over the
    network."""
    security = Security.assemble(store, clock, rng, certificates, settings, address)
    catalog, schemas = Catalog(KINDS), Schemas(KINDS.schemas)
    calls = calls or WebhookCalls(store, settings.service_ranges)
    custom = CustomResources(schemas, catalog, calls, rng)
    patching = Patching(schemas, KINDS.writable, KindVersions(catalog, schemas))
    own = OwnWrites(store, catalog, patching, KINDS.strategy, clock, rng)
    users = UserDefined(store, Reviewer(calls, rng), security.authorizer, catalog, schemas, settings)
    kubelets = KubeletApi(store, clock, security.token_requests.create, settings.service_ranges)
    core = Core(
        store=store,
        catalog=catalog,
        clock=clock,
        random=rng,
        schemas=schemas,
        kinds=KINDS,
        custom=custom,
        patching=patching,
        own=own,
        admission=Admission(store, clock, rng, own, users, settings.disabled_plugins),
        security=security,
        kubelets=kubelets,
        routes=calls.routes,
        components=Components(),
        settings=settings,
    )
    return Server(core, custom, kubelets)
