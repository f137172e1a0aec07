"""What a change loses without leaving anything unfinished: the endpoints of Services, with what asks them, and data."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import msgspec

from kcm_cli.api.discovery import SERVICE_NAME
from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.quoting import listed
from kcm_cli.plan.answer import Availability, Object
from kcm_cli.plan.formatting import span
from kcm_cli.plan.observe import PODS, SLICES, Observer, endpoints_of, is_ready, ready_of, seen
from kcm_cli.plan.refusals import Refusal
from kcm_cli.sandbox.apiserver.store import Store

SERVICES = GVR("", "v1", "services")
VOLUMES, CLAIMS = GVR("", "v1", "persistentvolumes"), GVR("", "v1", "persistentvolumeclaims")
Key = tuple[GVR, str, str]
_REGISTRATION = "admissionregistration.k8s.io"
CALLING = {
    "ValidatingWebhookConfiguration": GVR(_REGISTRATION, "v1", "validatingwebhookconfigurations"),
    "MutatingWebhookConfiguration": GVR(_REGISTRATION, "v1", "mutatingwebhookconfigurations"),
}
_NAMED = 3
_AT_ONCE = " "


class Serving(msgspec.Struct, frozen=True):
    """What a Service with a selector leads to. ready: the number of ready endpoints. of: the workloads, with the number
    of their pods that are ready endpoints. pods: the uids of all."""

    ready: int
    of: Mapping[Object, int] = msgspec.field(default_factory=dict)
    pods: frozenset[str] = frozenset()


def serving(store: Store, observer: Observer) -> dict[Object, Serving]:
    """The Services with a selector, and what they lead to."""
    found: dict[Object, list[bytes]] = {}
    for stored in store.list(SERVICES):
        if nested_map(stored.doc, "spec", "selector") and nested_str(stored.doc, "spec", "type") != "ExternalName":
            found[Object("Service", stored.namespace, stored.name)] = []
    for stored in store.list(SLICES):
        name = nested_map(stored.doc, "metadata", "labels").get(SERVICE_NAME)
        about = Object("Service", stored.namespace, str(name))
        if about in found:
            found[about].append(stored.data)
    return {about: _serving(slices, store, observer) for about, slices in found.items()}


def _serving(slices: Collection[bytes], store: Store, observer: Observer) -> Serving:
    """A Service may have several slices, and those of two types of addresses have the same pods."""
    ready: Counter[str] = Counter()
    pods: dict[str, tuple[Object, bool]] = {}
    for data in slices:
        one = endpoints_of(data)
        ready[one.address_type] += ready_of(one)
        for endpoint in one.members:
            ref = endpoint.target_ref
            pod = store.get(PODS, ref.namespace, ref.name) if ref is not None and ref.kind == "Pod" else None
            if pod is not None:
                view = seen(pod.data)
                pods[view.uid] = observer.root(view, "Pod"), is_ready(endpoint)
    of: Counter[Object] = Counter()
    for root, serves in pods.values():
        of[root] += serves
    return Serving(max(ready.values(), default=0), of, frozenset(pods))


def lost_endpoints(base: Mapping[Object, Serving], changed: Mapping[Object, Serving]) -> Iterator[Refusal]:
    """The Services that have no ready endpoint because of the change, or those of other workloads."""
    for about, now in sorted(changed.items()):
        before = base.get(about)
        if not now.ready and (before is None or before.ready):
            if before is None:
                text = "it has no ready endpoints: no Ready pod matches its selector"
            else:
                of = f" (without the change: {_names(before.of)})" if before.of else ""
                text = f"it loses all its ready endpoints{of}"
            yield Refusal("no-endpoints", about, text)
        elif before is not None and before.ready and before.of and now.of and not _share(before, now):
            yield Refusal("no-endpoints", about, f"it serves {_names(now.of)} instead of {_names(before.of)}")


def strict_webhooks(store: Store) -> dict[Object, list[str]]:
    """The names of the webhooks without which a write is refused, by their Service."""
    found: dict[Object, list[str]] = {}
    for gvr in CALLING.values():
        for stored in store.list(gvr):
            for one in nested_list(stored.doc, "webhooks"):
                space, name = (nested_str(one, "clientConfig", "service", field) for field in ("namespace", "name"))
                if name and nested_str(one, "failurePolicy") != "Ignore":
                    found.setdefault(Object("Service", space, name), []).append(nested_str(one, "name"))
    return found


def silent_webhooks(
    webhooks: Mapping[Object, list[str]],
    base: Mapping[Object, Serving],
    changed: Mapping[Object, Serving],
    ready: Collection[Availability],
) -> Iterator[Refusal]:
    """The Services that the change takes from webhooks, or their endpoints, in the end or for a while. webhooks: see
    ``strict_webhooks``. ready: with the change."""
    over_time = {one.about: one for one in ready}
    for about, names in sorted(webhooks.items()):
        if about not in base or not base[about].ready:
            continue  # it has no selector, or answers nobody without the change, either
        now, known = changed.get(about), over_time.get(about)
        silent_s = _without(known) if known is not None else 0.0
        if now is None:
            text = "it is deleted"
        elif not now.ready:
            text = "it has no ready endpoint in the end"
        elif silent_s:
            text = f"it has no ready endpoint for {span(math.ceil(silent_s))}"
        else:
            continue
        shown = ", ".join(names[:_NAMED])
        yield Refusal(
            "no-endpoints", about, f"{text}: webhook {shown} (failurePolicy Fail) refuses what it is asked about"
        )


def _without(ready: Availability) -> float:
    """For how many seconds nothing was ready that was at first. After the last step, all is as it is in the end."""
    pairs = zip(ready.ready, ready.ready[1:], strict=False)
    return sum(end - begin for (begin, count), (end, _) in pairs if not count) if ready.before else 0.0


def _share(before: Serving, now: Serving) -> bool:
    """Whether any pod or workload is the same: pods may lose the workload that controls them."""
    return bool(before.of.keys() & now.of.keys() or before.pods & now.pods)


def _names(objects: Collection[Object]) -> str:
    return listed([str(one) for one in sorted(objects)], _NAMED)


def lost_data(
    base: Mapping[Key, bytes | None], changed: Mapping[Key, bytes | None], initial: Mapping[Key, bytes]
) -> Iterator[Refusal]:
    """The volumes and the bound claims that are deleted because of the change.

    base, changed: the final states of written objects, None for deleted ones. initial: those of the snapshot, also of
    the volumes of claims.
    """
    volumes = {key[2] for key, data in changed.items() if key[0] == VOLUMES and data is None}
    for key in sorted((key for key in changed if key[0] in (VOLUMES, CLAIMS) and key in initial), key=str):
        how = _leaves(changed[key])
        if not how or _leaves(base.get(key, initial[key])) or _leaves(initial[key]):
            continue
        gvr, namespace, name = key
        doc = codec.decode_doc(initial[key])
        if gvr == VOLUMES:
            space, claim = (nested_str(doc, "spec", "claimRef", field) for field in ("namespace", "name"))
            of = f" of claim {space}/{claim}" if claim else ""
            yield Refusal(
                "data", Object("PersistentVolume", "", name), f"the volume{of} is deleted{how.rstrip()} with its data"
            )
        elif (volume := volume_of(doc)) and volume not in volumes:
            kept = f"no claim can use its volume {volume} without work by hand"
            if (known := initial.get((VOLUMES, "", volume))) is not None and _is_deleted_when_released(known):
                kept = f"its volume {volume} is deleted with it, and so is the data"
            text = f"the claim is deleted{how.rstrip(' ,')}; {kept}"
            yield Refusal("data", Object("PersistentVolumeClaim", namespace, name), text)


def volume_of(claim: codec.Doc) -> str:
    """The volume that a claim names."""
    return nested_str(claim, "spec", "volumeName")


def _is_deleted_when_released(volume: bytes) -> bool:
    return nested_str(codec.decode_doc(volume), "spec", "persistentVolumeReclaimPolicy") == "Delete"


def _leaves(data: bytes | None) -> str:
    """How an object is deleted: at once, or when nothing uses it any more; empty if it stays."""
    if data is None:
        return _AT_ONCE
    return ", as soon as nothing uses it," if seen(data).deleting else ""
