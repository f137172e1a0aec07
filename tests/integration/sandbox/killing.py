"""``python -m tests.integration.sandbox.killing DIRECTORY TIMES``: a child writes to a store, is killed at a random
moment, and its successor finds what was acknowledged. A program of its own, for it forks.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.store import SqliteJournal, Store

THINGS = GVR("x.test", "v1", "things")
NAMES = [f"n{number}" for number in range(5)]
State = dict[str, tuple[int, int]]
"""Version and content by name."""


def state_of(store: Store) -> State:
    return {stored.name: (stored.revision, int(str(stored.doc["x"]))) for stored in store.list(THINGS)}


def write(store: Store, rng: random.Random, report: int) -> None:
    """One write, recorded before (what is tried) and after (what is acknowledged)."""
    name, content = rng.choice(NAMES), rng.randrange(10**6)
    there = name in state_of(store)
    verb = "create" if not there else rng.choice(["update", "update", "delete"])
    doc: codec.Doc = {"metadata": {"name": name}, "x": content, "padding": "x" * rng.choice([0, 100, 20_000])}
    os.write(report, codec.encode([verb, name, content]) + b"\n")
    if verb == "delete":
        store.delete(THINGS, "", name)
    elif verb == "create":
        store.create(THINGS, "", name, doc)
    else:
        store.update(THINGS, "", name, doc)
    os.write(report, codec.encode([store.revision]) + b"\n")


def child(directory: Path, seed: int, report: int) -> None:
    """Write until killed."""
    store, rng = Store(SqliteJournal(directory)), random.Random(seed)
    os.write(report, b"[]\n")
    while True:
        write(store, rng, report)


def live_and_die(directory: Path, seed: int) -> list[list[object]]:
    """What a child recorded before it was killed."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        child(directory, seed, writer)
    os.close(writer)
    output = os.read(reader, 3)
    time.sleep(random.Random(seed).uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    while chunk := os.read(reader, 65536):
        output += chunk
    os.close(reader)
    os.waitpid(pid, 0)
    return [codec.decode(line, list[object]) for line in output.splitlines(keepends=True)[1:] if line.endswith(b"\n")]


def after(state: State, revision: int, trying: list[object]) -> State:
    """The state with a write applied."""
    verb, name, content = str(trying[0]), str(trying[1]), int(str(trying[2]))
    rest = {key: value for key, value in state.items() if key != name}
    return rest if verb == "delete" else {**rest, name: (revision, content)}


def main() -> None:
    directory, times = Path(sys.argv[1]), int(sys.argv[2])
    state: State = {}
    revision, writes, halves = 1, 0, 0
    for seed in range(times):
        output = live_and_die(directory, seed)
        trying: list[object] = []
        for line in output:
            if len(line) == 1:
                state, revision = after(state, int(str(line[0])), trying), int(str(line[0]))
                writes += 1
                trying = []
            else:
                trying = line
        store = Store(SqliteJournal(directory))
        if trying and store.revision == revision + 1:
            state, revision, halves = after(state, revision + 1, trying), revision + 1, halves + 1
        assert (store.revision, state_of(store)) == (revision, state), f"after kill {seed}"
        store.close()
    print(f"{times} kills, {writes} acknowledged writes, {halves} that were kept without")


if __name__ == "__main__":
    main()
