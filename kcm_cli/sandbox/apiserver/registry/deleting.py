"""Delete and deletecollection."""

from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.reading import fetch


class Deleter:
    """Answers delete."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def delete(self, call: Call) -> Response:
        stored = fetch(self._core, call)
        store, gvr = self._core.store, call.served.storage
        doc = stored.copy()
        meta = doc["metadata"]
        if meta.get("finalizers"):
            meta.setdefault("deletionTimestamp", format_time(self._core.clock.now()))
            meta["deletionGracePeriodSeconds"] = 0
            return call.media.object(200, store.update(gvr, call.namespace, call.info.name, doc))
        store.delete(gvr, call.namespace, call.info.name)
        details = {"name": call.info.name, "kind": call.resource.gvr.plural, "uid": meta["uid"]}
        return call.media.document(
            200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )
