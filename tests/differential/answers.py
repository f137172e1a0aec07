"""What a sandbox answers to every variation, kept as data: a change of structure must not change an answer.

    python -m tests.differential.answers            # where the answers differ from those that are recorded
    python -m tests.differential.answers --write    # record them anew, where an answer was meant to change

Beside the variations (see ``compare``), each object is shown as a table, selected by fields, and applied by the
server. An answer is kept as a digest of its code, warnings and body without what is random; those that differ
are printed, and ``--show`` prints one, to be compared with what an older commit prints.
"""

import argparse
import asyncio
import hashlib
import json
import random
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.differential.bases import Base, changed, load
from tests.differential.compare import NAMESPACE
from tests.differential.sameness import Answer, masked, stable
from tests.differential.variations import Schemas, Tree, Variation
from tests.kit.embedded import EmbeddedServer
from tests.kit.simulation import EPOCH

RECORDED = Path(__file__).parents[1] / "recorded" / "answers.json"
DIGITS = 8
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_SELECTED = ("metadata.name=x", "metadata.namespace=x", "spec.nodeName=x", "status.phase=x", "type=x", "reason=x")
_APPLY = "?fieldManager=one&force=true&dryRun=All"

Recorded = dict[str, dict[str, str]]
"""Base -> label -> digest."""


_SCHEMAS: dict[tuple[str, str], Tree] = {}
"""By version, and what the base sets up: that may define custom resources."""


@cache
def _certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


class Sandbox:
    """An API server in this process, on virtual time and seeded: the same requests get the same answers."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self._server = EmbeddedServer(LoopClock(EPOCH), self._random, _certificates())

    async def start(self) -> None:
        await self._server.start()
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await self.ask("POST", "/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "default"}})

    async def ask(
        self, method: str, target: str, body: object = None, accept: str = "application/json", sent: str = ""
    ) -> Answer:
        path, _, query = target.replace("{ns}", NAMESPACE).partition("?")
        pairs = tuple((key, value) for key, _, value in (part.partition("=") for part in query.split("&") if part))
        headers = {"content-type": sent or "application/json", "accept": accept, "user-agent": "differential"}
        data = b"" if body is None else json.dumps(body).encode()
        self._random.seed(f"{method} {target} {data!r}")  # addresses do not depend on what was asked before
        answer = await self._server.transport().send(Request(method, path, pairs, headers, data))
        warnings = tuple(value for name, value in _headers(answer.headers) if name.lower() == "warning")
        return Answer(answer.status, warnings, _document(answer.body))

    async def variations(self, base: Base, doc: Tree) -> list[Variation]:
        version = base.body["apiVersion"]
        served = (version, json.dumps(base.setup))
        if served not in _SCHEMAS:
            path = f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}"
            _SCHEMAS[served] = (await self.ask("GET", path)).body["components"]["schemas"]
        schemas = Schemas(_SCHEMAS[served], (*base.untouched, "metadata.managedFields*", "metadata.resourceVersion"))
        return list(schemas.variations(schemas.of_kind(version, base.kind), doc))


def _headers(headers: Any) -> Iterator[tuple[str, str]]:
    yield from headers.items() if isinstance(headers, Mapping) else headers


def _document(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode(errors="replace")


async def answers(base: Base, share: float = 1.0) -> AsyncIterator[tuple[str, Answer, str]]:
    """Everything that is asked of a fresh server about one base: label, answer, the request's text.

    ``share``: of the variations, evenly taken; their labels do not depend on it.
    """
    server = Sandbox()
    await server.start()
    for step in base.setup:
        await server.ask(step["method"], step["path"], step.get("body"))
    body, text = base.body, json.dumps(base.body)
    tried = [("as it is", body), *((f"also {change}", changed(body, change)) for change in base.also)]
    tried += [(label, one.applied(body)) for label, one in _taken(await server.variations(base, body), share)]
    for label, doc in tried:
        yield f"create {label}", await server.ask("POST", f"{base.path}?dryRun=All", doc), f"{text} {label}"
    if base.kind.endswith("Review"):
        return
    made = await server.ask("POST", base.path, body)
    yield "created", made, text
    if made.status != 201:
        return
    item = f"{base.path}/{made.body['metadata']['name']}"
    for step in base.then:
        await server.ask(step["method"], step["path"], step.get("body"))
    await asyncio.sleep(base.wait)
    async for label, answer in _shown(server, base, item):
        yield label, answer, text
    shown = (await server.ask("GET", item)).body
    for of_status in (False, True):
        async for label, answer in _replaced(server, base, item, shown, of_status, share):
            yield label, answer, f"{text} {label}"


async def _shown(server: Sandbox, base: Base, item: str) -> AsyncIterator[tuple[str, Answer]]:
    yield "table", await server.ask("GET", item, accept=_TABLE)
    yield "table of the list", await server.ask("GET", base.path, accept=_TABLE)
    for selector in _SELECTED:
        yield f"selected by {selector}", await server.ask("GET", f"{base.path}?fieldSelector={selector}")
    body = {**base.body, "metadata": {**base.body.get("metadata", {}), "name": item.rsplit("/", 1)[1]}}
    for path, doc in ((item, body), (f"{item}/status", {**body, "status": base.status or {}})):
        answer = await server.ask("PATCH", f"{path}{_APPLY}", doc, sent="application/apply-patch+yaml")
        yield f"applied to {path.removeprefix(base.path)}", answer


async def _replaced(
    server: Sandbox, base: Base, item: str, shown: Tree, of_status: bool, share: float
) -> AsyncIterator[tuple[str, Answer]]:
    doc = {**shown, "status": base.status or {}} if of_status else shown
    found = _taken(await server.variations(base, doc), share)
    tried = [(label, one.applied(doc)) for label, one in found if not of_status or one.path[:1] == ("status",)]
    tried += [(f"also {change}", changed(doc, change)) for change in (base.statuses if of_status else base.updates)]
    path, verb = (f"{item}/status", "status") if of_status else (item, "update")
    for label, changed_doc in [("as it is", doc), *tried]:
        yield f"{verb} {label}", await server.ask("PUT", f"{path}?dryRun=All", changed_doc)


def _taken(found: list[Variation], share: float) -> list[tuple[str, Variation]]:
    """A part of the variations, by labels that are unique: texts of variations are cut short."""
    labelled: dict[str, Variation] = {}
    for one in found:
        label = str(one)
        while label in labelled:
            label += " (another)"
        labelled[label] = one
    return [one for index, one in enumerate(labelled.items()) if int((index + 1) * share) > int(index * share)]


def digest(answer: Answer, asked: str) -> str:
    """An answer in few letters."""
    parts = [answer.status, [*map(stable, answer.warnings)], masked(answer.body, asked)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:DIGITS]


def label_digest(label: str) -> str:
    """A label in few letters: they are long and many."""
    return hashlib.sha256(label.encode()).hexdigest()[:DIGITS]


async def _differing(
    base: Base, known: Mapping[str, str], share: float, show: bool
) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    lines = []
    async for label, answer, asked in answers(base, share):
        key, value = label_digest(label), digest(answer, asked)
        found[key] = value
        if known.get(key) != value:
            lines.append(f"{base.name}: {label}")
            if show:
                lines.append(json.dumps([answer.status, answer.warnings, masked(answer.body, asked)], sort_keys=True))
    return found, lines


def compare(patterns: tuple[str, ...] = ("*",), share: float = 1.0, show: bool = False) -> tuple[Recorded, list[str]]:
    """The answers now, and a line for each that is not as recorded."""
    known = read()
    now: Recorded = {}
    lines: list[str] = []
    for base in load(patterns):
        now[base.name], differing = virtual.run(_differing(base, known.get(base.name, {}), share, show))
        lines += differing
    return now, lines


def read() -> Recorded:
    """What is recorded; each base's digests stand in one text, labels and answers in turn."""
    if not RECORDED.exists():
        return {}
    texts = json.loads(RECORDED.read_text())
    width = 2 * DIGITS
    return {
        name: {text[at : at + DIGITS]: text[at + DIGITS : at + width] for at in range(0, len(text), width)}
        for name, text in texts.items()
    }


def write(recorded: Recorded) -> None:
    texts = {name: "".join(key + value for key, value in found.items()) for name, found in recorded.items()}
    RECORDED.write_text(json.dumps(texts, indent=0) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("objects", nargs="*", default=["*"], help="names or patterns: core/secret, net/*")
    args = parser.parse_args()
    now, lines = compare(tuple(args.objects), show=args.show)
    print("\n".join(lines))
    print(f"{sum(map(len, now.values()))} answers, {len(lines)} differ", file=sys.stderr)
    if args.write:
        write({**read(), **now})
    elif lines:
        sys.exit(1)


if __name__ == "__main__":
    main()
