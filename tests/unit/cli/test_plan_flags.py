"""The command line of ``kcm plan``: contradictions, and the order in which manifests are applied."""

import os
from pathlib import Path

import pytest

from kcm_cli.cli.plan_flags import FLAGS, Command, help_text, read
from kcm_cli.plan import Apply, Delete, Drain, FailNode, RemoveNode, Target

DEFINITION = "kind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n"
THING = "kind: Thing\nmetadata: {name: one}\n"


def command(*words: str) -> tuple[Command | None, list[str]]:
    return read(FLAGS.parse(list(words)), ())


@pytest.mark.parametrize("columns", [60, 80, 118, 160])
def test_the_help_follows_the_width_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = [line for line in help_text().splitlines() if not line.startswith("  kcm plan ")]
    assert max(len(line) for line in lines) <= columns
    assert len(lines[0]) > columns - 20
    assert "\x1b" not in help_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--scale=deploy/web=3", "--delete=deploy/web"), "--delete: deploy/web is also to be scaled"),
        (("--set-image=deploy/web=a:1", "--delete=deploy/web"), "--delete: deploy/web is also to be changed"),
        (("--scale=deploy/web=3", "--scale=deploy/web=4"), "--scale: deploy/web is to have 3 and 4 replicas"),
        (("--remove-node=a", "--drain=a"), "--remove-node: a is also to be drained"),
        (("--remove-node=a", "--fail-node=a"), "--remove-node: a is also to be failing"),
        (("--cascade=never", "--delete=deploy/web"), '--cascade: "never" is not one of background, foreground, orphan'),
        (("--for=0",), "--for: look ahead by more than nothing and less than a year"),
        (("--seeds=0",), "--seeds: 0 is not between 1 and 1000"),
    ],
)
def test_contradicting_flags_are_one_error_line(words: tuple[str, ...], problem: str) -> None:
    assert command(*words) == (None, [problem])


def test_compatible_flags() -> None:
    found, problems = command("--scale=deploy/web=3", "--scale=deploy/web=3", "--fail-node=a", "--drain=a")
    assert problems == [] and found is not None and len(found.changes) == 4


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (("--drain=a,b", "--drain=c"), ["a", "b", "c"]),
        (("--drain=pool=blue,zone!=a",), ["pool=blue,zone!=a"]),
        (("--drain=pool=blue", "--drain=zone=a"), ["pool=blue", "zone=a"]),
        (("--drain=zone in (a, b),!spot",), ["zone in (a, b),!spot"]),
        (("--drain=node-role.kubernetes.io/worker",), ["node-role.kubernetes.io/worker"]),
    ],
)
def test_nodes_are_names_or_one_selector(words: tuple[str, ...], nodes: list[str]) -> None:
    """As for kubectl, whose selectors have commas that mean *and*: they are no two selectors."""
    for flag in ("drain", "fail-node", "remove-node"):
        found, problems = command(*(word.replace("drain", flag) for word in words))
        assert problems == [] and found is not None
        assert [one.node for one in found.changes if isinstance(one, Drain | FailNode | RemoveNode)] == nodes


def test_a_folder_without_manifests_is_an_error(tmp_path: Path) -> None:
    assert command("-f", str(tmp_path)) == (None, [f"-f: there are no manifests in {tmp_path}"])


LISTS = ("filename", "drain", "delete", "scale", "fail-on")
EMPTY = [(name, value) for name in (*LISTS, "snapshot", "compare", "save", "flags-from") for value in ("", " ")]


@pytest.mark.parametrize(("name", "value"), [*EMPTY, *((name, ",") for name in LISTS)])
def test_a_flag_that_names_nothing_is_an_error(name: str, value: str) -> None:
    """As of a variable that is not set: -f "$FILES" is no takeover audit, and --fail-on "$WHAT" no check."""
    found, problems = command(f"--{name}={value}")
    assert found is None and f"--{name}: its value is empty" in problems


def test_a_file_without_its_flag(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(THING)
    path = str(tmp_path / "a.yaml")
    hint = f"unexpected argument: {path} (manifests are named by -f: -f {path})"
    assert command("-f", path, path, "x") == (None, [hint, "unexpected argument: x (see kcm plan --help)"])


def test_urls_are_not_read() -> None:
    url = "https://example.com/app.yaml"
    assert command("-f", url) == (None, [f"-f: kcm reads no URL: curl -sL {url} | kcm plan -f -"])


def test_patterns_and_folders_are_those_of_kubectl(tmp_path: Path) -> None:
    """Of a folder, the files in it; of a pattern that no shell has replaced, what it names."""
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "folder.yaml" / "b.yaml").write_text(THING)
    (tmp_path / "a.yaml").write_text(THING)
    for word, count in ((tmp_path, 1), (f"{tmp_path}/a*", 1), (f"{tmp_path}/*.yaml", 2), (f"{tmp_path}/*/b.*", 1)):
        found, problems = command("-f", str(word))
        assert problems == [] and found is not None and len(found.changes) == count
    assert command("-f", f"{tmp_path}/c*")[1] == [f"cannot read {tmp_path}/c*: No such file or directory"]


def test_items_of_a_list_have_the_type_that_it_implies(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}, {kind: Node, apiVersion: v1}]\n---\n"
        "kind: List\nitems: [{metadata: {name: b}}]\n"
    )
    found, _ = command("-f", str(tmp_path))
    assert found is not None
    types = [(one.doc.get("apiVersion"), one.doc.get("kind")) for one in found.changes if isinstance(one, Apply)]
    assert types == [("v1", "Pod"), ("v1", "Node"), (None, None)]


def test_definitions_precede_their_objects(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(THING)
    (tmp_path / "b.yaml").write_text(DEFINITION)
    found, _ = command("-f", str(tmp_path))
    assert found is not None
    kinds = [change.doc["kind"] for change in found.changes if isinstance(change, Apply)]
    assert kinds == ["CustomResourceDefinition", "Thing"]


def test_too_deep_nesting_is_one_error_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("[" * 100_000)
    _, (problem,) = command("-f", str(tmp_path))
    assert "exceeded max" in problem


@pytest.mark.parametrize("kind", ["[Namespace]", "{a: b}", "5"])
def test_a_kind_that_is_no_text_is_left_to_the_plan(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"kind: {kind}\nmetadata: {{name: a}}\n")
    found, problems = command("-f", str(tmp_path))
    assert problems == [] and found is not None and len(found.changes) == 1


@pytest.mark.parametrize(
    ("word", "flag"),
    [
        ("--selector=a=\udcff", "--selector"),
        ("--set-image=deploy/web=\udcff", "--set-image"),
        ("--namespace=\udcff", "--namespace"),
        ("--drain=a=\udcff", "--drain"),
    ],
)
def test_a_word_that_is_no_text_is_one_error_line(word: str, flag: str) -> None:
    found, (problem,) = command(word)
    assert found is None and problem.startswith(f"{flag}: ") and problem.endswith("is not UTF-8")


def test_a_path_need_not_be_text(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml")
    Path(path).write_text(THING)
    found, problems = command("-f", path)
    assert problems == [] and found is not None
    (change,) = found.changes
    assert isinstance(change, Apply) and change.where.endswith("\\udcff.yaml, document 1")


def test_dependents_of_deleted_objects() -> None:
    found, _ = command("--delete=deploy/web", "--cascade=orphan")
    assert found is not None
    assert found.changes == (Delete(Target("deploy", "web"), "Orphan"),)
