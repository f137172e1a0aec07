"""Snapshots as files."""

import gzip
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.plan import PlanError, files, load, save
from kcm_cli.plan.files import digest, without_env
from kcm_cli.plan.snapshot import Collection, Item, Snapshot
from kcm_cli.sandbox.views import PODS
from tests.unit.plan.clusters import settled


def with_pod(**spec: object) -> Snapshot:
    """The settled cluster with one pod more, of this spec."""
    doc = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "sim", "annotations": {LAST_APPLIED: "secret", "kept": "1"}},
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
    assert replace(read, salt="", context=settled().context) == settled()
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


def test_neither_values_of_env_nor_last_applied_are_saved(tmp_path: Path) -> None:
    env = [{"name": "A", "value": "hunter2"}, {"name": "B", "value": "hunter2"}, {"name": "C", "value": "other"}]
    env += [{"name": "D"}, {"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]  # type: ignore[dict-item]
    containers = [{"name": "c", "image": "i", "env": env}]
    path = tmp_path / "cluster.kcm"
    save(with_pod(containers=containers, initContainers=containers), path)
    text = gzip.decompress(path.read_bytes())
    assert b"hunter2" not in text and LAST_APPLIED.encode() not in text
    saved = next(item for item in load(path).items(PODS.gvr) if item.name == "x").doc
    assert saved["metadata"]["annotations"] == {"kept": "1"}  # type: ignore[index]
    for field in ("containers", "initContainers"):
        one, same, other, none, from_ = saved["spec"][field][0]["env"]  # type: ignore[index]
        assert one["value"] == same["value"] != other["value"]
        assert none == {"name": "D"} and "value" not in from_


def test_nested_templates_are_redacted() -> None:
    pod = {"containers": [{"env": [{"name": "A", "value": "v"}]}]}
    doc = {"data": {"spec": {"template": {"spec": pod}}}}
    without_env(doc, "00")
    assert pod["containers"][0]["env"][0]["value"] == digest("v", "00")


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_detected(tmp_path: Path, cut: float) -> None:
    path = tmp_path / "cluster.kcm"
    save(settled(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(PlanError, match="the file is cut short"):
        load(path)


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda lines: [lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]], "of a later kcm"),
        (lambda lines: [b"{}", *lines[1:]], "this is no snapshot"),
        (lambda lines: [b"[", *lines[1:]], "the file is damaged"),
        (lambda lines: lines[:-1], "the file is cut short"),
        (lambda lines: [*lines[:-1], b'{"end":1}'], "objects are missing"),
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
