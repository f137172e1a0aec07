"""Where the sandbox takes the manifests of projects differently from a real kube-apiserver.

    KUBEBUILDER_ASSETS=FOLDER python -m tests.differential.manifests PATH...

A PATH is a YAML or JSON file, a folder that is searched, or a .jsonl file with an object a line. The
CustomResourceDefinitions of a PATH are created on both servers and compared as they are stored; then its other objects
are created and applied with dryRun, and the definitions are deleted again.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from tests.differential.compare import JSON, NAMESPACE, Server
from tests.differential.sameness import Answer, differences
from tests.kit.servers import TOKEN, real_server, sandbox_server

Doc = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = "?dryRun=All&fieldManager=differential"
ENDINGS = (".yaml", ".yml", ".json", ".jsonl")
SERVED_S = 60.0
AT_ONCE = 6


@dataclass
class Found:
    """What came of one PATH."""

    path: Path
    asked: int = 0
    definitions: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, label: str, real: Answer, ours: Answer, doc: object) -> None:
        """Count a request and tell where the answers part."""
        self.asked += 1
        differing = differences(_ordered(real), _ordered(ours), json.dumps(doc))
        if differing:
            self.lines.append("\n    ".join((label, *differing)))


def objects(path: Path) -> Iterator[Doc]:
    """The objects of a file or folder that are whole: templates are left out."""
    files = sorted(one for one in path.rglob("*") if one.suffix in ENDINGS) if path.is_dir() else [path]
    for file in files:
        text = file.read_text(errors="replace")
        if file.suffix == ".jsonl":
            yield from (json.loads(line) for line in text.splitlines() if line)
            continue
        try:
            docs = list(yaml.load_all(text, yaml.CSafeLoader))
            json.dumps(docs)
        except (yaml.YAMLError, TypeError, ValueError):
            continue
        for doc in docs:
            items = doc.get("items") if isinstance(doc, dict) else None
            for one in items if isinstance(items, list) else [doc]:
                if isinstance(one, dict) and isinstance(one.get("metadata"), dict) and "{{" not in json.dumps(one):
                    yield one


class Both:
    """Two servers, asked the same."""

    def __init__(self, real: Server, ours: Server) -> None:
        self._real, self._ours = real, ours
        self._served: dict[tuple[str, str], tuple[str, bool]] = {}

    async def ask(self, method: str, path: str, body: object = None) -> tuple[Answer, Answer]:
        real, ours = await asyncio.gather(self._real.ask(method, path, body), self._ours.ask(method, path, body))
        return real, ours

    async def define(self, docs: list[Doc], found: Found) -> set[str]:
        """Create definitions; the names of those that both have."""
        there: set[str] = set()
        for doc in docs:
            name = str(doc["metadata"].get("name"))
            label = f"CustomResourceDefinition {name}"
            if name in there:
                await self._until(partial(_serves, name))
                real, ours = await self._replace(doc, name)
                found.add(f"{label}, replaced", real, ours, doc)
                continue
            real, ours = await self.ask("POST", f"{CRDS}?fieldManager=differential", doc)
            found.add(f"{label}, created", real, ours, doc)
            if real.status == ours.status == 201:
                there.add(name)
        found.definitions += len(there)
        await self._until(lambda served: all(served.get(name) for name in there))
        for name in sorted(there):
            real, ours = await self.ask("GET", f"{CRDS}/{name}")
            for answer in (real, ours):
                _settle(answer.body)
            found.add(f"CustomResourceDefinition {name}, stored", real, ours, None)
        return there

    async def _replace(self, doc: Doc, name: str) -> tuple[Answer, Answer]:
        answers = []
        for server in (self._real, self._ours):
            old = (await server.ask("GET", f"{CRDS}/{name}")).body
            version = old["metadata"]["resourceVersion"]
            body = {**doc, "metadata": {**doc["metadata"], "resourceVersion": version}}
            answer = await server.ask("PUT", f"{CRDS}/{name}{DRY}", body)
            _settle(answer.body)
            answers.append(answer)
        return answers[0], answers[1]

    async def undefine(self, names: set[str]) -> None:
        for name in names:
            await self.ask("DELETE", f"{CRDS}/{name}")
        await self._until(lambda served: not names & served.keys())

    async def _until(self, good: Callable[[dict[str, bool]], bool]) -> None:
        """Wait until both servers have the definitions that are asked for: by name, whether they are established."""
        for server in (self._real, self._ours):
            until = time.monotonic() + SERVED_S
            while time.monotonic() < until:
                items = (await server.ask("GET", CRDS)).body["items"]
                if good({one["metadata"]["name"]: _established(one) for one in items}):
                    break
                await asyncio.sleep(0.2)

    async def served(self, version: str, kind: str) -> tuple[str, bool] | None:
        """The path of a kind's resource, and whether it has namespaces; None for one that the real server lacks."""
        key = (version, kind)
        if key not in self._served:
            base = f"/apis/{version}" if "/" in version else f"/api/{version}"
            body = (await self._real.ask("GET", base)).body
            for one in body.get("resources", ()) if isinstance(body, Mapping) else ():
                if "/" not in one["name"]:
                    self._served[(version, one["kind"])] = (f"{base}/{one['name']}", one["namespaced"])
        return self._served.get(key)

    def forget(self) -> None:
        self._served.clear()

    async def try_one(self, doc: Doc, found: Found) -> None:
        """Create and apply an object, with dryRun."""
        version, kind = str(doc.get("apiVersion")), str(doc.get("kind"))
        served = await self.served(version, kind)
        if served is None:
            return
        path, namespaced = served
        name = doc["metadata"].get("name") or ""
        if namespaced:
            folder, _, plural = path.rpartition("/")
            path = f"{folder}/namespaces/{NAMESPACE}/{plural}"
            doc = {**doc, "metadata": {**doc["metadata"], "namespace": NAMESPACE}}
        label = f"{version} {kind} {name}"
        real, ours = await self.ask("POST", f"{path}{DRY}&fieldValidation=Warn", doc)
        found.add(f"{label}, created", real, ours, doc)
        if real.warnings:
            real, ours = await self.ask("POST", f"{path}{DRY}&fieldValidation=Strict", doc)
            found.add(f"{label}, created strictly", real, ours, doc)
        if isinstance(name, str) and name and "/" not in name:
            real, ours = await self.ask("APPLY", f"{path}/{name}{DRY}&force=true", doc)
            found.add(f"{label}, applied", real, ours, doc)


def _ordered(answer: Answer) -> Answer:
    """With what a server says in any order (a Go map's) in one order."""
    body = answer.body
    if not isinstance(body, dict):
        return answer
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        metadata.get("managedFields", []).sort(key=lambda one: str(one.get("subresource")))
        if "generateName" in metadata and answer.status < HTTPStatus.BAD_REQUEST:
            body = json.loads(json.dumps(body).replace(metadata["name"], "<generated>"))
    if body.get("kind") == "Status" and body.get("apiVersion") == "v1":
        causes = (body.get("details") or {}).get("causes")
        if isinstance(causes, list):
            causes.sort(key=lambda one: (str(one.get("field")), str(one.get("message"))))
        body = {
            **body,
            "message": sorted(re.split(r", |\n|(?<= invalid): ", re.sub(r"[\[\]]", "", str(body.get("message"))))),
        }
    return Answer(answer.status, answer.warnings, body)


def _serves(name: str, served: Mapping[str, bool]) -> bool:
    return bool(served.get(name))


def _established(definition: Any) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _settle(body: Any) -> None:
    """Take away what depends on the moment."""
    status = body.get("status") if isinstance(body, dict) else None
    if isinstance(status, dict):
        conditions = status.get("conditions") or []
        conditions.sort(key=lambda one: one["type"])
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if isinstance(metadata, dict):
        metadata.pop("generation", None)
        for entry in metadata.get("managedFields") or ():
            if entry.get("subresource") == "status":
                entry["fieldsV1"] = entry["manager"] = None


async def compare(both: Both, path: Path, share: int) -> Found:
    found = Found(path)
    docs = [one.get("doc", one) for one in objects(path)]
    definitions = [one for one in docs if one.get("kind") == "CustomResourceDefinition"]
    others = [one for one in docs if one.get("kind") != "CustomResourceDefinition"][::share]
    there = await both.define([one for one in definitions if one.get("apiVersion") == "apiextensions.k8s.io/v1"], found)
    both.forget()
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(doc: Doc) -> None:
        async with turn:
            await both.try_one(doc, found)

    try:
        await asyncio.gather(*(one(doc) for doc in others))
    finally:
        await both.undefine(there)
    return found


class Patching(Server):
    """Sends ``APPLY`` as the patch that it is."""

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        query: str = "",
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Answer:
        if method == "APPLY":
            method, content_type = "PATCH", "application/apply-patch+yaml"
        return await super().ask(method, path, body, query, content_type, accept)


@asynccontextmanager
async def connected(real: str, ours: str) -> AsyncIterator[Both]:
    async with Patching(real, TOKEN) as one, Patching(ours, TOKEN) as other:
        both = Both(one, other)
        await both.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = {"metadata": {"name": "default"}}
        await both.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        yield both


async def run(real: str, ours: str, paths: list[Path], share: int, output: Path) -> None:
    with output.open("w") as file:
        async with connected(real, ours) as both:
            for path in paths:
                start = time.monotonic()
                found = await compare(both, path, share)
                took = time.monotonic() - start
                text = (
                    f"{path.name}: {found.definitions} definitions, {found.asked} requests, {len(found.lines)} differ"
                )
                print(f"{text}, {took:.0f} s", flush=True)
                file.write(f"# {path}\n" + "".join(f"{line}\n\n" for line in found.lines))
                file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assets", type=Path, default=os.environ.get("KUBEBUILDER_ASSETS"))
    parser.add_argument("--every", type=int, default=1, help="of so many objects try one; definitions are all tried")
    parser.add_argument("--output", type=Path, default=Path("differences.txt"))
    parser.add_argument("paths", nargs="+", type=Path)
    args = parser.parse_args()
    if args.assets is None or not (Path(args.assets) / "kube-apiserver").exists():
        parser.error("--assets (or KUBEBUILDER_ASSETS) must name a folder with kube-apiserver and etcd")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(real_server(Path(args.assets), folder))
        ours = stack.enter_context(sandbox_server(folder))
        asyncio.run(run(real, ours, args.paths, args.every, args.output))
    print(f"every difference: {args.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
