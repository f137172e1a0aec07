"""Controllers of installed packages: those that docs/controllers.md shows."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcm_cli.manager import controller_map, options
from tests.kit.places import ROOT

TEAM_LABELS, WIDGET_OWNER = re.findall(
    r"```python\n(\"\"\"[a-z-]+-controller: .*?)```", (ROOT / "docs" / "controllers.md").read_text(), re.DOTALL
)
Install = Callable[..., None]


def forget() -> None:
    for known in (controller_map.installed, options.controller_options, options.bindings, options.flag_set):
        known.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs modules with an entry point each: their names and texts."""

    def installed(**modules: str) -> None:
        info = tmp_path / "teams-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: teams\nVersion: 1\n")
        points = "".join(f"{name} = {name}:DESCRIPTOR\n" for name in modules)
        (info / "entry_points.txt").write_text(f"[{controller_map.GROUP}]\n{points}")
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        forget()

    yield installed
    monkeypatch.undo()
    forget()
