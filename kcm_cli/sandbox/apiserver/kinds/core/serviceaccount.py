"""ServiceAccount.

upstream: pkg/apis/core/validation,
pkg/registry/core/serviceaccount/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import ENFORCE_MOUNTABLE_SECRETS
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core, Kind
from kcm_cli.sandbox.apiserver.registry.options import write_options
from kcm_cli.sandbox.apiserver.registry.unstored import mutated, received, track
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.security import token_requests
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, layout
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree

_TOKEN_REQUEST = Target("authentication.k8s.io", "v1", "TokenRequest")
_TOKEN_REQUESTS = ResourceInfo(
    GVR("authentication.k8s.io", "v1", "tokenrequests"), "TokenRequest", "tokenrequest", True, frozenset(["create"])
)


def _new_service_account(doc: Tree) -> None:
    for secret in doc.get("secrets") or ():
        for field in tuple(secret):
            if field != "name":
                del secret[field]


def _service_account_update(new: Tree, old: Tree) -> None:
    _new_service_account(new)


def _warn_service_account(new: Tree, old: Tree | None) -> list[str]:
    if old is not None and ENFORCE_MOUNTABLE_SECRETS in (old["metadata"].get("annotations") or {}):
        return []
    if ENFORCE_MOUNTABLE_SECRETS not in (new["metadata"].get("annotations") or {}):
        return []
    advice = "prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; {advice}"]


async def _token(core: Core, call: Call) -> Response:
    """POST .../serviceaccounts/NAME/token: issue a token."""
    options = write_options("CreateOptions", call.request, call.query)
    doc = received(core, call, options, _TOKEN_REQUEST)
    token_requests.default(doc)
    track(core, call, options, doc, _TOKEN_REQUESTS)
    attrs = await mutated(core, call, options, call.name, doc)
    account = core.security.token_requests.prepare(call.namespace, call.name, doc)
    await core.admission.validate(attrs)
    return call.media.document(201, core.security.token_requests.issue(account, doc))


KIND = Kind(
    "",
    "serviceaccounts",
    strategy=Strategy(
        on_create=_new_service_account,
        on_update=_service_account_update,
        update_steps=("metadata", "name"),
        warn=_warn_service_account,
        returns_object_on_delete=True,
    ),
    handlers={"token": _token},
    table=layout(NAME, AGE),
)
