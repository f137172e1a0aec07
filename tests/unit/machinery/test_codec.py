"""Null means absent in every view; invalid JSON and other shapes are one error."""

import msgspec
import pytest

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod, Service, ServicePort
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import OwnerReference


def test_a_null_field_has_its_default_at_any_depth() -> None:
    job = codec.decode(
        b'{"metadata": {"name": "a", "labels": null, "ownerReferences": null, "generation": null},'
        b' "spec": {"podFailurePolicy": {"rules": null}, "template": null, "parallelism": null}, "status": null}',
        Job,
    )
    assert job == codec.decode(b'{"metadata": {"name": "a"}, "spec": {"podFailurePolicy": {}}}', Job)


def test_a_null_in_a_container_is_the_zero_value() -> None:
    pod = codec.decode(
        b'{"metadata": {"labels": {"a": null}, "ownerReferences": [null, {"uid": "u"}], "finalizers": [null, "f"]}}',
        Pod,
    )
    assert pod.metadata.labels == {"a": ""}
    assert pod.metadata.owner_references == (OwnerReference(), OwnerReference(uid="u"))
    assert pod.metadata.finalizers == ("", "f")


def test_null_means_a_non_zero_default() -> None:
    service = codec.decode(b'{"spec": {"ports": [{"protocol": null, "targetPort": "http"}]}}', Service)
    assert service.spec.ports == (ServicePort(protocol="TCP", target_port="http"),)


def test_null_is_an_empty_object() -> None:
    assert codec.decode(b"null", Pod) == Pod()


def test_documents_keep_their_nulls() -> None:
    assert codec.decode_doc(b'{"a": null}') == {"a": None}


@pytest.mark.parametrize("data", [b"", b"<html>", b'{"a":', b"\xff", b'{"kind": "\xff", "metadata": {"name": "\xff"}}'])
def test_invalid_json_is_an_error(data: bytes) -> None:
    with pytest.raises(codec.DecodeError) as caught:
        codec.decode(data, Pod)
    assert not isinstance(caught.value, codec.ShapeError)


def test_what_cannot_be_decoded_is_none() -> None:
    assert codec.decode_or_none(b'{"a": 1}', dict[str, int]) == {"a": 1}
    assert codec.decode_or_none(b'{"a": "b"}', dict[str, int]) is None
    assert codec.decode_or_none(b"404 page not found", dict[str, int]) is None


def test_too_deep_nesting_is_an_error() -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode_doc(b'{"a":' + b"[" * 100_000)


@pytest.mark.parametrize(
    "data", [b"[]", b'{"spec": "x"}', b'{"metadata": {"name": 3}}', b'{"metadata": {"labels": [null]}}']
)
def test_another_shape_is_an_error_that_names_the_path(data: bytes) -> None:
    with pytest.raises(codec.ShapeError, match="Expected"):
        codec.decode(data, Pod)


def test_a_part_of_a_document_is_read_by_the_same_rules() -> None:
    assert codec.convert({"metadata": None, "spec": {"ports": None}}, Service) == Service()
    with pytest.raises(codec.ShapeError):
        codec.convert({"spec": 1}, Service)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"\udc00\ud800", "\ufffd\ufffd"),
        (rb"\ud83d\ude00\ud83d", "\U0001f600\ufffd"),
        (rb"\\ud800 \ud800", "\\ud800 \ufffd"),
        (rb"\\\ud800\n", "\\\ufffd\n"),
        (rb"\ud800\u00e9", "\ufffd\u00e9"),
    ],
)
def test_half_of_a_surrogate_pair_is_a_replacement_character(text: bytes, read: str) -> None:
    """As encoding/json reads it; kube-apiserver returns what a RawExtension has."""
    assert codec.decode_doc(b'{"a":"%s"}' % text) == {"a": read}
    assert codec.decode(b'{"metadata":{"name":"%s"},"x":"%s"}' % (text, text), Pod).name == read


def test_bytes_that_are_not_utf_8_are_written_as_replacement_characters() -> None:
    """As encoding/json writes them. Python keeps them as halves of surrogate pairs."""
    text = b"a\xff\xfe\xc3\xa9".decode("utf-8", "surrogateescape")
    doc = {text: [text, (1, text), {"b": text}, msgspec.Raw(b"{}")], "c": "\U0001f600"}
    shown = "a\ufffd\ufffd\u00e9"
    read = {shown: [shown, [1, shown], {"b": shown}, {}], "c": "\U0001f600"}
    assert codec.decode_doc(codec.encode(doc)) == codec.decode_doc(codec.encode_sorted(doc)) == read
    assert codec.decode(codec.encode(text), str) == shown


def test_what_is_kept_as_raw_keeps_its_bytes() -> None:
    text = rb'{"metadata":{"name":"a"},"data":{"x":"\ud800"}}'
    assert codec.encode(codec.decode_paths(text, [("metadata", "finalizers")])) == text
