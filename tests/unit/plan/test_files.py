"""Snapshots as files."""

import gzip
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.plan import Options, PlanError, Scale, Target, files, load, plan, save
from kcm_cli.plan.redaction import as_live
from kcm_cli.plan.snapshot import Collection, Item, Snapshot
from kcm_cli.sandbox.views import PODS
from tests.unit.plan.clusters import settled


def with_pod(last: str = "secret", **spec: object) -> Snapshot:
    """The settled cluster with one pod more, of this spec. last: what was applied last."""
    doc = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "sim", "annotations": {LAST_APPLIED: last, "kept": "1"}},
        "spec": spec,
    }
    whole = settled()
    pods = whole.collections[PODS.gvr]
    item = Item("sim", "x", "u", codec.encode(doc))
    collections = {**whole.collections, PODS.gvr: Collection(pods.gvr, "Pod", True, (*pods.items, item))}
    return replace(whole, collections=collections)


def test_a_file_has_the_whole_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    read = load(path)
    assert replace(read, redacted=False, context=settled().context) == settled()
    assert path.stat().st_mode & 0o077 == 0
    assert [one.name for one in tmp_path.iterdir()] == ["cluster.kcm"]
    save(read, tmp_path / "again.kcm")
    assert (tmp_path / "again.kcm").read_bytes() == path.read_bytes()


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.read_bytes)
        save(settled(), pipe)
        (tmp_path / "copy").write_bytes(written.result())
    assert pipe.is_fifo()
    assert load(tmp_path / "copy").collections.keys() == settled().collections.keys()


def test_a_symbolic_link_is_kept(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for _ in range(2):
        save(settled(), link)
        assert link.is_symlink()
        assert load(target).collections


def test_nothing_of_a_value_of_env_is_saved(tmp_path: Path) -> None:
    env = [{"name": "A", "value": "hunter2"}, {"name": "B", "value": "hunter2"}, {"name": "C", "value": "other"}]
    env += [{"name": "D"}, {"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]  # type: ignore[dict-item]
    env += [{"name": "F", "value": 12345}]  # type: ignore[dict-item]
    containers = [{"name": "c", "image": "i", "env": env}]
    paths = tmp_path / "one.kcm", tmp_path / "other.kcm"
    save(with_pod(containers=containers, initContainers=containers), paths[0])
    other = codec.decode(codec.encode(containers).replace(b"hunter2", b"swordfish").replace(b"12345", b"54321"), list)
    save(with_pod(containers=other, initContainers=other), paths[1])
    texts = [gzip.decompress(path.read_bytes()) for path in paths]
    assert b"hunter2" not in texts[0] and b"12345" not in texts[0]
    assert texts[0] == texts[1]  # whatever the values are
    saved = next(item for item in load(paths[0]).items(PODS.gvr) if item.name == "x").doc
    for field in ("containers", "initContainers"):
        one, same, third, none, from_, number = saved["spec"][field][0]["env"]  # type: ignore[index]
        assert one["value"] == same["value"] == "x-1" and third["value"] == "x-2" and number["value"] == "x-3"
        assert none == {"name": "D"} and "value" not in from_


@pytest.mark.parametrize(
    "spec",
    [
        {"env": [{"name": "A", "value": "hunter2"}]},
        {"server": {"env": {"A": "hunter2", "B": "hunter2", "C": None, "D": 5}}},
        {"containers": [{"name": "c", "within": {"env": [{"name": "A", "value": "hunter2"}]}}]},
        {"containers": {"c": {"env": [{"name": "A", "value": "hunter2"}, "odd", None]}}},
        {"list": [[{"env": [{"value": "hunter2"}]}]]},
    ],
)
def test_values_of_env_are_saved_nowhere(tmp_path: Path, spec: dict[str, object]) -> None:
    thing = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "sim"}, "spec": spec}
    gvr = GVR("x.example", "v1", "things")
    things = Collection(gvr, "Thing", True, (Item("sim", "t", "u", codec.encode(thing)),))
    save(replace(settled(), collections={**settled().collections, gvr: things}), tmp_path / "cluster.kcm")
    assert b"hunter2" not in gzip.decompress((tmp_path / "cluster.kcm").read_bytes())
    (saved,) = load(tmp_path / "cluster.kcm").items(gvr)
    assert saved.data == codec.encode(thing).replace(b"hunter2", b"x-1")
    manifest, any_ = as_live(thing, saved.doc)
    assert any_ and codec.encode(manifest) == saved.data


def test_the_manifest_that_was_applied_last_is_saved_without_values(tmp_path: Path) -> None:
    env = [{"name": "A", "value": "hunter2"}]
    manifest = {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}], "nodeName": "n"}}}}
    snapshot = with_pod(last=codec.encode(manifest).decode(), containers=[{"name": "c", "env": env}])
    path = tmp_path / "cluster.kcm"
    save(snapshot, path)
    assert b"hunter2" not in gzip.decompress(path.read_bytes())
    saved = next(item for item in load(path).items(PODS.gvr) if item.name == "x").doc
    notes = saved["metadata"]["annotations"]  # type: ignore[index]
    kept = codec.decode_doc(notes[LAST_APPLIED])
    pod = kept["spec"]["template"]["spec"]  # type: ignore[index]
    assert pod == {"containers": [{"name": "c", "env": [{"name": "A", "value": "x-1"}]}], "nodeName": "n"}
    assert load(path).redacted


def test_a_last_applied_manifest_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "cluster.kcm"
    save(with_pod(containers=[], last="hunter2"), path)
    assert b"hunter2" not in gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_detected(tmp_path: Path, cut: float) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(PlanError, match="the file is cut short"):
        load(path)


class Deep:
    """A value that is nested 5,000 levels."""


def in_first(lines: list[bytes], name: str, value: object) -> bytes:
    """The first line with another value of a field."""
    text = f"{'[' * 5000}{']' * 5000}" if value is Deep else codec.encode(value).decode()
    doc = {key: one for key, one in codec.decode_doc(lines[0]).items() if key != name}
    return codec.encode(doc)[:-1] + f',"{name}":{text}}}'.encode()


def first_object(lines: list[bytes]) -> int:
    """The line of the first object of the first kind that has any."""
    return next(number for number, line in enumerate(lines) if codec.decode_doc(line).get("count")) + 1


def with_node_like_first(lines: list[bytes], metadata: bytes) -> list[bytes]:
    """The lines with the name of the first node, and this before it, for the second one."""
    at = next(number for number, line in enumerate(lines) if line.startswith(b'{"resource":["","v1","nodes"]')) + 1
    name = codec.decode_doc(lines[at])["metadata"]["name"]  # type: ignore[index]
    node = b'{"apiVersion":"v1","kind":"Node","metadata":{%s"name":"%s"}}' % (metadata, str(name).encode())
    return [*lines[: at + 1], node, *lines[at + 2 :]]


def with_first_object(lines: list[bytes], data: bytes) -> list[bytes]:
    """The lines with other data for the first object of the first kind that has any."""
    at = first_object(lines)
    return [*lines[:at], data, *lines[at + 1 :]]


def with_pod_like(lines: list[bytes], data: bytes) -> list[bytes]:
    """The lines with this pod for the first one."""
    at = next(number for number, line in enumerate(lines) if line.startswith(b'{"resource":["","v1","pods"]')) + 1
    head = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},'
    return [*lines[:at], head + data[1:], *lines[at + 1 :]]


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda lines: [lines[0].replace(b'"version":2', b'"version":3'), *lines[1:]], "of a later kcm"),
        (lambda lines: [b"{}", *lines[1:]], "this is no snapshot"),
        (lambda lines: [b"[", *lines[1:]], "the file is damaged"),
        (lambda lines: lines[:-1], "the file is cut short"),
        (lambda lines: lines[: first_object(lines) + 1], "the file is cut short"),
        (lambda lines: lines[: first_object(lines)], "the file is cut short"),
        (lambda lines: [*lines[:-1], b'{"end":1}'], "objects are missing"),
        (lambda lines: [*lines[:-1], b'{"end":"all"}'], "the last line: "),
        (lambda lines: [in_first(lines, "salt", "zz"), *lines[1:]], "salt: it is not hexadecimal"),
        (lambda lines: [in_first(lines, "salt", 7), *lines[1:]], "$.salt"),
        (lambda lines: [in_first(lines, "takenAt", "soon"), *lines[1:]], "takenAt: "),
        (lambda lines: [in_first(lines, "takenAt", "0001-01-01T00:00:00Z"), *lines[1:]], "takenAt: "),
        (lambda lines: [in_first(lines, "takenAt", "9999-12-31T23:59:59Z"), *lines[1:]], "takenAt: "),
        (lambda lines: [in_first(lines, "torn", "pods"), *lines[1:]], "$.torn"),
        (lambda lines: [in_first(lines, "torn", [7]), *lines[1:]], "$.torn[0]"),
        (lambda lines: [in_first(lines, "gaps", [{"resource": []}]), *lines[1:]], "$.gaps[0].resource"),
        (lambda lines: [in_first(lines, "skipped", {}), *lines[1:]], "$.skipped"),
        (lambda lines: [in_first(lines, "version", "2"), *lines[1:]], "$.version"),
        (lambda lines: [in_first(lines, "torn", Deep), *lines[1:]], "the first line: "),
        (lambda lines: [lines[0], b'{"resource":["apps","v1"],"kind":"X"}', *lines[1:]], "$.resource"),
        (lambda lines: [lines[0], b'{"resource":["","v1","pods"],"kind":7}', *lines[1:]], "$.kind"),
        (lambda lines: [lines[0], b'{"resource":["","v1","pods"],"kind":"Pod","count":"3"}'], "$.count"),
        (lambda lines: with_first_object(lines, b'{"metadata":{"name":["x"]}}'), ", object 1: "),
        (lambda lines: with_first_object(lines, b'{"metadata":{"name":""}}'), ", object 1: "),
        (lambda lines: with_first_object(lines, b'{"metadata":7}'), ", object 1: "),
        (
            lambda lines: with_first_object(lines, b'{"metadata":{"name":"a/b"}}'),
            "\"a/b\" is no name: may not contain '/'",
        ),
        (lambda lines: with_first_object(lines, b'{"metadata":{"name":".."}}'), "\"..\" is no name: may not be '..'"),
        (lambda lines: with_pod_like(lines, b'{"spec":{}}'), "pods x: it has no namespace"),
        (
            lambda lines: with_node_like_first(lines, b'"namespace":"sim",'),
            "it has a namespace, and objects of its kind",
        ),
        (lambda lines: with_node_like_first(lines, b""), "nodes node-1: it is there twice"),
        (lambda lines: with_first_object(lines, b"[]"), ", object 1: "),
        (lambda lines: with_first_object(lines, b"null"), ", object 1: "),
        (lambda lines: with_first_object(lines, b'{"metadata":{"name":"x"'), ", object 1: "),
        (lambda lines: with_pod_like(lines, b'{"spec":7}'), "pods x: spec: a number instead of an object"),
        (lambda lines: with_pod_like(lines, b'{"spec":{"containers":{}}}'), "pods x: spec.containers: an object inst"),
        (
            lambda lines: with_pod_like(lines, b'{"spec":{"containers":[null]}}'),
            "pods x: spec.containers[0]: null inst",
        ),
        (
            lambda lines: with_pod_like(lines, b'{"spec":{"nodeName":true}}'),
            "pods x: spec.nodeName: boolean instead of",
        ),
        (
            lambda lines: with_pod_like(lines, b'{"spec":{"priority":2147483648}}'),
            "pods x: spec.priority: a number that does not fit into int32",
        ),
        (
            lambda lines: with_pod_like(lines, b'{"spec":{"activeDeadlineSeconds":-9223372036854775809}}'),
            "pods x: spec.activeDeadlineSeconds: a number that does not fit into int64",
        ),
        (lambda lines: with_pod_like(lines, b'{"status":{"phase":[]}}'), "pods x: status.phase: a list instead of str"),
        (
            lambda lines: with_pod_like(lines, b'{"spec":{"nodeSelector":{"a":{}}}}'),
            "pods x: spec.nodeSelector[a]: an obj",
        ),
        (lambda lines: [lines[0], b'{"resource":["","v1","pods"],"kind":"Pod"}', *lines[1:]], "it is there twice"),
    ],
)
def test_an_unreadable_file_is_one_line(tmp_path: Path, change: object, text: str) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    path.write_bytes(gzip.compress(b"\n".join(change(lines_of(path))) + b"\n"))  # type: ignore[operator]
    with pytest.raises(PlanError) as raised:
        load(path)
    assert text in str(raised.value) and "\n" not in str(raised.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello")
    with pytest.raises(PlanError, match="this is no snapshot"):
        load(tmp_path / "x")
    with pytest.raises(PlanError, match="No such file"):
        load(tmp_path / "y")
    with pytest.raises(PlanError, match="Is a directory"):
        load(tmp_path)


def test_unknown_fields_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "cluster.kcm"
    save(with_pod(containers=[], later={"field": [1, None]}), path)
    saved = next(item for item in load(path).items(PODS.gvr) if item.name == "x").doc
    assert saved["spec"]["later"] == {"field": [1, None]}  # type: ignore[index]


def test_spaces_between_values_change_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "cluster.kcm", tmp_path / "other.kcm"
    save(with_pod(containers=[], later="x["), path)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    other.write_bytes(gzip.compress(b"".join(json.dumps(json.loads(line)).encode() + b"\n" for line in lines)))
    assert load(other) == load(path)


def test_a_line_without_an_end_is_not_read_completely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    monkeypatch.setattr(files, "LONGEST", 500)
    with pytest.raises(PlanError, match="a line is longer than"):
        load(path)


def test_a_negative_count_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    text = re.sub(rb'"count":\d+', b'"count":-3', gzip.decompress(path.read_bytes()), count=1)
    path.write_bytes(gzip.compress(text))
    with pytest.raises(PlanError, match="there are -3 objects of a kind"):
        load(path)


def test_the_whole_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    monkeypatch.setattr(files, "LARGEST", 50_000)
    monkeypatch.setattr(files, "MOST_EXPANSION", 1)
    with pytest.raises(PlanError, match="it takes more than"):
        load(path)


def test_small_objects_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.kcm"
    count = 100_000
    lines = [b'{"format":"kcm-snapshot","version":2,"takenAt":"2026-01-01T00:00:00Z"}']
    lines += [f'{{"resource":["","v1","pods"],"kind":"Pod","count":{count}}}'.encode()]
    lines += [b'{"metadata":{"name":"%d","namespace":"a"}}' % number for number in range(count)]
    path.write_bytes(gzip.compress(b"\n".join([*lines, b""])))
    monkeypatch.setattr(files, "LARGEST", 16 << 20)
    monkeypatch.setattr(files, "MOST_EXPANSION", 1)
    with pytest.raises(PlanError, match="it takes more than 16 MiB"):
        load(path)


def test_a_file_of_version_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    first, *rest = lines_of(path)
    doc = {name: value for name, value in codec.decode_doc(first).items() if name != "redacted"}
    old = codec.encode({**doc, "version": 1, "salt": "0123456789abcdef0123456789abcdef"})
    path.write_bytes(gzip.compress(b"\n".join([old, *rest, b""])))
    assert load(path) == replace(settled(), redacted=True, context=load(path).context)


def test_no_file_or_link_of_others_is_written_to(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "cluster.kcm"
    victim.write_text("mine")
    (tmp_path / f".cluster.kcm.{os.getpid()}.0").symlink_to(victim)
    (tmp_path / f".cluster.kcm.{os.getpid()}.1").write_text("mine, too")
    save(settled(), target)
    assert victim.read_text() == "mine"
    assert (tmp_path / f".cluster.kcm.{os.getpid()}.1").read_text() == "mine, too"
    assert load(target).collections and target.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_lines", full)
    with pytest.raises(OSError, match="No space left"):
        save(settled(), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["cluster.kcm"]


@pytest.mark.parametrize("field", ["later", "apiVersionToo"])
def test_an_object_that_nests_deeply_harms_no_plan(tmp_path: Path, field: str) -> None:
    path = tmp_path / "cluster.kcm"
    save(with_pod(containers=[{"name": "c", "env": [{"name": "A", "value": "v"}]}]), path)
    lines = lines_of(path)
    at = next(number for number, line in enumerate(lines) if b'"name":"x"' in line)
    lines[at] = in_first(lines[at:], field, Deep)
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    answer = plan(load(path), [Scale(Target("deploy", "web", "sim"), 7)], Options(60))
    assert answer.problems == ()
    assert answer.totals.pods_created == 2
    save(load(path), tmp_path / "again.kcm")
    assert load(tmp_path / "again.kcm").size == load(path).size
