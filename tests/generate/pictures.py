"""Makes the pictures of terminals in docs: ``kcm top`` of both managers, and the view of a sandbox.

    python -m tests.generate.pictures

kcm's own code draws them, from what was recorded (``tests.generate.top_metrics``) and a sandbox on virtual time.
"""

import gzip
import io
import json
from functools import cache
from typing import Any

from rich.console import Console, RenderableType
from rich.terminal_theme import SVG_EXPORT_THEME

from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.status.counts import Counts
from kcm_cli.sandbox.status.state import SandboxState
from kcm_cli.top import figures
from kcm_cli.top.source import Held
from kcm_cli.top.table import Look, Shown, render, sandbox
from tests.generate.top_metrics import PLACE
from tests.kit.places import ROOT
from tests.kit.simulation import World, simulate

FOLDER = ROOT / "docs" / "pictures"
WIDTHS = (40, 80, 200)
_ROWS = 20
_RUN = ("deployment-controller", "replicaset-controller", "serviceaccount-controller")
"""What the workloads of the picture need: each further controller would change the names of its pods."""
_FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's, without fonts from elsewhere."""


def manager(name: str) -> Shown:
    """What was recorded of a manager."""
    first, second = json.loads(gzip.decompress((PLACE / f"{name}.json.gz").read_bytes()))
    before, now = (figures.read(one["metrics"], one["at"]) for one in (first, second))
    view = figures.between(before, now, queue_owners(), second["at"])
    unhealthy = tuple(line for line in second["health"].splitlines() if line.startswith("[-]"))
    return Shown(view, Held("kube-system/kube-controller-manager", second["holder"], 1.1), unhealthy)


@cache
def cluster() -> SandboxState:
    """A sandbox with a Deployment that is well, and three workloads that are not."""

    async def story(world: World) -> SandboxState:
        counts = Counts(world.server.store, world.clock)
        world.manager(only=_RUN)
        await world.clock.sleep(10)
        for name, replicas, more, notes in (
            ("web", 12, {}, {}),
            ("checkout", 3, {}, {"sandbox.kcm.dev/pull-error": "manifest unknown"}),
            ("search", 4, {"resources": {"requests": {"cpu": "24"}}}, {}),
            ("worker", 2, {}, {"sandbox.kcm.dev/run-time": "1s", "sandbox.kcm.dev/exit-code": "1"}),
        ):
            labels: Any = {"app": name}
            container: Any = {"name": "c", "image": f"registry.example.com/{name}:2", **more}
            template: Any = {"metadata": {"labels": labels, "annotations": notes}, "spec": {"containers": [container]}}
            spec: Any = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
            await world.create("apps/v1/deployments", {"metadata": {"name": name}, "spec": spec}, "default")
        await world.clock.sleep(45)
        where = "https://127.0.0.1:6443", "/home/me/kubeconfig"
        return SandboxState(*where, counts.nodes, counts.pods, counts.workloads.unready, counts.events)

    return simulate(3, story, NodeOptions(3))


def pictures() -> dict[str, str]:
    """SVG by the name of its file."""
    found = {}
    for width in WIDTHS:
        for name, title in (("go", "kube-controller-manager"), ("kcm", "kcm")):
            shown = render(manager(name), Look(), width, _ROWS)
            found[f"top-{name}-{width}.svg"] = svg(shown, width, f"kcm top: {title}", f"top-{name}-{width}")
        kcm = manager("kcm")
        own = Shown(kcm.view, None, (), len({row.controller for row in kcm.view.rows if row.controller}))
        found[f"sandbox-{width}.svg"] = svg(
            sandbox(cluster(), own, width, 24), width, "kcm sandbox", f"sandbox-{width}"
        )
    return found


def svg(what: RenderableType, width: int, title: str, name: str) -> str:
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(what)
    return console.export_svg(title=title, theme=SVG_EXPORT_THEME, code_format=_FORMAT, unique_id=name)


def main() -> None:
    for name, text in pictures().items():
        (FOLDER / name).write_text(text)
        print(name, len(text))


if __name__ == "__main__":
    main()
