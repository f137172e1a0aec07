"""Puts the commit into the wheel, for ``kcm --version=raw`` and kubernetes_build_info."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Commit(BuildHookInterface):
    """Writes ``kcm_cli/commit.txt`` of a wheel: KCM_COMMIT, or git's HEAD. Without both there is no such file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        commit = os.environ.get("KCM_COMMIT", "") or self._head()
        if version == "editable" or not commit:
            return
        file = Path(self.directory) / "commit.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{commit}\n")
        build_data["force_include"][str(file)] = "kcm_cli/commit.txt"

    def _head(self) -> str:
        try:
            done = subprocess.run(["git", "-C", self.root, "rev-parse", "HEAD"], capture_output=True, text=True)
        except FileNotFoundError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""
