"""Where things are that tests read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDED = ROOT / "tests" / "recorded"
"""Facts and behaviour recorded from kube-controller-manager and kube-apiserver v1.36."""
REFERENCE = RECORDED / "reference"
GOLDEN = RECORDED / "golden"
API_CASES = RECORDED / "apicases"
