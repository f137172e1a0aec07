"""A request on its way: what was asked, by whom, of which resource."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.registry.requestinfo import truthy
from kcm_cli.sandbox.apiserver.types import ApiError, RequestInfo, ResourceInfo, User

_MANAGER_LENGTH = 128


@dataclass(slots=True)
class Call:
    """One request to a resource. ``query`` holds the first value of each parameter."""

    request: Request
    info: RequestInfo
    served: Served
    user: User
    query: Mapping[str, str]
    media: "object" = None
    warnings: list[str] = field(default_factory=list)

    @property
    def resource(self) -> ResourceInfo:
        return self.served.info

    @property
    def namespace(self) -> str:
        return self.info.namespace if self.served.info.namespaced else ""

    @property
    def dry_run(self) -> bool:
        return "dryRun" in self.query

    @property
    def field_manager(self) -> str:
        """The named manager, or the first part of the user agent."""
        manager = self.query.get("fieldManager", "")
        if manager:
            return manager
        agent = self.request.headers.get("user-agent", "").split("/", 1)[0]
        return "".join(letter for letter in agent if letter.isprintable())[:_MANAGER_LENGTH]

    def flag(self, name: str) -> bool:
        """A boolean parameter; False where it is missing."""
        return name in self.query and truthy(self.query[name])

    def whole(self, name: str) -> int | None:
        """An integer parameter. Raises ApiError 400."""
        text = self.query.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            reason = f'strconv.ParseInt: parsing "{text}": invalid syntax'
            raise ApiError(400, "BadRequest", reason) from None
