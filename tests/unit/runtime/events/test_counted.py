"""Names of Events are unique, also if time does not advance."""

from datetime import UTC, datetime

from kcm_cli.component.clock import LoopClock
from kcm_cli.planning.actions import EventRef
from kcm_cli.runtime.events import EventNames

POD = EventRef("v1", "Pod", "ns", "web", "u")


class Still(LoopClock):
    """Time that does not pass."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


def test_names_are_unique_within_a_moment() -> None:
    manager, kubelet = EventNames(Still()), EventNames(Still(), 500)
    names = [one.of(POD) for one in (manager, kubelet) for _ in range(400)]
    assert len(set(names)) == 800
    assert all(name.startswith("web.") for name in names)


def test_a_name_has_the_time() -> None:
    assert EventNames(Still()).of(POD) == f"web.{int(Still().now().timestamp()) * 10**9:x}"
