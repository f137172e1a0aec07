"""Which code answers which verb of which resource."""

from collections.abc import Awaitable, Callable

from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.refusals import method_not_allowed
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.creating import Creator
from kcm_cli.sandbox.apiserver.registry.deleting import Deleter
from kcm_cli.sandbox.apiserver.registry.reading import Reader
from kcm_cli.sandbox.apiserver.registry.updating import Updater
from kcm_cli.sandbox.apiserver.registry.watching import Watching
from kcm_cli.sandbox.apiserver.security.assembly import Security

Handler = Callable[[Call], Awaitable[Response | Stream]]


class Verbs:
    """Answers requests that have been routed."""

    def __init__(self, core: Core, security: Security) -> None:
        self._core = core
        creator = Creator(core)
        reader, deleter, updater = Reader(core), Deleter(core), Updater(core, creator)
        self.watching = Watching(core)
        self._main: dict[str, Handler] = {
            "get": reader.get,
            "list": reader.list,
            "watch": self.watching.watch,
            "create": creator.create,
            "update": updater.update,
            "patch": updater.patch,
            "delete": deleter.delete,
            "deletecollection": deleter.delete_collection,
        }
        self._parts: dict[str, Handler] = {"get": reader.get, "update": updater.update, "patch": updater.patch}

    async def run(self, call: Call) -> Response | Stream:
        """Raises ApiError."""
        table = self._parts if call.subresource else self._main
        handler = table.get(call.info.verb)
        if handler is None:
            raise method_not_allowed()
        return await handler(call)
