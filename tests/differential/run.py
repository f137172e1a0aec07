"""Where the sandbox answers differently from a real kube-apiserver: a table, and a file with every difference.

    KUBEBUILDER_ASSETS=FOLDER make compare ARGS="--mode update 'core/*' net/service"

FOLDER has kube-apiserver and etcd.

Every object of ``objects/`` is created, replaced or given a status in many variations (one field dropped, emptied
or set to something odd), on both servers with dryRun. In mode patch it is changed at random, by applies of several
managers and by patches; in mode protobuf it is created from the protobuf of both servers.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.differential.bases import load
from tests.differential.compare import MODES, Pair, Server, Tally
from tests.kit.servers import TOKEN, real_server, sandbox_server


async def compare(
    real: str, ours: str, mode: str, patterns: tuple[str, ...], share: float = 1.0, seed: int = 0
) -> list[Tally]:
    """Compare two running servers, which know the same token."""
    tallies = []
    async with Server(real, TOKEN) as one, Server(ours, TOKEN) as other:
        pair = Pair(one, other, f"-{int(time.time()) % 1_000_000:x}", seed)
        await pair.prepare()
        for base in load(patterns):
            tallies.append(await pair.compare(base, mode, share))
            print(f"\r{base.name:<60}", end="", file=sys.stderr, flush=True)
    print(f"\r{'':<60}\r", end="", file=sys.stderr)
    return tallies


def table(tallies: list[Tally]) -> Table:
    """A row for each object in which the servers differ, and one for all."""
    made = Table("object", "kind", "asked", "differ", "equal")
    for tally in tallies:
        if tally.found or tally.refused:
            made.add_row(tally.base.name, tally.base.kind, str(tally.asked), str(len(tally.found)), _share(tally))
    made.add_section()
    asked, differ = sum(one.asked for one in tallies), sum(len(one.found) for one in tallies)
    made.add_row("all", "", str(asked), str(differ), f"{(asked - differ) / max(asked, 1):.1%}")
    return made


def _share(tally: Tally) -> str:
    return tally.refused or f"{1 - len(tally.found) / tally.asked:.1%}"


def report(tallies: list[Tally]) -> str:
    """Every difference, under its object."""
    return "".join(f"# {one.base.name}\n{found}\n\n" for one in tallies for found in one.found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assets", type=Path, default=os.environ.get("KUBEBUILDER_ASSETS") or None)
    parser.add_argument("--mode", choices=MODES, default="create")
    parser.add_argument("--share", type=float, default=1.0, help="of the variations")
    parser.add_argument("--seed", type=int, default=0, help="of the random changes in mode patch")
    parser.add_argument("--output", type=Path, default=Path("differences.txt"))
    parser.add_argument("objects", nargs="*", default=["*"], help="names or patterns: core/secret, net/*")
    args = parser.parse_args()
    if args.assets is None or not (args.assets / "kube-apiserver").exists():
        parser.error("--assets (or KUBEBUILDER_ASSETS) must name a folder with kube-apiserver and etcd")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(real_server(args.assets, folder))
        ours = stack.enter_context(sandbox_server(folder))
        tallies = asyncio.run(compare(real, ours, args.mode, tuple(args.objects), args.share, args.seed))
    Console().print(table(tallies))
    args.output.write_text(report(tallies))
    print(f"every difference: {args.output}")


if __name__ == "__main__":
    main()
