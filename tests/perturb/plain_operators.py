"""Small operators on the official client, synchronous and in real time, each with one bug that can be left out."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import kubernetes
import urllib3

from tests.perturb.kit import (
    GROUP,
    PLURAL,
    SPACE,
    Case,
    Tree,
    adds_another,
    changes,
    config_map,
    core,
    ends,
    gives_up,
    keeps,
    makes_again,
    starts,
)

Refused = kubernetes.client.ApiException
FAILED = (Refused, urllib3.exceptions.HTTPError, OSError)


class Cluster:
    """Widgets and ConfigMaps."""

    def __init__(self, kubeconfig: str, stop: threading.Event) -> None:
        self.core = core(kubeconfig)
        self.custom = kubernetes.client.CustomObjectsApi(self.core.api_client)
        self.stop = stop

    def widgets(self, **options: str) -> Tree:
        return self.custom.list_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL, **options)

    def watch(self, version: str) -> Iterator[tuple[str, Tree]]:
        """What changes; ends with the watch. Errors are events of type ERROR, as the server sends them."""
        stream = kubernetes.watch.Watch()
        options = {"resource_version": version, "timeout_seconds": 3600, "_request_timeout": (5, 60)}
        for event in stream.stream(self.custom.list_namespaced_custom_object, GROUP, "v1", SPACE, PLURAL, **options):
            yield event["type"], event["object"]
            if self.stop.is_set():
                return

    def create_once(self, body: Tree) -> None:
        try:
            self.core.create_namespaced_config_map(SPACE, body)
        except Refused as error:
            if error.status != 409:
                raise

    def delete_once(self, name: str) -> None:
        try:
            self.core.delete_namespaced_config_map(name, SPACE)
        except Refused as error:
            if error.status != 404:
                raise


def program(handle: Callable[[Cluster, bool], None]) -> Callable[[bool], Any]:
    """``handle(cluster, buggy)`` is restarted when it ends or fails."""

    def make(buggy: bool) -> Any:
        def main(kubeconfig: str, stop: threading.Event) -> None:
            cluster = Cluster(kubeconfig, stop)
            while not stop.wait(0.02):
                try:
                    handle(cluster, buggy)
                except FAILED:
                    continue

        return main

    return make


def each(cluster: Cluster) -> Iterator[tuple[str, Tree]]:
    """What is there, then what changes."""
    found = cluster.widgets()
    for widget in found["items"]:
        yield "LISTED", widget
    yield from cluster.watch(found["metadata"]["resourceVersion"])


def name_of(widget: Tree) -> str:
    return str(widget["metadata"]["name"])


@program
def stops_watching(cluster: Cluster, buggy: bool) -> None:
    """A watch that is too old ends all watching."""
    try:
        for kind, widget in each(cluster):
            if kind != "DELETED":
                text = widget["spec"]["text"]
                cluster.create_once(config_map(name_of(widget), text=text))
                cluster.core.patch_namespaced_config_map(name_of(widget), SPACE, {"data": {"text": text}})
    except Refused as error:
        if buggy and error.status == 410:
            cluster.stop.wait()


@program
def retries_creation(cluster: Cluster, buggy: bool) -> None:
    for kind, widget in each(cluster):
        if kind == "DELETED":
            continue
        known = cluster.core.list_namespaced_config_map(SPACE, label_selector=f"widget={name_of(widget)}").items
        if known:
            continue
        metadata: Tree = {"labels": {"widget": name_of(widget)}}
        metadata |= {"generateName": f"{name_of(widget)}-"} if buggy else {"name": f"{name_of(widget)}-made"}
        for _ in range(3):
            try:
                cluster.core.create_namespaced_config_map(SPACE, {"metadata": metadata})
            except Refused:
                break
            except FAILED:
                continue
            break


@program
def stops_at_errors(cluster: Cluster, buggy: bool) -> None:
    for kind, widget in each(cluster):
        if kind == "DELETED":
            continue
        try:
            cluster.core.create_namespaced_config_map(SPACE, config_map(name_of(widget), step="1"))
            cluster.core.patch_namespaced_config_map(name_of(widget), SPACE, {"data": {"step": "2"}})
        except Refused as error:
            if error.status != 409:
                raise
            if not buggy:
                cluster.core.patch_namespaced_config_map(name_of(widget), SPACE, {"data": {"step": "2"}})


@program
def adds_up(cluster: Cluster, buggy: bool) -> None:
    cluster.create_once(config_map("totals", names=""))
    for kind, widget in each(cluster):
        if kind == "DELETED":
            continue
        totals = cluster.core.read_namespaced_config_map("totals", SPACE)
        names = totals.data["names"].split()
        if (kind == "MODIFIED" or name_of(widget) in names) and not (buggy and kind == "LISTED"):
            continue
        totals.data["names"] = " ".join([*names, name_of(widget)])
        cluster.core.replace_namespaced_config_map("totals", SPACE, totals)


@program
def leaks(cluster: Cluster, buggy: bool) -> None:
    """Two objects for each; when the first is deleted the second is leaked."""
    listed = cluster.widgets()
    wanted = {name_of(widget) for widget in listed["items"]}
    for found in cluster.core.list_namespaced_config_map(SPACE, label_selector="part=one").items:
        name = found.metadata.labels["widget"]
        if name not in wanted:
            first, second = (f"{name}-one", f"{name}-two") if buggy else (f"{name}-two", f"{name}-one")
            cluster.delete_once(first)
            cluster.delete_once(second)
    for name in wanted:
        for part in ("one", "two"):
            body: Tree = {"metadata": {"name": f"{name}-{part}", "labels": {"widget": name, "part": part}}}
            cluster.create_once(body)
    for _ in cluster.watch(listed["metadata"]["resourceVersion"]):
        return


@program
def believes_its_cache(cluster: Cluster, buggy: bool) -> None:
    """Deletes objects without an owner in a stale list."""
    owners = cluster.widgets(**({"resource_version": "0"} if buggy else {}))
    names = {name_of(widget) for widget in owners["items"]}
    for found in cluster.core.list_namespaced_config_map(SPACE, label_selector="of=widgets").items:
        if found.metadata.name not in names:
            cluster.delete_once(found.metadata.name)
    for kind, widget in each(cluster):
        if kind == "DELETED":
            return
        body: Tree = {"metadata": {"name": name_of(widget), "labels": {"of": "widgets"}}, "data": {"k": "v"}}
        cluster.create_once(body)


@program
def deletes_by_name(cluster: Cluster, buggy: bool) -> None:
    """What has expired is deleted a while later."""

    def look(found: Any) -> None:
        if found.data["expired"] == "yes" and not cluster.stop.wait(0.3):
            conditions = None if buggy else {"uid": found.metadata.uid}
            body = kubernetes.client.V1DeleteOptions(preconditions=conditions)
            try:
                cluster.core.delete_namespaced_config_map(found.metadata.name, SPACE, body=body)
            except Refused as error:
                if error.status not in (404, 409):
                    raise

    chosen = {"label_selector": "temporary=yes"}
    listed = cluster.core.list_namespaced_config_map(SPACE, resource_version="0", **chosen)
    for found in listed.items:
        look(found)
    stream = kubernetes.watch.Watch()
    options = {"resource_version": listed.metadata.resource_version, "timeout_seconds": 3600}
    options["_request_timeout"] = (5, 60)
    for event in stream.stream(cluster.core.list_namespaced_config_map, SPACE, **chosen, **options):
        if event["type"] in ("ADDED", "MODIFIED"):
            look(event["object"])


@program
def trusts_its_cache(cluster: Cluster, buggy: bool) -> None:
    for kind, widget in each(cluster):
        if kind == "DELETED":
            continue
        how = {"resource_version": "0"} if buggy else {}
        chosen = f"widget={name_of(widget)}"
        if not cluster.core.list_namespaced_config_map(SPACE, label_selector=chosen, **how).items:
            metadata = {"generateName": f"{name_of(widget)}-", "labels": {"widget": name_of(widget)}}
            cluster.core.create_namespaced_config_map(SPACE, {"metadata": metadata})


@program
def counts_twice(cluster: Cluster, buggy: bool) -> None:
    """The status counts the changes of the text."""
    for kind, widget in each(cluster):
        seen = widget["metadata"].get("generation")
        for attempt in range(3 if kind != "DELETED" else 0):
            try:
                known = cluster.custom.get_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL, name_of(widget))
                status = known.get("status") or {}
                if status.get("seen") == seen and not (buggy and attempt):
                    break
                known["status"] = {"seen": seen, "changes": status.get("changes", 0) + 1}
                args = GROUP, "v1", SPACE, PLURAL, name_of(widget), known
                cluster.custom.replace_namespaced_custom_object_status(*args)
            except Refused:
                raise
            except FAILED:
                continue
            break


def knows_by_name():
    @program
    def handle(cluster: Cluster, buggy: bool) -> None:
        """A child names its owner's uid: it is recreated with a recreated widget."""
        for kind, widget in each(cluster):
            name, uid = name_of(widget), widget["metadata"]["uid"]
            if kind == "DELETED":
                known.pop(name, None)
                cluster.delete_once(name)
                continue
            if name in known and (buggy or known[name] == uid):
                continue
            owner = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "name": name, "uid": uid}
            there = cluster.core.list_namespaced_config_map(SPACE, field_selector=f"metadata.name={name}").items
            if not buggy and there and there[0].metadata.owner_references[0].uid != uid:
                cluster.delete_once(name)
            cluster.create_once({"metadata": {"name": name, "ownerReferences": [owner]}, "data": {"k": "v"}})
            known[name] = uid

    known: dict[str, str] = {}

    def make(buggy: bool) -> Any:
        inner = handle(buggy)

        def main(kubeconfig: str, stop: threading.Event) -> None:
            known.clear()
            inner(kubeconfig, stop)

        return main

    return make


CASES = (
    Case("stops-watching", "kubernetes", "does not list anew after 410", stops_watching, (starts, changes)),
    Case("retries-creation", "kubernetes", "retries a creation with a generated name", retries_creation, (starts,)),
    Case("gives-up-half-way", "kubernetes", "what exists is taken for complete", stops_at_errors, (starts,)),
    Case("adds-up-again", "kubernetes", "a restart adds up again", adds_up, (starts, adds_another)),
    Case("forgets-the-second", "kubernetes", "deletes first what it finds the rest by", leaks, (starts, ends)),
    Case("believes-its-cache", "kubernetes", "deletes by an old list", believes_its_cache, (starts, adds_another)),
    Case(
        "deletes-by-name",
        "kubernetes",
        "deletes what has taken the name",
        deletes_by_name,
        (keeps, gives_up, keeps),
    ),
    Case("trusts-its-cache", "kubernetes", "looks into a cache before it creates", trusts_its_cache, (starts,)),
    Case(
        "knows-by-name",
        "kubernetes",
        "takes what was made again for what it knew",
        knows_by_name(),
        (starts, makes_again),
    ),
    Case("counts-twice", "kubernetes", "adds one again after a lost answer", counts_twice, (starts, changes)),
)
