"""Get and list.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go, pkg/storage/etcd3/store.go#GetList (v1.36)
"""

import base64
import binascii

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.registry import refusals
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.selection import Selection, selection
from kcm_cli.sandbox.apiserver.store import Compacted, Stored, object_key


class ContinueToken(msgspec.Struct, omit_defaults=True):
    """Where a list goes on: after key ``start`` as of revision ``rv``; -1 stands for the newest."""

    v: str = "meta.k8s.io/v1"
    rv: int = 0
    start: str = ""

    def encode(self) -> str:
        return base64.urlsafe_b64encode(codec.encode(self)).rstrip(b"=").decode()


def fetch(core: Core, call: Call) -> Stored:
    """The object that the request names. Raises ApiError 404."""
    stored = core.store.get(call.served.storage, call.namespace, call.info.name)
    if stored is None:
        raise refusals.not_found(call.resource, call.info.name)
    return stored


class Reader:
    """Answers get and list."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def get(self, call: Call) -> Response:
        return call.media.object(200, fetch(self._core, call))

    async def list(self, call: Call) -> Response:
        chosen = selection(call.resource, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""))
        store = self._core.store
        items = [s for s in store.scan(call.served.storage, call.namespace) if chosen.everything or chosen.matches(s)]
        return call.media.list(items, str(store.revision), "", None)
