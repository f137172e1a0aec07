"""All operators of this folder, with their bugs and without: how many bugs are found, and how many others.

python -m tests.perturb.run                   each operator once
python -m tests.perturb.run --runs 100        the correct ones so often, in another order each time
python -m tests.perturb.run --jobs 6          so many of these passes at once, for they mostly wait
python -m tests.perturb.run --correct         no bugs
python -m tests.perturb.run --seed 7          of the first of these passes; each further one has the next
python -m tests.perturb.run --only NAME -v    one, with its stories
"""

import argparse
import logging
import multiprocessing
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from kcm_cli.testing import Sandbox
from kcm_cli.testing.perturb.campaign import each, perturb
from kcm_cli.testing.perturb.points import ALL_KINDS
from tests.perturb import asyncio_operators, kopf_operators, lightkube_operators, plain_operators
from tests.perturb.kit import OPTIONS, Case

CASES: dict[str, Case] = {
    case.name: case
    for module in (kopf_operators, lightkube_operators, asyncio_operators, plain_operators)
    for case in module.CASES
}
CORRECT: dict[str, Case] = CASES | {case.name: case for case in kopf_operators.FLAWS}
"""Those that have a correct form: what kopf loses by itself is no bug of an operator, but can be avoided."""


def bugs(sandbox: Sandbox, chosen: Sequence[str], *, stories: bool) -> int:
    """Perturb the operators with their bugs; how many of them are found."""
    found = 0
    for name in chosen:
        case, began = CASES[name], time.monotonic()
        findings = perturb(sandbox, case.scenario(True), kinds=ALL_KINDS, enough=1)
        found += bool(findings)
        what = str(findings[0].point) if findings else "NOT FOUND"
        print(f"{name:22} {case.client:18} {time.monotonic() - began:4.0f} s  {what}", flush=True)
        for finding in findings if stories else ():
            print(finding.story)
    print(f"{found} bugs of {len(chosen)} found")
    return found


@dataclass(frozen=True, slots=True)
class Pass:
    """All correct operators at all their points, once."""

    points: int
    reports: int


def correct(chosen: Sequence[str], seed: int, *, stories: bool) -> Pass:
    """Perturb the correct operators, in an order that follows from the seed."""
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    points = reports = 0
    with Sandbox(OPTIONS) as sandbox:
        for name in random.Random(seed).sample(list(chosen), len(chosen)):
            outcomes = list(each(sandbox, CORRECT[name].scenario(False), seed=seed))
            wrong = [one for one in outcomes if one.story]
            points, reports = points + len(outcomes), reports + len(wrong)
            if wrong or stories:
                client = CORRECT[name].client
                print(f"{name:22} {client:18} {len(outcomes):5} points  {len(wrong)} reports, seed {seed}")
            for finding in wrong:
                print(finding.story)
    took = time.monotonic() - began
    print(f"seed {seed}: {len(chosen)} operators, {points} points, {reports} reports, {took:.0f} s", flush=True)
    return Pass(points, reports)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1, help="passes of the correct operators, at all their points")
    parser.add_argument("--jobs", type=int, default=1, help="passes at a time")
    parser.add_argument("--seed", type=int, default=0, help="of the first pass")
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--correct", action="store_true", help="leave those with bugs out")
    parser.add_argument("-v", action="store_true", dest="stories")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    chosen = args.only or list(CASES)
    enough = args.correct
    if not enough:
        with Sandbox(OPTIONS) as sandbox:
            enough = bugs(sandbox, chosen, stories=args.stories) >= 0.75 * len(chosen)
    seeds = range(args.seed, args.seed + args.runs)
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        passes = list(pool.map(partial(correct, args.only or list(CORRECT), stories=args.stories), seeds))
    reports, clean = sum(one.reports for one in passes), sum(not one.reports for one in passes)
    points = sum(one.points for one in passes)
    print(f"{len(passes)} passes, {clean} clean: {reports} reports at {points} points")
    return 1 if reports or not enough else 0


if __name__ == "__main__":
    sys.exit(main())
