"""``python -m tests.unit.sandbox.fuzz.run --seconds 600``: random requests for that time; prints each failure once."""

import argparse
import random
import sys
import time
import traceback
from datetime import UTC, datetime

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.unit.sandbox.fuzz.cluster import Cluster, Failed
from tests.unit.sandbox.fuzz.mutations import Tape
from tests.unit.sandbox.fuzz.scenarios import SCENARIOS

LENGTH = 120
FRESH = 500
"""So many goes a server gets before a new one is made."""


def main() -> int:
    """Returns the exit code: 1 after failures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    certificates = Certificates.load(None, datetime.now(UTC))
    rng, end, found, count = random.Random(options.seed), time.monotonic() + options.seconds, set(), 0
    cluster = None
    while time.monotonic() < end:
        if cluster is None or count % FRESH == 0:
            if cluster is not None:
                cluster.close()
            cluster = Cluster(certificates)
        count += 1
        scenario, data = rng.choice(SCENARIOS), rng.randbytes(LENGTH)
        start = time.monotonic()
        try:
            scenario(cluster, Tape(data))
        except Exception as error:  # noqa: BLE001 - each kind of failure is shown once
            cause = error.__cause__ if isinstance(error, Failed) and error.__cause__ else error
            last = traceback.extract_tb(cause.__traceback__)[-1]
            key = (type(cause).__name__, last.filename, last.name, last.line)
            if key not in found:
                found.add(key)
                print(f"=== {scenario.__name__} {data.hex()}\n{str(error)[:3000]}")
                traceback.print_exception(cause, limit=-8, file=sys.stdout)
                sys.stdout.flush()
        if time.monotonic() - start > 1:
            print(f"=== slow {time.monotonic() - start:.1f} s: {scenario.__name__} {data.hex()}", flush=True)
    print(f"{count} goes, {len(found)} kinds of failure")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
