"""The status view as text, on a recorded console."""

import io

import pytest
from rich.console import Console

from kcm_cli.sandbox.status.render import render
from kcm_cli.sandbox.status.snapshot import Controllers, EventLine, NodeCounts, Queue, Snapshot

QUEUES = (Queue("deployment", done=7), Queue("job", waiting=2, in_work=1, done=1234, retries=5), Queue("quiet"))
EVENTS = tuple(
    EventLine(f"10:00:{number:02}", "Normal", "default", f"pod/p{number}", "Scheduled", "It has a node [red]now[/red]")
    for number in range(30)
)


def snapshot(**given: object) -> Snapshot:
    return Snapshot("https://127.0.0.1:6443", "/home/me/kubeconfig", **given)  # type: ignore[arg-type]


def text(shown: Snapshot, *, width: int = 80, height: int = 24) -> str:
    console = Console(width=width, height=height, record=True, file=io.StringIO(), force_terminal=True)
    console.print(render(shown, height))
    return console.export_text()


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (snapshot(), ["https://127.0.0.1:6443", "export KUBECONFIG=/home/me/kubeconfig", "0 ready", "none"]),
        (snapshot(nodes=NodeCounts(3)), ["3 ready"]),
        (snapshot(nodes=NodeCounts(2, ("b",))), ["2 ready, 1 not ready (b)"]),
        (snapshot(nodes=NodeCounts(2, tuple("abcde"))), ["2 ready, 5 not ready (a, b, c, …)"]),
        (snapshot(pods=(("Running", 50000), ("Pending", 1))), ["50,000 Running, 1 Pending"]),
        (snapshot(controllers=Controllers()), ["0 controllers run, 0 queues with work"]),
        (snapshot(controllers=Controllers(29, QUEUES)), ["29 controllers run, 1 queue with work", "1,234"]),
        (snapshot(events=EVENTS[:1]), ["10:00:00", "pod/p0", "Scheduled", "It has a node [red]now[/red]"]),
        (
            snapshot(events=(EventLine("1", "Warning", "kube-system", "node/n", "R", "m"),)),
            ["kube-system/node/n"],
        ),
    ],
    ids=["empty", "ready", "one not", "five not", "pods", "starting", "controllers", "event", "namespace"],
)
def test_it_shows(shown: Snapshot, words: list[str]) -> None:
    found = text(shown)
    assert [word for word in words if word not in found] == []


def test_without_a_manager_there_are_no_queues() -> None:
    assert "controllers" not in text(snapshot(events=EVENTS))


def test_queues_with_work_come_first() -> None:
    found = text(snapshot(controllers=Controllers(3, QUEUES)))
    assert found.index("job") < found.index("deployment")
    assert "quiet" not in found


def test_figures_are_next_to_their_names() -> None:
    (line,) = [
        one for one in text(snapshot(controllers=Controllers(3, QUEUES)), width=200).splitlines() if " job " in one
    ]
    assert len(line.rstrip()) < 80


def test_aggregated_events_have_a_count() -> None:
    many = EventLine("10:00:30", "Normal", "default", "pod/web-…", "Scheduled", "m", count=1500)
    found = text(snapshot(events=(*EVENTS[:1], many)))
    assert "1,500×" in found
    assert "×" not in text(snapshot(events=EVENTS[:1]))


def test_times_stay_whole_where_it_is_narrow() -> None:
    assert "10:00:29" in text(snapshot(events=EVENTS), width=40)


def test_the_newest_events_are_last_and_stay() -> None:
    found = text(snapshot(events=EVENTS))
    assert found.splitlines()[-1].split()[:2] == ["10:00:29", "pod/p29"]
    assert "10:00:00" not in found


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 6, 7, 8, 9, 10, 24, 80])
def test_it_is_never_higher_or_wider_than_it_may_be(width: int, height: int) -> None:
    full = snapshot(
        nodes=NodeCounts(2, ("node-1",)), pods=(("Running", 1),), controllers=Controllers(3, QUEUES), events=EVENTS
    )
    for shown in (full, snapshot(events=EVENTS), snapshot(controllers=Controllers(3, QUEUES))):
        lines = text(shown, width=width, height=height).splitlines()
        assert len(lines) <= max(height, 6)
        assert max(map(len, lines)) <= width
