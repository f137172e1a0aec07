"""The picture of a manager, in terminals of any size."""

import io
import json

import pytest
from msgspec.structs import replace
from rich.console import Console, RenderableType

from kcm_cli.top import table
from kcm_cli.top.figures import Row, View
from kcm_cli.top.source import Held
from kcm_cli.top.table import COLUMNS, SORTS, Look, Shown, chosen, document, printed, render


def row(queue: str, *, waiting: int = 0, rate: float = 0.0, retries: float = 0.0, done: int = 1) -> Row:
    names = (queue, f"{queue}-controller")
    return Row(*names, waiting, 0.0, rate, retries, None, 0.0, done, writes={"create": 2.0}, longest_s=0.1)


ROWS = (row("deployment", rate=3.0, waiting=1), row("job", rate=12.0, retries=1.0), row("idle", done=0))
HELD = Held("kube-system/kube-controller-manager", "host-1_abc", 1.5)
VIEW = View("v1.36.2", True, 90.0, 0.25, 100 << 20, 12.0, 0.5, {"create": 3.0, "delete": 11.0}, ROWS)
SHOWN = Shown(VIEW, HELD, ("[-]leaderElection failed: reason withheld",))


def lines(what: RenderableType, width: int) -> list[str]:
    console = Console(width=width, color_system=None, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [40, 80, 100, 150, 200])
def test_it_fits_the_width_and_shows_the_busiest_first(width: int) -> None:
    found = lines(render(SHOWN, Look(), width, 24), width)
    assert max(map(len, found)) <= width
    assert [line.split()[0] for line in found if line.startswith(("job", "deployment", "idle"))] == [
        "job",
        "deployment",
    ]
    assert found[0].startswith("v1.36.2 leads, up 90.0s") and found[3].startswith("unhealthy: leaderElection failed")
    header = next(line for line in found if line.startswith("queue"))
    titles = ["queue", *(["controller"] if width >= 150 else []), *(one.title for one in COLUMNS if one.least <= width)]
    assert header.replace("▼", "").split() == " ".join(titles).split()


def test_rows_that_do_not_fit_are_counted() -> None:
    many = tuple(row(f"q{n}", rate=1.0) for n in range(50))
    found = lines(render(Shown(View("v", None, None, 0, 0, 0, 0, {}, many), None, ()), Look(), 80, 20), 80)
    assert len(found) <= 20 and "35 more" in found[-1]
    assert len(lines(printed(Shown(View("v", None, None, 0, 0, 0, 0, {}, many), None, ()), Look(), 80), 80)) > 50


@pytest.mark.parametrize("sort", SORTS)
def test_each_column_sorts(sort: str) -> None:
    ordered = [one.queue for one in chosen(ROWS, Look(sort, every=True))]
    backwards = [one.queue for one in chosen(ROWS, Look(sort, every=True, reverse=True))]
    assert sorted(ordered) == sorted(backwards) == ["deployment", "idle", "job"]
    if sort in ("rate", "name"):
        assert ordered == backwards[::-1]


def test_the_filter_looks_at_queues_and_controllers() -> None:
    assert [one.queue for one in chosen(ROWS, Look(filter="job"))] == ["job"]
    assert [one.queue for one in chosen(ROWS, Look(filter="idle-controller", every=True))] == ["idle"]


@pytest.mark.parametrize(
    ("held", "text"),
    [
        (HELD, "lease renewed 1.5s ago by host-1_abc (kube-system/kube-controller-manager)"),
        (Held("n/l"), "lease not held (n/l)"),
        (Held("n/l", problem="not found"), "lease not found (n/l)"),
        (Held("n/l", "h", None), "lease held by h (n/l)"),
    ],
)
def test_the_lease(held: Held, text: str) -> None:
    assert lines(render(Shown(VIEW, held, ()), Look(), 100, 24), 100)[2] == text


def test_help_explains_each_column() -> None:
    text = "\n".join(lines(render(SHOWN, Look(help=True), 100, 40), 100))
    assert all(column.about in text for column in COLUMNS) and table.HELP in text


def test_the_document_has_what_is_shown() -> None:
    found = json.loads(json.dumps(document(SHOWN, Look(filter="job"))))
    assert [one["queue"] for one in found["rows"]] == ["job"]
    assert (found["version"], found["leads"], found["lease"]["holder"]) == ("v1.36.2", True, "host-1_abc")
    assert found["unhealthy"] == ["[-]leaderElection failed: reason withheld"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, ""), (0.0, ""), (0.0004, "<1ms"), (0.25, "250ms"), (2.0, "2.0s"), (600.0, "10m"), (86400.0, "24h")],
)
def test_durations_are_short(number: float | None, text: str) -> None:
    assert table.seconds(number) == text


def test_no_text_of_others_controls_the_terminal() -> None:
    sign = "\x1b[2J"
    shown = Shown(replace(VIEW, rows=(row(f"q{sign}"),)), Held("a/b", f"me{sign}"), (f"[-]ping{sign}",))
    text = "\n".join(lines(printed(shown, Look(every=True), 160), 160))
    assert sign not in text and text.count("\\x1b[2J") == 4
