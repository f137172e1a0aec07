"""All operators of this folder, with their bugs and without: how many bugs are found, and how many others.

python -m tests.perturb.run                   each operator once
python -m tests.perturb.run --runs 100        the correct ones so often
python -m tests.perturb.run --correct         no bugs
python -m tests.perturb.run --only NAME -v    one, with its stories
"""

import argparse
import logging
import sys
import time

from kcm_cli.testing import Sandbox
from kcm_cli.testing.perturb.campaign import Finding, each, perturb
from tests.perturb import asyncio_operators, kopf_operators, lightkube_operators, plain_operators
from tests.perturb.kit import OPTIONS, Case

CASES: dict[str, Case] = {
    case.name: case
    for module in (kopf_operators, lightkube_operators, asyncio_operators, plain_operators)
    for case in module.CASES
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1, help="of each correct operator, at all its points")
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--correct", action="store_true")
    parser.add_argument("-v", action="store_true", dest="stories")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = false = points = 0
    chosen = args.only or list(CASES)
    with Sandbox(OPTIONS) as sandbox:
        for name in chosen:
            case, began = CASES[name], time.monotonic()
            bugs = [] if args.correct else perturb(sandbox, case.scenario(True), enough=1)
            stood = [one for _ in range(args.runs) for one in each(sandbox, case.scenario(False))]
            wrong = [one for one in stood if isinstance(one, Finding)]
            found, false, points = found + bool(bugs), false + len(wrong), points + len(stood)
            what = str(bugs[0].point) if bugs else "" if args.correct else "NOT FOUND"
            took = time.monotonic() - began
            counted = f"{len(stood):5} points  {len(wrong)} false"
            print(f"{name:22} {case.client:18} {counted}  {took:4.0f} s  {what}", flush=True)
            for finding in [*(bugs if args.stories else ()), *wrong]:
                print(finding.story)
    print(f"{found} bugs of {0 if args.correct else len(chosen)} found, {false} false reports at {points} points")
    return 1 if false or (not args.correct and found < 0.75 * len(chosen)) else 0


if __name__ == "__main__":
    sys.exit(main())
