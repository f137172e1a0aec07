"""Assembles an API server: the only module that imports all of its parts."""

import random

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.admission import Admission
from kcm_cli.sandbox.apiserver.admission.dynamic.reviews import Reviewer
from kcm_cli.sandbox.apiserver.admission.dynamic.users import UserDefined
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.registry.own_status import OwnStatus
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.server import ApiServer, Dependencies
from kcm_cli.sandbox.apiserver.settings import DEFAULTS, Settings
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.webhooks import Calls, WebhookCalls


def assemble(  # noqa: PLR0913  # the parts, and a server's settings
    store: Store,
    clock: Clock,
    rng: random.Random,
    certificates: Certificates,
    *,
    address: str,
    settings: Settings = DEFAULTS,
    calls: Calls | None = None,
) -> ApiServer:
    """address: host:port at which the server reaches itself. calls: how webhooks are called; by default over the
    network."""
    security = Security.assemble(store, clock, rng, certificates, settings, address)
    catalog, schemas = Catalog(), Schemas()
    calls = calls or WebhookCalls(store)
    users = UserDefined(store, Reviewer(calls, rng), security.authorizer, catalog, schemas, settings.disabled_plugins)
    status = OwnStatus(store, catalog, Patching(schemas), clock)
    admission = Admission(store, clock, rng, status, users, settings.disabled_plugins)
    deps = Dependencies(
        store, clock, rng, security, catalog, schemas, admission, calls, settings.service_ranges, settings.ratchets,
        settings.flags(), settings.version, settings.deletion_gap_s,
    )  # fmt: skip
    return ApiServer(deps)
