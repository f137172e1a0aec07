"""What a trial is made of: the cluster, what is perturbed in it, and what counts as a difference."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.entrance import Asked
from kcm_cli.sandbox.apiserver.server import ApiServer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.testing.perturb.points import Point

T = TypeVar("T")
UNCOMPARED = frozenset(
    {"events", "leases", "nodes", "csinodes", "endpoints", "endpointslices", "ipaddresses", "podmetrics"}
)


class Server(Protocol):
    """The API server of a host."""

    @property
    def api(self) -> ApiServer: ...
    @property
    def store(self) -> Store: ...


class Host(Protocol):
    """A cluster, as ``testing.sandbox.Sandbox``."""

    @property
    def server(self) -> Server: ...
    @property
    def clock(self) -> Clock: ...

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the cluster's loop, and return its result."""

    def advance(self, seconds: float) -> None:
        """Let the cluster's time pass. Raises ``warp.Stalled``."""

    def aside(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do something while the cluster's time stands still. Called on its loop; what is returned waits for the end.

        Errors of the work are lost."""


class Subject(Protocol):
    """What is perturbed, as ``testing.operators.Operator``.

    user: its user. virtual: whether it runs in the cluster's time.
    """

    user: str
    virtual: bool

    def client_of(self, asked: Asked) -> str:
        """Which of its clients sends a request; empty if it has only one."""

    def start(self) -> None:
        """Start it."""

    def kill(self) -> None:
        """Kill it: none of its requests reaches the server any more."""

    def restart(self) -> None:
        """Kill and start it."""

    def sever(self) -> None:
        """Break its connections. Called on the cluster's loop."""

    def alive(self) -> bool:
        """Whether it has not ended by itself."""

    def check(self) -> None:
        """Raises OperatorError if it has ended by itself, and may be restarted."""


class Measure(msgspec.Struct, frozen=True):
    """What counts as a difference.

    uncompared: plurals of the resources that are neither perturbed nor compared. simplify: applied to each object
    before it is compared. explain: the reason why something may differ at a point; empty if it may not. again: the
    command that repeats a point, with ``{}`` for it. polls: whether it may find by its writes that all is done, such as
    by creating what exists. Otherwise it is not quiet while it does that.
    """

    uncompared: Collection[str] = UNCOMPARED
    simplify: Callable[[Any], Any] = lambda doc: doc
    explain: Callable[[Point, Sequence[str]], str] = lambda point, wrong: ""
    again: str = "pytest --kcm-perturb --kcm-replay '{}'"
    polls: bool = True


OPERATORS = Measure()
"""For operators, which seldom look at nodes and endpoints."""
