"""What clients of Services see: writes a line of JSON for each change of an EndpointSlice, as it arrives at a watch.

    python -m tests.plans.prober KUBECONFIG FILE

A line is ``[unix time, namespace, service, slice, number of ready endpoints]``, of slices with IPv4 addresses. The
client is the official one, in a process of its own. ``sightings`` reads the file.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

Step = tuple[float, int]
"""A time, and the number of ready endpoints from then on."""


def probe(file: TextIO) -> None:
    """Write until the process is ended."""
    api = client.DiscoveryV1Api()
    while True:
        listed = api.list_endpoint_slice_for_all_namespaces()
        for one in listed.items:
            _write(file, one, is_there=True)
        stream = watch.Watch().stream(
            api.list_endpoint_slice_for_all_namespaces, resource_version=listed.metadata.resource_version
        )
        try:
            for event in stream:
                _write(file, event["object"], is_there=event["type"] != "DELETED")
        except ApiException as error:
            if error.status != 410:
                raise


def _write(file: TextIO, one: Any, *, is_there: bool) -> None:
    service = (one.metadata.labels or {}).get("kubernetes.io/service-name")
    if one.address_type != "IPv4" or not service:
        return
    ready = sum(endpoint.conditions.ready is not False for endpoint in one.endpoints or ()) if is_there else 0
    file.write(json.dumps([time.time(), one.metadata.namespace, service, one.metadata.name, ready]) + "\n")
    file.flush()


def sightings(path: Path, namespace: str, service: str, since: float, until: float) -> list[Step]:
    """The ready endpoints of a Service between two times: (0, number before), and then one step for each number."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]
    ours = [(at, name, count) for at, space, of, name, count in lines if (space, of) == (namespace, service)]
    return list(_steps(ours, since, until))


def _steps(lines: Iterable[tuple[float, str, int]], since: float, until: float) -> Iterator[Step]:
    slices: dict[str, int] = {}
    last: int | None = None
    for at, name, count in lines:
        if at > until:
            break
        if at > since and last is None:
            last = sum(slices.values())
            yield 0.0, last
        slices[name] = count
        if last is not None and (total := sum(slices.values())) != last:
            last = total
            yield round(at - since, 2), total
    if last is None:
        yield 0.0, sum(slices.values())


if __name__ == "__main__":
    config.load_kube_config(sys.argv[1])
    with Path(sys.argv[2]).open("a") as out:
        probe(out)
