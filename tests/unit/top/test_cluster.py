"""The picture of a sandbox, in terminals of any size."""

import io

import pytest
from rich.console import Console

from kcm_cli.sandbox.status.state import EventLine, NodeCounts, SandboxState, Workload
from kcm_cli.top.figures import Row, View
from kcm_cli.top.table import Shown, sandbox


def row(queue: str, *, waiting: int = 0, rate: float = 0.0, retries: float = 0.0, done: int = 0) -> Row:
    return Row(queue, f"{queue}-controller", waiting, 0.0, rate, retries, None, 0.0, done, {"create": 2.0}, 0.1)


ROWS = (row("deployment", done=7), row("job", waiting=2, done=1234, retries=5.0), row("quiet"))
MANAGER = Shown(View("v1.36.2", True, 90.0, 0.25, 100 << 20, 12.0, 0.5, {}, ROWS), None, (), 29)
EVENTS = tuple(
    EventLine(f"10:00:{number:02}", "Normal", "default", f"pod/p{number}", "Scheduled", "It has a node [red]now[/red]")
    for number in range(30)
)
UNREADY = (
    Workload("Deployment", "shop", "checkout", 2, 3, "ImagePullBackOff: Back-off pulling image (checkout-7d9)"),
    Workload("StatefulSet", "default", "db", 0, 1200),
)


def snapshot(**given: object) -> SandboxState:
    return SandboxState("https://127.0.0.1:6443", "/home/me/kubeconfig", **given)  # type: ignore[arg-type]


COMMAND = "export KUBECONFIG=/home/me/kubeconfig"
FULL = snapshot(nodes=NodeCounts(2, ("node-1",)), pods=(("Running", 1),), workloads=UNREADY, events=EVENTS)


def text(shown: SandboxState, manager: Shown | None = None, *, width: int = 80, height: int = 25) -> str:
    console = Console(width=width, height=height, record=True, file=io.StringIO(), force_terminal=True)
    console.print(sandbox(shown, manager, width, height))
    return console.export_text()


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (snapshot(), ["https://127.0.0.1:6443", "export KUBECONFIG=/home/me/kubeconfig", "0 ready", "none"]),
        (snapshot(nodes=NodeCounts(3)), ["3 ready"]),
        (snapshot(nodes=NodeCounts(2, ("b",))), ["2 ready, 1 not ready (b)"]),
        (snapshot(nodes=NodeCounts(2, tuple("abcde"))), ["2 ready, 5 not ready (a, b, c, …)"]),
        (snapshot(pods=(("Running", 50000), ("Pending", 1))), ["50,000 Running, 1 Pending"]),
        (snapshot(workloads=UNREADY), ["2 not ready", "shop/deployment/checkout", "2/3", "ImagePullBackOff"]),
        (snapshot(workloads=UNREADY[1:]), ["1 not ready", "statefulset/db", "0/1,200", "its pods start"]),
        (snapshot(events=EVENTS[:1]), ["10:00:00", "pod/p0", "Scheduled", "It has a node [red]now[/red]"]),
        (snapshot(events=(EventLine("1", "Warning", "kube-system", "node/n", "R", "m"),)), ["kube-system/node/n"]),
    ],
    ids=["empty", "ready", "one not", "five not", "pods", "why", "starting", "event", "namespace"],
)
def test_it_shows(shown: SandboxState, words: list[str]) -> None:
    found = text(shown)
    assert [word for word in words if word not in found] == []


def test_workloads_are_before_the_manager_and_that_before_events() -> None:
    found = text(FULL, MANAGER)
    places = [
        found.index(word) for word in ("Workloads", "ImagePullBackOff", "29 controllers run", "queue", "10:00:29")
    ]
    assert places == sorted(places)


def test_without_a_manager_there_are_no_queues() -> None:
    assert "controllers" not in text(FULL)


def test_queues_with_work_come_first() -> None:
    found = text(snapshot(), MANAGER)
    assert found.index("job") < found.index("deployment")
    assert "quiet" not in found


def test_aggregated_events_have_a_count() -> None:
    many = EventLine("10:00:30", "Normal", "default", "pod/web-…", "Scheduled", "m", count=1500)
    assert "1,500×" in text(snapshot(events=(*EVENTS[:1], many)))
    assert "×" not in text(snapshot(events=EVENTS[:1]))


def test_the_newest_events_are_last_and_stay() -> None:
    found = text(snapshot(events=EVENTS), MANAGER)
    assert found.splitlines()[-1].split()[:2] == ["10:00:29", "pod/p29"]
    assert "10:00:00" not in found


def test_no_name_or_message_forges_a_line() -> None:
    bad = Workload("Deployment", "default", "web", 0, 1, "\x1b[2J\nI am fine")
    event = EventLine("1", "Normal", "default", "pod/p", "R", "\x1b]0;title\x07")
    found = text(snapshot(workloads=(bad,), events=(event,)))
    assert "\x1b" not in found and "\x07" not in found and "\nI am fine" not in found


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_command_can_be_copied(width: int) -> None:
    found = text(FULL, width=width, height=30).splitlines()
    first = next(number for number, line in enumerate(found) if line.startswith("export"))
    assert "".join(line.strip() if len(line) < width else line for line in found[first : first + 3]).startswith(COMMAND)


def test_narrow_terminals_have_the_object_of_an_event() -> None:
    assert "10:00:29  Scheduled  pod/p29" in text(FULL, width=40, height=30)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_what_matters_is_whole_at_each_width(width: int) -> None:
    """Names, counts, times and the beginning of the reason; what is long is cut, and takes no second line."""
    found = text(FULL, MANAGER, width=width, height=30)
    lines = found.splitlines()
    for word in ("checkout", "2/3", "ImagePullBac", "0/1,200", "10:00:29", "v1.36.2 leads", "29 controllers"):
        assert word in found, word
    (job,) = [line for line in lines if line.startswith("job")]
    assert job.split()[:3] in (["job", "2"], ["job", "2", "5.0"], ["job", "job-controller", "2"])
    assert len([line for line in lines if "checkout" in line]) == 1


@pytest.mark.parametrize("width", [20, 40, 80, 120, 200])
@pytest.mark.parametrize("height", [1, 6, 7, 8, 9, 10, 11, 12, 16, 24, 80])
def test_it_is_never_higher_or_wider_than_it_may_be(width: int, height: int) -> None:
    for shown, manager in ((FULL, MANAGER), (snapshot(events=EVENTS), None), (snapshot(), MANAGER), (FULL, None)):
        lines = text(shown, manager, width=width, height=height).splitlines()
        assert len(lines) <= max(height, 6 + len(COMMAND) // width + 1)
        assert max(map(len, lines)) <= width
