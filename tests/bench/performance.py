"""The figures of docs/performance.md: a table of medians, and a picture of the growth with the number of pods."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.bench.drawing import drawing
from tests.kit.places import ROOT

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "performance.svg"
GO, KCM = "kube-controller-manager", "kcm"
_BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
_SANDBOX = re.compile(r"(?<=<!-- sandbox -->\n).*?(?=<!-- end of sandbox -->)", re.DOTALL)
_CASES = {
    "ready": "{pods:,} pods on {nodes:,} nodes, until all are ready",
    "full": "{pods:,} pods, {nodes:,} nodes, {services:,} Services, until all has settled",
    "idle": "{nodes:,} nodes, a minute of nothing",
}
_ROWS = {
    "startup": ("first start to first pod", "time 1.0, CPU 1.2, memory 0.5"),
    "again": ("the same with a serving certificate at hand", "time 2, CPU 2"),
    "burst": ("a Deployment of 1,000 pods", "time 0.65, CPU 0.35"),
    "scaledown": ("scale it to 0", "time 0.65, CPU 0.45"),
    "wide": ("200 Deployments of 5 pods", "time 0.6, CPU 0.5"),
    "cascade": ("delete them", "time 0.55, CPU 0.4"),
    "configmaps": ("then 50 MiB of ConfigMaps", "memory 0.33"),
    "pods": ("{:,} pods", "CPU 0.5, sum 0.75, memory 0.35"),
    "restart": ("a restart on {:,} pods", "time 1.2, CPU 1.0, sum 1.0"),
}
"""What a load is called, and the aim: kcm's part of what Go takes."""
_UNITS = {
    "seconds": "{:.2f} s",
    "cpu_s": "CPU {:.2f}",
    "server_cpu_s": "API server {:.2f}",
    "rss_mib": "{:.0f} MiB",
    "sockets": "{:.0f} sockets",
}
_PARTS = {"time": ["seconds"], "CPU": ["cpu_s"], "sum": ["cpu_s", "server_cpu_s"], "memory": ["rss_mib"]}
Medians = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Of each program and load, by the names of figures."""


def write(medians: Medians, rounds: int) -> None:
    """Write the page's figures anew, and its picture."""
    machine = f"Medians of {rounds}, on {os.cpu_count()} cores."
    image = f"![CPU and memory by the number of pods]({PICTURE.name})"
    text = "\n".join([machine, "", *table(medians), "", image, ""])
    PAGE.write_text(_BETWEEN.sub(lambda _: text, PAGE.read_text()))
    PICTURE.write_text("\n".join(picture(medians)))


def write_sandbox(cases: Iterable[Mapping[str, Any]]) -> None:
    """Write the figures of ``tests.bench.size`` anew."""
    text = "\n".join([f"On {os.cpu_count()} cores.", "", *sandbox_table(cases), ""])
    PAGE.write_text(_SANDBOX.sub(lambda _: text, PAGE.read_text()))


def sandbox_table(cases: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| | time, CPU | memory | longest turn | slowest /healthz | slowest list |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case in cases:
        title = _CASES[case["case"]].format(**case) + (", the manager apart" if len(case["rss_mib"]) > 1 else "")
        memory = _of_each("{:,} MiB", case["rss_mib"])
        if "idle_percent" in case:
            yield f"| {title} | {_of_each('{} % of a core', case['idle_percent'])} | {memory} | | | |"
            continue
        cpu = _of_each("CPU {:.0f} s", case["cpu_s"]) + ", " + _of_each("{:.1f} ms a pod", case["cpu_ms_a_pod"])
        turns = {name: float(turns[0].partition(" ")[0]) if turns else 0.0 for name, turns in case["turns_ms"].items()}
        cells = (f"{case['seconds']:.0f} s, {cpu}", memory, _of_each("{:.0f} ms", turns))
        slowest = (_of_each("{} ms", case["healthz_ms"]), f"{max(case['list_ms'].values(), default=0)} ms")
        yield f"| {title} | {' | '.join((*cells, *slowest))} |"


def _of_each(form: str, values: Mapping[str, Any]) -> str:
    """The value of each program; its name, too, where there are several."""
    named = len(values) > 1
    return ", ".join(f"{name} {form.format(value)}" if named else form.format(value) for name, value in values.items())


def table(medians: Medians) -> Iterator[str]:
    """Lines of Markdown."""
    go, kcm = medians.get(GO, {}), medians[KCM]
    yield f"| | {GO} | kcm | kcm's part | aim |"
    yield "| --- | --- | --- | --- | --- |"
    for scenario, figures in kcm.items():
        name, _, size = scenario.partition("=")
        if name in _ROWS:
            title, aim = _ROWS[name]
            beside = go.get(scenario, {})
            cells = title.format(int(size or 0)), _cell(beside), _cell(figures), _parts(figures, beside), aim
            yield f"| {' | '.join(cells)} |"


def _cell(figures: Mapping[str, float]) -> str:
    return ", ".join(form.format(figures[key]) for key, form in _UNITS.items() if key in figures)


def _parts(figures: Mapping[str, float], beside: Mapping[str, float]) -> str:
    parts = []
    for name, keys in _PARTS.items():
        if all(beside.get(key) for key in keys):
            parts.append(f"{name} {sum(figures[key] for key in keys) / sum(beside[key] for key in keys):.2f}")
    return ", ".join(parts)


# -- the picture: for each program a line from size to size

_PANELS = (
    ("CPU of the manager for creating them, s", "pods", ("cpu_s",)),
    ("with the API server's, s", "pods", ("cpu_s", "server_cpu_s")),
    ("CPU of a restart, both, s", "restart", ("cpu_s", "server_cpu_s")),
    ("memory, MiB", "restart", ("rss_mib",)),
)


def picture(medians: Medians) -> Iterator[str]:
    """Lines of an SVG: CPU and memory by the number of pods, a line for each program."""
    panels = [
        (title, [list(_points(loads, load, keys)) for loads in medians.values()]) for title, load, keys in _PANELS
    ]
    return drawing("Growth", list(medians), panels, "pods")


def _points(
    loads: Mapping[str, Mapping[str, float]], load: str, keys: tuple[str, ...]
) -> Iterator[tuple[float, float]]:
    for scenario, figures in loads.items():
        name, _, size = scenario.partition("=")
        if name == load:
            yield int(size), sum(figures[key] for key in keys)
