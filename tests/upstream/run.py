"""Run upstream's integration tests, built beforehand, with kcm in the place of Go's controllers; see README.md.

make upstream SUITE=job [ONLY='TestSuspendJob$']
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.processes import Processes, ask, free_port, until
from tests.upstream.results import cases, skipping, table

HERE = Path(__file__).resolve().parent
FOLDER = "UPSTREAM_TESTS"
TIMEOUT = "60m"
START_S = 30.0


@contextmanager
def etcd(logs: Path) -> Iterator[str]:
    """An etcd of its own; its address."""
    address, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    with tempfile.TemporaryDirectory() as data, Processes() as processes:
        options = ["--data-dir", data, "--log-level", "error", "--listen-peer-urls", peers]
        options += ["--listen-client-urls", address, "--advertise-client-urls", address]
        processes.start(os.environ.get("ETCD", "etcd"), *options, log=logs / "etcd.log")
        until(lambda: ask(f"{address}/health").status == 200, START_S)
        yield address


def run(folder: Path, suite: str, only: str) -> int:
    """Print the table of a suite; how many of its cases failed."""
    name = suite.replace("/", "_")
    logs = folder / "out" / name
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / "test.log"
    reasons = json.loads((HERE / "not_applicable.json").read_text()).get(suite, {})
    with etcd(logs) as address, log.open("wb") as out:
        environment = {
            **os.environ,
            "KUBE_INTEGRATION_ETCD_URL": address,
            "TEST_SRCDIR": str(folder),
            "TEST_WORKSPACE": "src",
            "KCM_PYTHON": sys.executable,
            "KCM_LAUNCHER": str(HERE / "launcher.py"),
            "KCM_LOGS": str(logs),
        }
        place = folder / "src" / "k8s.io" / "kubernetes" / "test" / "integration" / suite
        command = [str(folder / "bin" / f"kcm-{name}.test"), "-test.v", "-test.timeout", TIMEOUT, "-test.run", only]
        if reasons:
            command += ["-test.skip", skipping(reasons)]
        subprocess.run(command, cwd=place, env=environment, stdout=out, stderr=subprocess.STDOUT, check=False)
    with log.open(errors="replace") as lines:
        found = cases(lines)
    text, failed = table(found, reasons)
    print(*text, f"{suite}: {log}", sep="\n")
    return failed if found else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", nargs="+", help="a folder of upstream's test/integration, such as job or dra/all")
    parser.add_argument("--only", default=".", help="regular expression of tests")
    arguments = parser.parse_args()
    if not os.environ.get(FOLDER):
        print(f"skipped: {FOLDER} does not name a folder of upstream's tests (tests/upstream/README.md)")
        return 0
    folder = Path(os.environ[FOLDER]).resolve()
    return 1 if sum(run(folder, suite, arguments.only) for suite in arguments.suite) else 0


if __name__ == "__main__":
    sys.exit(main())
