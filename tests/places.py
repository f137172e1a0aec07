"""Where things are that tests read."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("KCM_SHARED", ROOT.parent / "shared"))
"""Recorded facts and behaviour of the original; beside the project in development and CI, users do not have them."""
REFERENCE = SHARED / "reference"
GOLDEN = SHARED / "golden"
