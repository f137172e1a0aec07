"""Charts of benchmarks as SVG: panels two by two, in each a line for each program."""

from collections.abc import Iterator, Sequence

Line = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT, _LEFT, _TOP = 300, 180, 60, 30
_STYLES = ("a", "b", "c")
_STYLE = """<style>
text { font: 12px sans-serif; fill: #444 } .axis { stroke: #999; fill: none } polyline { fill: none; stroke-width: 2 }
polyline.a { stroke: #00897b } polyline.b { stroke: #3949ab; stroke-dasharray: 5 3 }
polyline.c { stroke: #c62828; stroke-dasharray: 2 2 } text.a { fill: #00897b } text.b { fill: #3949ab }
text.c { fill: #c62828 }
</style>"""


def drawing(label: str, names: Sequence[str], panels: Sequence[tuple[str, Sequence[Line]]], unit: str) -> Iterator[str]:
    """Lines of an SVG. names: of the lines, at most three. panels: title and lines of each, from zero. unit: of x."""
    width, height = 2 * (_WIDTH + _LEFT) + 20, (len(panels) + 1) // 2 * (_HEIGHT + 2 * _TOP) + 20
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
    yield f'{_STYLE}<rect width="100%" height="100%" fill="#fff"/>'
    for number, (name, style) in enumerate(zip(names, _STYLES, strict=False)):
        yield f'<text class="{style}" x="{_LEFT + 180 * number}" y="14">{name}</text>'
    for number, (title, lines) in enumerate(panels):
        left, top = _LEFT + number % 2 * (_WIDTH + _LEFT), _TOP + 20 + number // 2 * (_HEIGHT + 2 * _TOP)
        yield f'<g transform="translate({left} {top})">'
        yield from _panel(title, lines, unit)
        yield "</g>"
    yield "</svg>\n"


def _panel(title: str, lines: Sequence[Line], unit: str) -> Iterator[str]:
    most_x = max((x for line in lines for x, _ in line), default=1)
    most_y = max((y for line in lines for _, y in line), default=1)
    yield f'<text y="-6">{title}</text><path class="axis" d="M0 0V{_HEIGHT}H{_WIDTH}"/>'
    yield f'<text x="-6" y="10" text-anchor="end">{most_y:,.0f}</text>'
    yield f'<text x="{_WIDTH}" y="{_HEIGHT + 16}" text-anchor="end">{most_x:,.0f} {unit}</text>'
    for line, style in zip(lines, _STYLES, strict=False):
        spots = [f"{x / most_x * _WIDTH:.1f},{_HEIGHT - y / most_y * _HEIGHT:.1f}" for x, y in line]
        yield f'<polyline class="{style}" points="{" ".join(spots)}"/>'
