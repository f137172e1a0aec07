"""Manifests that are applied to a sandbox, and the report about its objects."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from kcm_cli.sandbox.manifests import ManifestError, documents, parsed
from kcm_cli.testing.sandbox import HostOptions, Sandbox, SandboxError

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sites.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Site", "plural": "sites"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
SITE = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "home"}}
CONFIG = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}, "stringData": {"a": "b"}}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(HostOptions(controllers=False, nodes=1)) as made:
        yield made


def test_a_custom_resource_right_behind_its_definition(sandbox: Sandbox) -> None:
    sandbox.make_namespace("a")
    sandbox.apply(CRD, SITE, namespace="a")
    assert "sites:\n  NAME  AGE\n  home  " in sandbox.report("a")


@pytest.mark.parametrize("name", ["a.yaml", "a*"])
def test_a_link_to_nothing_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("nothing")
    with pytest.raises(ManifestError, match="^cannot read .*No such file"):
        list(documents(tmp_path / name))


def test_files_folders_and_lists(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(
        "---\n" + yaml.safe_dump_all([{"kind": "List", "apiVersion": "v1", "items": [CONFIG]}, None])
    )
    (tmp_path / "README.md").write_text("[")
    sandbox.make_namespace("b")
    sandbox.apply(tmp_path, namespace="b")
    sandbox.apply(str(tmp_path / "all.yaml"), namespace="b")
    assert "secrets:\n  NAME  TYPE    DATA  AGE\n  c     Opaque  1     " in sandbox.report("b")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"kind": "A"}\n{"kind": "B"}\n', ["A", "B"]),
        ('  {"kind": "A"}{"kind": "List", "items": [{"kind": "B"}, {"kind": "C"}]}', ["A", "B", "C"]),
        ('{"kind": "A"}\n---\n{"kind": "B"}\n', ["A", "B"]),
        ('{"kind": "A"}\n---\nkind: B\n', ["A", "B"]),
        ("{kind: A}", ["A"]),
        ('{"kind": "A", "n": NaN}', ["A"]),
        ("", []),
        ("\n", []),
    ],
)
def test_json_objects_one_after_another(text: str, names: list[str]) -> None:
    assert [doc["kind"] for _, doc in parsed(text.encode(), "f")] == names


def test_a_number_beyond_all_floats_is_not_infinite() -> None:
    ((_, doc),) = parsed(b'{"kind": "A", "n": 1e999}', "f")
    assert doc["n"] == "1e999"


def test_half_of_a_surrogate_pair_in_json() -> None:
    ((_, doc),) = parsed(rb'{"kind": "A", "n": "\ud800x\ud83d\ude00\\ud800"}', "f")
    assert doc["n"] == "\ufffdx\U0001f600\\ud800"


@pytest.mark.parametrize("text", [r'n: "\ud800"', r'"\udfff": n', r'n: "\U00110000"'])
def test_an_escape_of_no_character_in_yaml(text: str) -> None:
    problem = "f, document 1: yaml: line 2: found invalid Unicode character escape code"
    with pytest.raises(ManifestError, match=problem):
        list(parsed(f"kind: A\n{text}".encode(), "f"))


def test_scalars_are_those_of_upstream() -> None:
    ((_, doc),) = parsed(b"{kind: A, a: 12:30:45, b: 2030-01-01, c: 1e3, d: 0o7, e: y, 1: f, g: =}", "f")
    assert doc == {"kind": "A", "a": "12:30:45", "b": "2030-01-01", "c": 1000, "d": 7, "e": True, "1": "f", "g": "="}


@pytest.mark.parametrize(
    "data",
    ["\ufeffkind: A\r\n".encode("utf-16-le"), "\ufeffkind: A\r\n".encode("utf-16-be"), b"# \xe9\nkind: A\n"]
    + ['\ufeff{"kind": "A"}'.encode("utf-16-le"), "\ufeffkind: A\n---\n".encode()],
    ids=["PowerShell", "big endian", "Latin-1", "JSON", "UTF-8"],
)
def test_encodings_are_those_of_kubectl(data: bytes) -> None:
    assert list(parsed(data, "f")) == [("f, document 1", {"kind": "A"})]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("kind: List\nitems: []\n", []),
        ("kind: Things\nitems: [{kind: A}, {kind: List, items: [{kind: B}]}]\n", ["A", "B"]),
        ("items: []\n", [None]),
        ("kind: Thing\nitems: {a: b}\n", ["Thing"]),
    ],
    ids=["empty", "of any kind", "without a kind", "no list"],
)
def test_what_has_items_is_a_list(text: str, kinds: list[str | None]) -> None:
    """As for kubectl."""
    assert [doc.get("kind") for _, doc in parsed(text.encode(), "f")] == kinds


def test_a_list_whose_items_are_null_is_refused_as_by_kubectl() -> None:
    """A template writes ``items:`` above a loop over nothing."""
    with pytest.raises(ManifestError, match=r"f, document 1: the items of this List are null, which kubectl refuses"):
        list(parsed(b"kind: List\napiVersion: v1\nitems:\n", "f"))


def test_documents() -> None:
    text = "\ufeff# c\n---\n---\t# c\r\nkind: A\n--- {kind: B}\n--- null\n...\n%YAML 1.1\n---\nkind: C\n---\n"
    assert list(parsed(text.encode(), "f")) == [
        (f"f, document {n}", {"kind": kind}) for n, kind in ((2, "A"), (3, "B"), (5, "C"))
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"kind": "A"} {"kind"', "f, document 2: yaml: did not find expected", id="cut"),
        pytest.param('{"kind": "A"} B', "f, document 2: yaml: did not find expected", id="no object"),
        pytest.param('{"a":' * 100_000, "f is nested too deep", id="deep"),
    ],
)
def test_json_that_is_none(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        list(parsed(text.encode(), "f"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "document 1: yaml: line 1: did not find expected node content", id="syntax"),
        pytest.param("[]", "document 1: it is no object", id="list"),
        pytest.param(
            "{apiVersion: v1, kind: Nope}",
            r'1: kind "Nope" of version "v1" is not served \(apply its CustomResourceDefinition first\)',
            id="kind",
        ),
        pytest.param("{apiVersion: v1, kind: secret}", r"not served \(did you mean Secret\?\)", id="lower"),
        pytest.param("{apiVersion: v1, kind: Confgmap}", r"not served \(did you mean ConfigMap\?\)", id="typo"),
        pytest.param("{apiVersion: v1, kind: Deployment}", r"served \(this kind is in apps/v1\)", id="version"),
        pytest.param("{apiVersion: v1, kind: Secret}", "document 1: metadata.name is missing", id="name"),
        pytest.param(
            "{apiVersion: v1, kind: Secret, metadata: {name: c, namespace: nowhere}}",
            'document 1: namespaces "nowhere" not found',
            id="refused",
        ),
    ],
)
def test_errors_name_the_file(sandbox: Sandbox, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=message) as error:
        sandbox.apply(path)
    assert str(path) in str(error.value)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghijkl")
)

MERGES = "a0: &a0 {k: v, l: w}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 20)}]}}\n" for level in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(BOMB, "document 1: yaml: document contains excessive aliasing", id="bomb"),
        pytest.param(MERGES, "document 1: yaml: document contains excessive aliasing", id="merges"),
        pytest.param("a: &a {<<: *a}", "yaml: anchor 'a' value contains itself", id="merges itself"),
        pytest.param("a: &a {b: *a}", "yaml: anchor 'a' value contains itself", id="circle"),
        pytest.param("a: &a {b: c}\nd: [*a, *a]\n---\nb: c\nd: [", "document 2: yaml: line 5: ", id="line"),
        pytest.param("a: b\n--- c\n", "x.yaml, document 2: it is no object", id="text"),
        pytest.param("[" * 5000, "document 1: yaml: exceeded max depth", id="deep"),
    ],
)
def test_yaml_that_is_not_an_object(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        list(parsed(text.encode(), "x.yaml"))


def test_ordinary_aliases() -> None:
    items = "[" + ", ".join(["*m"] * 5000) + "]"
    (_, found), *_ = parsed(f"a: &m {{k: v}}\nb: {items}\n".encode(), "x.yaml")
    assert found == {"a": {"k": "v"}, "b": [{"k": "v"}] * 5000}


def test_ordinary_merges() -> None:
    text = "base: &b {k: v, l: w}\nmore: &m {<<: *b, l: x}\nall: {<<: [*m, {o: z}]}\n"
    (_, found), *_ = parsed(text.encode(), "x.yaml")
    assert found["all"] == {"k": "v", "l": "x", "o": "z"}


@pytest.mark.parametrize(
    "text", ["resources: [a.yaml]", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization"]
)
def test_a_folder_for_kustomize_says_how_it_is_applied(tmp_path: Path, text: str) -> None:
    (tmp_path / "kustomization.yaml").write_text(text)
    (tmp_path / "a.yaml").write_text(json.dumps(CONFIG))
    with pytest.raises(ManifestError, match=f"kustomization.yaml is for kustomize: .*kubectl kustomize {tmp_path}"):
        list(documents(tmp_path))


def test_a_missing_file(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestError, match="cannot read nope.yaml: No such file"):
        sandbox.apply("nope.yaml")


def test_a_start_with_manifests_that_fails_leaves_nothing(tmp_path: Path) -> None:
    sandbox = Sandbox(HostOptions(nodes=0, controllers=False, manifests=(SITE,)))
    with pytest.raises(ManifestError):
        sandbox.start()
    assert not Path(sandbox.kubeconfig).exists()


def test_the_report_has_nodes_pods_and_events_newest_last(sandbox: Sandbox) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    sandbox.make_namespace("c")
    sandbox.apply(pod, namespace="c")
    sandbox.advance(5)
    message = sandbox.report("c")
    assert "nodes:\n  NAME    STATUS" in message
    assert "\n  p     1/1    Running  0 " in message
    assert message.index("Scheduled") < message.index("Started")


def test_a_sandbox_that_has_ended_has_no_report() -> None:
    sandbox = Sandbox(HostOptions(controllers=False, nodes=0))
    assert sandbox.report() == "no report can be given: the sandbox is not running"


def test_a_sandbox_that_has_not_started_has_no_report() -> None:
    sandbox = Sandbox(HostOptions(controllers=False, nodes=0))
    for call in (sandbox.add_node, sandbox.now, sandbox.snapshot, lambda: sandbox.apply({"kind": "ConfigMap"})):
        with pytest.raises(SandboxError, match="the sandbox is not running"):
            call()


def test_a_text_is_no_manifest(sandbox: Sandbox) -> None:
    with pytest.raises(
        ManifestError, match=r"is the path of a file or folder, or an object, not YAML: yaml\.safe_load"
    ):
        sandbox.apply("apiVersion: v1\nkind: ConfigMap\n")
    with pytest.raises(ManifestError, match="^cannot read .*: File name too long$"):
        sandbox.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x" * 300}}))


def test_a_kind_with_a_typo_is_guessed(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match=r"no kind 'deploymnt' \(did you mean Deployment\?\)"):
        sandbox.get("deploymnt", "web")
    with pytest.raises(ValueError, match=r"no kind 'xyzzy' \(a custom one needs its CustomResourceDefinition\)"):
        sandbox.list("xyzzy")
