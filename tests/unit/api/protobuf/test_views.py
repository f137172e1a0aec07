"""A view of an object is the same, whether it is read from protobuf or from JSON."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from kcm_cli.api import core
from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.protobuf import views
from kcm_cli.api.protobuf.encoding import to_protobuf
from kcm_cli.api.protobuf.messages import Field, message, message_of
from kcm_cli.api.protobuf.views import KEPT, LONGEST, reader_of
from kcm_cli.api.resource import PARTIAL, Message, Resource, Undecodable
from kcm_cli.machinery import codec, upb
from kcm_cli.machinery.envelope import opened
from kcm_cli.machinery.meta import Object, PartialObject, SlimObject
from kcm_cli.machinery.protowire import numbered, packed
from kcm_cli.machinery.times import format_micro_time, format_time
from tests.unit.api.schemas import elsewhere, resources

JSON_ONLY = {"CLUSTER_ROLES"}
"""Kinds with protobuf that are not updated, and are read in JSON: their rules are documents."""
READ = {name: one for name, one in resources().items() if one.reader() is not None}


ALL = READ | {name: one for name, one in elsewhere().items() if one not in READ.values() and one.reader() is not None}
EACH = pytest.mark.parametrize("resource", ALL.values(), ids=ALL)
TEXTS = ("", "a", "b-1", "ü", "x" * 600)
NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31))


def test_all_kinds_that_have_protobuf_and_are_not_updated_are_read_in_it() -> None:
    known = {name for name, one in resources().items() if message(message_of(one.api_version, one.kind)) is not None}
    edited = {name for name, one in resources().items() if one.keeps_raw}
    assert READ.keys() == known - edited - JSON_ONLY
    assert {"PODS", "LEASES", "RESOURCE_SLICES"} < READ.keys()
    assert len(ALL) > len(READ) + 10


def document(rng: random.Random, name: str, depth: int = 0) -> dict[str, Any]:
    """An object with some of the fields of a message."""
    doc: dict[str, Any] = {}
    for field in (message(name) or {}).values():
        if depth > 7 or rng.random() < (0.0 if name.endswith("ManagedFieldsEntry") else 0.6):
            continue
        if not field.name:
            doc |= document(rng, field.type, depth + 1)
        elif field.keyed:
            doc[field.name] = {key: value(rng, field.type, depth) for key in rng.sample(("a", "ü", "b/c"), 2)}
        elif field.repeated:
            doc[field.name] = [value(rng, field.type, depth) for _ in range(rng.choice((1, 2, 3)))]
        else:
            doc[field.name] = value(rng, field.type, depth)
    return doc


def value(rng: random.Random, type_: str, depth: int) -> Any:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(10**8), microseconds=rng.randrange(10))
    simple: dict[str, Any] = {
        "string": rng.choice(TEXTS),
        "int": rng.choice(NUMBERS),
        "bool": rng.random() < 0.5,
        "double": 0.5,
        "bytes": "/wA=",
        "meta.v1.Time": format_time(moment),
        "meta.v1.MicroTime": format_micro_time(moment),
        "meta.v1.Duration": "5s",
        "resource.Quantity": rng.choice(("0", "100m", "1Gi")),
        "util.intstr.IntOrString": rng.choice((0, 5, "10%")),
        "meta.v1.FieldsV1": {"f:a": {}},
        "runtime.RawExtension": {"a": [1]},
    }
    return simple[type_] if type_ in simple else document(rng, type_, depth + 1)


def as_in_json(doc: Any, info: inspect.Type) -> Any:
    """The object without zeros that the JSON of API servers leaves out, where a view has a default for them."""
    if isinstance(info, inspect.UnionType):
        info = next(one for one in info.types if not isinstance(one, inspect.NoneType))
    if isinstance(doc, list) and isinstance(info, inspect.VarTupleType):
        return [as_in_json(one, info.item_type) for one in doc]
    if not isinstance(doc, dict) or not isinstance(info, inspect.StructType):
        return doc
    known = {field.encode_name: field for field in info.fields}
    kept = {key: one for key, one in doc.items() if key not in known or one or not known[key].default}
    return {key: as_in_json(one, known[key].type) if key in known else one for key, one in kept.items()}


def with_zeros(doc: dict[str, Any], info: inspect.StructType, name: str) -> dict[str, Any]:
    """The object as Go sends it in protobuf: fields that are no pointers have their zeros."""
    full = dict(doc)
    for field in info.fields:
        *_, kind = views._find(name, field.encode_name)
        if kind is None:
            continue
        held = full.get(field.encode_name)
        if isinstance(field.type, inspect.StructType) and not kind.repeated and views.special(kind.type) is None:
            full[field.encode_name] = with_zeros(held or {}, field.type, kind.type)
        elif held is None and not kind.repeated and not kind.keyed:
            zero = zero_of(field, kind)
            if zero is not None:
                full[field.encode_name] = zero
        elif isinstance(held, list) and isinstance(field.type, inspect.VarTupleType):
            item = field.type.item_type
            if isinstance(item, inspect.StructType):
                full[field.encode_name] = [with_zeros(one, item, kind.type) for one in held]
    return full


def zero_of(field: inspect.Field, kind: Field) -> object:
    if isinstance(field.type, inspect.UnionType):
        return None
    return {"string": "", "int": 0, "bool": False}.get(kind.type)


def both(resource: Resource[Any], doc: dict[str, Any], sent: dict[str, Any] | None = None) -> tuple[Any, Any]:
    data = opened(to_protobuf({**(sent or doc), "apiVersion": resource.api_version, "kind": resource.kind})).data
    return resource.read_item(Message(data)), resource.decode(json.dumps(doc).encode())


@EACH
def test_random_objects_are_the_same_in_both_forms(resource: Resource[Any]) -> None:
    info, name = inspect.type_info(resource.view), message_of(resource.api_version, resource.kind)
    assert isinstance(info, inspect.StructType)
    different = set()
    for seed in range(150):
        doc = as_in_json(document(random.Random(seed), name), info)
        doc["metadata"] = {**doc.get("metadata", {}), "name": "a"}
        packed_, plain = both(resource, doc)
        assert packed_ == plain, seed
        full, _ = both(resource, doc, with_zeros(doc, info, name))
        assert full == plain, seed
        different.add(repr(plain))
    assert len(different) > 40


@given(st.integers(0, 10_000))
def test_metadata_is_the_same_in_both_forms(seed: int) -> None:
    doc = {"metadata": {**document(random.Random(seed), "meta.v1.ObjectMeta"), "name": "a"}}
    sent = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", **doc}
    data = opened(to_protobuf(sent)).data
    for view in (PartialObject, SlimObject):
        reader = reader_of(view, PARTIAL)
        assert reader is not None
        assert reader.read(data) == codec.decode(json.dumps(doc).encode(), view)


@given(st.integers(0, 10_000), st.data())
def test_any_bytes_are_an_object_or_explained(seed: int, data: st.DataObject) -> None:
    """Cut, changed or of another kind: nothing else is raised, and what has no name is no object."""
    doc = {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, **document(random.Random(seed), "core.v1.Pod")}
    whole = bytearray(opened(to_protobuf({"apiVersion": "v1", "kind": "Pod", **doc})).data)
    for _ in range(data.draw(st.integers(0, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    found = PODS.read_item(Message(bytes(whole[: data.draw(st.integers(0, len(whole)))])))
    if isinstance(found, Undecodable):
        assert found.why
    else:
        assert found.name


META = packed(1, packed(1, b"a") + packed(3, b"ns") + packed(5, b"u") + packed(6, b"7"))


def test_text_that_is_no_utf8_reads_as_in_the_json_of_the_server() -> None:
    status = packed(3, packed(3, b"bad \xff\xfe") + packed(1, b"Running"))
    labels = packed(1, packed(1, b"a") + packed(11, packed(1, b"k") + packed(2, b"\xff")) + packed(14, b"f\xff"))
    pod = PODS.read_item(Message(labels + status))
    assert isinstance(pod, Pod)
    assert (pod.status.message, pod.status.phase) == ("bad \ufffd\ufffd", "Running")
    assert (pod.labels, pod.metadata.finalizers) == ({"k": "\ufffd"}, ("f\ufffd",))


def nested(levels: int) -> bytes:
    """Groups in groups, in a field that nobody knows."""
    start, end = bytes([900 << 3 & 0x7F | 0x83, 900 >> 4]), bytes([900 << 3 & 0x7F | 0x84, 900 >> 4])
    return start * levels + end * levels


@pytest.mark.parametrize(
    ("data", "key", "uid"),
    [
        pytest.param(META + nested(150), "ns/a", "u", id="too deep"),
        pytest.param(META + packed(2, b"\xff\xff\xff"), "ns/a", "u", id="no spec"),
        pytest.param(META + b"\x12\x7f", "ns/a", "u", id="cut"),
        pytest.param(META + packed(3, packed(7, numbered(1, 2**62))), "ns/a", "u", id="no time"),
        pytest.param(packed(1, packed(1, b"\xff") + packed(5, b"u")), "", "", id="no utf-8 in the name"),
        pytest.param(packed(2, b""), "", "", id="nothing"),
        pytest.param(b"\xff", "", "", id="no message"),
    ],
)
def test_an_object_that_cannot_be_read_is_known_by_its_key(data: bytes, key: str, uid: str) -> None:
    found = PODS.read_item(Message(data))
    assert isinstance(found, Undecodable)
    assert (found.key, found.metadata.uid) == (key, uid)


def test_a_newer_servers_fields_are_skipped() -> None:
    template = packed(1, packed(2, packed(3, b"v") + packed(99, b"new")))
    volume = packed(1, packed(1, b"data") + packed(2, packed(29, template)))
    pod = PODS.read_item(Message(META + packed(2, volume) + packed(99, b"new") + nested(3)))
    assert isinstance(pod, Pod)
    (found,) = pod.spec.volumes
    assert found == core.Volume("data", ephemeral=core.EphemeralSource({"spec": {"volumeName": "v"}}))


def test_equal_parts_are_shared_and_long_ones_are_not_kept() -> None:
    def pod(text: bytes) -> Pod:
        owner = packed(13, packed(3, b"web") + packed(4, text))
        found = PODS.read_item(
            Message(packed(1, packed(1, b"a") + owner + packed(11, packed(1, b"k") + packed(2, text))))
        )
        assert isinstance(found, Pod)
        return found

    one, other = pod(b"u"), pod(b"u")
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.metadata.labels is other.metadata.labels
    many = packed(1, packed(1, b"a") + packed(13, b"") * (LONGEST + 1))
    first, second = PODS.read_item(Message(many)), PODS.read_item(Message(many))
    assert len(first.metadata.owner_references) == LONGEST + 1
    assert first.metadata.owner_references is not second.metadata.owner_references
    long = b"x" * LONGEST
    assert pod(long).metadata.labels == pod(long).metadata.labels
    assert pod(long).metadata.labels is not pod(long).metadata.labels
    for number in range(KEPT + 1):
        pod(str(number).encode())
    assert one.metadata.labels is not pod(b"u").metadata.labels


def test_kinds_of_other_groups_are_read_in_json() -> None:
    for group in ("apps.example.com", "apps"):
        resource = Resource(msgspec.structs.replace(PODS.gvr, group=group, plural="daemonsets"), "DaemonSet", Object)
        assert (resource.reader() is None) == (group == "apps.example.com")
        assert resource.reader(metadata_only=True) is not None


def test_without_upb_everything_is_read_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upb, "available", lambda: False)
    views._reader_of.cache_clear()
    assert reader_of(Pod, "core.v1.Pod") is None
    monkeypatch.undo()
    views._reader_of.cache_clear()
    assert reader_of(Pod, "core.v1.Pod") is not None
