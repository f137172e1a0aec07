"""Dispatches requests to the handlers of verbs, or to those that a kind declares."""

from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import method_not_allowed
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.creating import Creator
from kcm_cli.sandbox.apiserver.registry.deleting import Deleter
from kcm_cli.sandbox.apiserver.registry.reading import Reader
from kcm_cli.sandbox.apiserver.registry.scale import Scaling
from kcm_cli.sandbox.apiserver.registry.updating import SCALE, Updater
from kcm_cli.sandbox.apiserver.registry.watching import Watching


class Verbs:
    """Handles requests that have been routed."""

    def __init__(self, core: Core) -> None:
        self._core = core
        creator = Creator(core)
        reader, deleter, updater = Reader(core), Deleter(core), Updater(core, creator)
        scaling = Scaling(core, updater)
        self.watching = Watching(core)
        self._main = {
            "get": reader.get,
            "list": reader.list,
            "watch": self.watching.watch,
            "create": creator.create,
            "update": updater.update,
            "patch": updater.patch,
            "delete": deleter.delete,
            "deletecollection": deleter.delete_collection,
        }
        self._part = {"get": reader.get, "update": updater.update, "patch": updater.patch}
        self._scale = {"get": scaling.get, "update": scaling.update, "patch": scaling.patch}

    async def run(self, call: Call) -> Response | Stream:
        """Handle a request. Raises ApiError."""
        own = self._core.kinds.of(call.resource).handlers.get(call.subresource)
        if own is not None:
            return await own(self._core, call)
        part = self._scale if call.subresource == SCALE else self._part
        handler = (part if call.subresource else self._main).get(call.info.verb)
        if handler is None:
            raise method_not_allowed()
        return await handler(call)
