"""The figures of docs/performance.md: a table of medians, and a picture of the growth with the number of pods."""

import os
import re
from collections.abc import Iterator, Mapping

from tests.kit.places import ROOT

PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "performance.svg"
GO, KCM = "kube-controller-manager", "kcm"
_BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
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
_UNITS = {"seconds": "{:.2f} s", "cpu_s": "CPU {:.2f}", "server_cpu_s": "API server {:.2f}", "rss_mib": "{:.0f} MiB"}
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

_WIDTH, _HEIGHT, _LEFT, _TOP = 300, 180, 60, 30
_PANELS = (
    ("CPU of the manager for creating them, s", "pods", ("cpu_s",)),
    ("with the API server's, s", "pods", ("cpu_s", "server_cpu_s")),
    ("CPU of a restart, both, s", "restart", ("cpu_s", "server_cpu_s")),
    ("memory, MiB", "restart", ("rss_mib",)),
)
_STYLES = ("a", "b", "c")
_STYLE = """<style>
text { font: 12px sans-serif; fill: #444 } .axis { stroke: #999; fill: none } polyline { fill: none; stroke-width: 2 }
polyline.a { stroke: #00897b } polyline.b { stroke: #3949ab; stroke-dasharray: 5 3 }
polyline.c { stroke: #c62828; stroke-dasharray: 2 2 } text.a { fill: #00897b } text.b { fill: #3949ab }
text.c { fill: #c62828 }
</style>"""


def picture(medians: Medians) -> Iterator[str]:
    """Lines of an SVG: CPU and memory by the number of pods, a line for each program."""
    width, height = 2 * (_WIDTH + _LEFT) + 20, 2 * (_HEIGHT + 2 * _TOP) + 20
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Growth">'
    yield f'{_STYLE}<rect width="100%" height="100%" fill="#fff"/>'
    for number, (name, style) in enumerate(zip(medians, _STYLES, strict=False)):
        yield f'<text class="{style}" x="{_LEFT + 180 * number}" y="14">{name}</text>'
    for number, panel in enumerate(_PANELS):
        left, top = _LEFT + number % 2 * (_WIDTH + _LEFT), _TOP + 20 + number // 2 * (_HEIGHT + 2 * _TOP)
        yield f'<g transform="translate({left} {top})">'
        yield from _panel(medians, *panel)
        yield "</g>"
    yield "</svg>\n"


def _panel(medians: Medians, title: str, load: str, keys: tuple[str, ...]) -> Iterator[str]:
    lines = [list(_points(loads, load, keys)) for loads in medians.values()]
    most_x = max((x for line in lines for x, _ in line), default=1)
    most_y = max((y for line in lines for _, y in line), default=1)
    yield f'<text y="-6">{title}</text><path class="axis" d="M0 0V{_HEIGHT}H{_WIDTH}"/>'
    yield f'<text x="-6" y="10" text-anchor="end">{most_y:.3g}</text>'
    yield f'<text x="{_WIDTH}" y="{_HEIGHT + 16}" text-anchor="end">{most_x:,} pods</text>'
    for line, style in zip(lines, _STYLES, strict=False):
        spots = [f"{x / most_x * _WIDTH:.1f},{_HEIGHT - y / most_y * _HEIGHT:.1f}" for x, y in line]
        yield f'<polyline class="{style}" points="{" ".join(spots)}"/>'


def _points(loads: Mapping[str, Mapping[str, float]], load: str, keys: tuple[str, ...]) -> Iterator[tuple[int, float]]:
    for scenario, figures in loads.items():
        name, _, size = scenario.partition("=")
        if name == load:
            yield int(size), sum(figures[key] for key in keys)
