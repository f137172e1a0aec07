"""Watch events are decoded in any JSON formatting, and nothing else is accepted."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.core import PODS
from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.rest.errors import ApiError, Expired, InternalError
from kcm_cli.rest.transport import Unreadable
from kcm_cli.runtime import wire
from kcm_cli.runtime.wire import Bookmark, BrokenEvent, EventDecoder, WatchEvent

META = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "5"}
CHANGE = {"type": "ADDED", "object": {"metadata": META, "spec": {"text": 'a "quoted" } ] \\ brace'}}}
LAST = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": LAST, "spec": {"containers": None}}}
EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}}

SPELLINGS: dict[str, Callable[[Any], str]] = {
    "compact": lambda value: json.dumps(value, separators=(",", ":")),
    "with spaces": json.dumps,
    "object first": lambda value: json.dumps(dict(reversed(value.items()))),
    "on many lines": lambda value: json.dumps(value, indent=2),
}
KINDS = pytest.mark.parametrize("resource", [PODS, DEPLOYMENTS], ids=["typed", "raw"])


def read(resource: Resource[Any], data: bytes, size: int = 1 << 20, *, lenient: bool = False) -> list[Any]:
    decoder = EventDecoder(resource, lenient=lenient)
    return [event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])]


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


@KINDS
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_the_formatting_of_json_makes_no_difference(resource: Resource[Any], spell: Callable[[Any], str]) -> None:
    change, bookmark = read(resource, lines(spell(CHANGE), spell(BOOKMARK)))
    assert (change.type, change.object.key, change.object.metadata.resource_version) == ("ADDED", "ns/a", "5")
    assert bookmark == Bookmark("9", last=True)
    assert (change.object.raw is not None) == resource.keeps_raw
    with pytest.raises(Expired):
        read(resource, lines(spell(EXPIRED)))


@given(st.integers(1, 400), st.sampled_from(sorted(SPELLINGS)))
def test_chunks_can_end_anywhere(size: int, spelling: str) -> None:
    spell = SPELLINGS[spelling]
    found = read(PODS, lines(spell(CHANGE), spell(BOOKMARK), spell(CHANGE)), size)
    assert [type(event) for event in found] == [WatchEvent, Bookmark, WatchEvent]


@KINDS
def test_several_events_can_be_on_one_line(resource: Resource[Any]) -> None:
    text = json.dumps(CHANGE)
    assert len(read(resource, lines(f"{text}{text} {text}"))) == 3


@KINDS
def test_an_object_of_another_shape_does_not_affect_others(resource: Resource[Any]) -> None:
    odd = {"type": "MODIFIED", "object": {"metadata": META, "spec": "none"}}
    broken, whole = read(resource, lines(json.dumps(odd), json.dumps(CHANGE)))
    assert isinstance(broken, BrokenEvent)
    assert (broken.type, broken.object.key, broken.object.metadata.uid) == ("MODIFIED", "ns/a", "u")
    assert "$.spec" in broken.object.why
    assert whole.object.key == "ns/a"


@pytest.mark.parametrize("metadata", [None, {}, {"name": None}, {"name": 3, "uid": "u"}, "x"])
def test_an_object_without_a_name_is_broken(metadata: object) -> None:
    (event,) = read(PODS, lines(json.dumps({"type": "ADDED", "object": {"metadata": metadata}})))
    assert isinstance(event, BrokenEvent)
    assert event.object.key == ""


def test_unknown_types_are_skipped_and_reported() -> None:
    problems: list[str] = []
    decoder = EventDecoder(PODS, skipped=problems.append)
    news = ('{"type": "NEWS", "object": {}}', '{"object": {}}', '{"type": null}', "{}")
    assert list(decoder.feed(lines(*news))) == []
    assert problems == ['an event of type "NEWS"', *['an event of type ""'] * 3]


FOREIGN = {
    "another kind": {"kind": "Service", "apiVersion": "v1", "metadata": META},
    "another version": {"kind": "{kind}", "apiVersion": "x/v2", "metadata": META},
    "another version alone": {"apiVersion": "x/v2", "metadata": META},
    "another kind alone": {"kind": "Service", "metadata": META},
    "a Status": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500},
    "a Table": {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}, "rows": []},
    "metadata": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": META},
    "a kind of any length": {"kind": "K" * 10_000, "apiVersion": "v1", "metadata": META},
}


@KINDS
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
@pytest.mark.parametrize("name", FOREIGN)
def test_objects_of_another_kind_are_ignored(
    resource: Resource[Any], spell: Callable[[Any], str], type_: str, name: str
) -> None:
    problems: list[str] = []
    decoder = EventDecoder(resource, skipped=problems.append)
    doc = {**FOREIGN[name]}
    if "kind" in doc:
        doc["kind"] = doc["kind"].format(kind=resource.kind)
    own = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": META}
    read = list(decoder.feed(lines(*(spell({"type": type_, "object": one}) for one in (doc, own, doc)))))
    assert [event.resource_version if isinstance(event, Bookmark) else event.object.key for event in read] == [
        "5" if type_ == "BOOKMARK" else "ns/a"
    ]
    assert problems == [f'an object of another kind: "{doc.get("kind", "")}" ("{doc.get("apiVersion", "")}")'] * 2


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_requested_metadata_has_its_kind(spell: Callable[[Any], str]) -> None:
    decoder = EventDecoder(PODS.metadata_only, metadata_only=True)
    shown = [FOREIGN["metadata"], {"kind": "Pod", "apiVersion": "v1", "metadata": META}, FOREIGN["another kind"]]
    assert len(list(decoder.feed(lines(*(spell({"type": "ADDED", "object": one}) for one in shown))))) == 2


@pytest.mark.parametrize("body", ["null", '"no"', "[]", '{"code": "x"}', '{"code": 0, "reason": null}'])
def test_an_error_event_is_an_error_with_any_content(body: str) -> None:
    with pytest.raises(ApiError) as caught:
        read(PODS, lines(f'{{"type": "ERROR", "object": {body}}}'))
    assert isinstance(caught.value, InternalError) or caught.value.status == 500


@KINDS
@pytest.mark.parametrize(
    "text",
    ["<html><body>Bad gateway</body></html>", "ok", "5", "}", '{"type": ADDED}', '{"type": "BOOKMARK", "object": [x]}'],
)
def test_a_line_that_is_not_an_event_is_unreadable(resource: Resource[Any], text: str) -> None:
    with pytest.raises(Unreadable):
        read(resource, lines(text, text))


@KINDS
def test_a_bookmark_that_cannot_be_decoded_is_skipped_and_reported(resource: Resource[Any]) -> None:
    problems: list[str] = []
    decoder = EventDecoder(resource, skipped=problems.append)
    odd = ('{"type": "BOOKMARK", "object": []}', '{"type": "BOOKMARK", "object": {"metadata": {"annotations": 5}}}')
    assert list(decoder.feed(lines(*odd, json.dumps(BOOKMARK)))) == [Bookmark("9", last=True)]
    assert [problem.partition(":")[0] for problem in problems] == ["a bookmark that cannot be decoded"] * 2


@KINDS
def test_a_truncated_event_does_not_affect_the_next(resource: Resource[Any]) -> None:
    text = json.dumps(CHANGE)
    with pytest.raises(Unreadable, match="cut"):
        read(resource, lines(text[:40], text))


@KINDS
def test_invalid_utf_8_is_an_error_of_the_watch_unless_tolerated(resource: Resource[Any]) -> None:
    spoilt = json.dumps(CHANGE).encode().replace(b'"u"', b'"\xff"') + b"\n" + lines(json.dumps(CHANGE))
    with pytest.raises(Unreadable):
        read(resource, spoilt)
    broken, whole = read(resource, spoilt, lenient=True)
    assert isinstance(broken, BrokenEvent)
    assert broken.object.spoilt
    assert whole.object.key == "ns/a"


def test_invalid_utf_8_in_unknown_fields_is_unreadable() -> None:
    """Edits of the raw document would fail until the object's next version."""
    odd = {"type": "ADDED", "object": {"kind": "Deployment", "metadata": META, "neverHeardOf": "there"}}
    with pytest.raises(Unreadable):
        read(DEPLOYMENTS, json.dumps(odd).encode().replace(b"there", b"\xff") + b"\n")


@KINDS
@pytest.mark.parametrize("key", [b'"namespace"', b'"ownerReferences"', b'"kind"', b'"metadata"'])
@pytest.mark.parametrize("metadata_only", [False, True])
def test_a_key_that_is_no_utf_8_is_no_field_that_is_left_out(
    resource: Resource[Any], metadata_only: bool, key: bytes
) -> None:
    """A deletion without the namespace was one of another object, and the real one stayed in the cache."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    text = json.dumps({"metadata": {**META, "ownerReferences": [owner]}}).encode()
    spoilt = text.replace(key, key[:-2] + b"\xff\xfe" + key[-2:])
    assert spoilt != text
    decoder = EventDecoder(resource, metadata_only=metadata_only)
    with pytest.raises(Unreadable):
        list(decoder.feed(b'{"type":"DELETED","object":%s}\n' % spoilt))
    found = resource.read_item(msgspec.Raw(spoilt), metadata_only=metadata_only)
    assert isinstance(found, Undecodable)
    assert found.spoilt


@pytest.mark.parametrize("chunk", [b"x" * 1000, b'{"a":\n' * 200], ids=["one line", "many lines"])
def test_the_length_of_an_event_is_bounded(chunk: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_EVENT", 10_000)
    decoder = EventDecoder(PODS)
    with pytest.raises(Unreadable, match="longer than 10000"):
        for _ in range(100):
            list(decoder.feed(chunk))
