"""Every controller reads, plans and reports by these names, and plans are pure."""

import ast
import importlib
import inspect
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Union

import pytest

from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.planning.actions import Plan, Update
from tests.kit.places import ROOT

FOLDER = ROOT / "kcm_cli" / "controllers"
OURS = [descriptor.folder for descriptor in CONTROLLERS if not descriptor.cloud_only]
OTHER_NAMES = {"assess", "decide", "judge", "manage", "for_claim", "for_volume", "Decision", "Draft", "Verdict", "Work"}
"""Former names of plan, status and what they return."""
IMPURE = ("asyncio", "random", "logging", "time", "kcm_cli.engine", "kcm_cli.runtime", "kcm_cli.rest.client")


def modules(folder: Path, *names: str) -> list[Path]:
    """The modules of a controller, or those of its rooms of these names."""
    paths = sorted(folder.rglob("*.py"))
    return [path for path in paths if not names or path.relative_to(folder).parts[0].removesuffix(".py") in names]


def defined(path: Path) -> set[str]:
    """The functions, classes and methods of a module."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


def imported(path: Path) -> set[str]:
    """The modules that a module imports, and what it takes from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def exposed(folder: Path) -> set[str]:
    """What ``from kcm_cli.controllers.NAME.plan import …`` offers: of a package, what its ``__init__`` re-exports."""
    path = folder / "plan.py"
    path = path if path.is_file() else folder / "plan" / "__init__.py"
    return defined(path) | {name.rpartition(".")[2] for name in imported(path)}


PLANNING = [name for name in OURS if modules(FOLDER / name, "plan")]
WITHOUT_PLAN = {
    "replicaset": "planning.replicas",
    "replicationcontroller": "planning.replicas",
    "persistentvolume_protection": "planning.protection",
    "volumeattributesclass_protection": "planning.protection",
    "podgroup_protection": "planning.protection",
    "token_cleaner": "planning.bootstrap_tokens",
    "taint_eviction": "planning.taint_eviction",
    "podcertificaterequest_cleaner": "engine.passes.Cleaner",
    "serviceaccount": "one condition",
    "node_ipam": "a decision takes a range out of the allocator",
}
"""Controllers without a plan of their own, and what decides."""


def test_other_controllers_have_a_plan() -> None:
    assert {*OURS} - {*PLANNING} == WITHOUT_PLAN.keys(), "decide in plan.py, or name what decides in WITHOUT_PLAN"


@pytest.mark.parametrize("name", PLANNING)
def test_a_plan_is_called_plan(name: str) -> None:
    assert any(one == "plan" or one.startswith("plan_") for one in exposed(FOLDER / name))


def plans(paths: Iterable[Path]) -> dict[str, Any]:
    """What the functions ``plan`` and ``plan_*`` of modules return, by module and function."""
    found: dict[str, Any] = {}
    for path in paths:
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for function, made in inspect.getmembers(module, inspect.isfunction):
            if made.__module__ == module.__name__ and (function == "plan" or function.startswith("plan_")):
                found[f"{module.__name__}.{function}"] = typing.get_type_hints(made)["return"]
    return found


def is_decision(type_: Any) -> bool:
    """Whether nothing can be written into a value of the type: an action, a plan, or a frozen value with a name of its
    own."""
    if type_ in (None, type(None), bool, int, float, str, object, Any):
        return True
    parts = [part for part in typing.get_args(type_) if part is not ...]
    if parts:
        whole = typing.get_origin(type_) in (tuple, frozenset, Mapping, Iterator, Union, UnionType)
        return whole and all(map(is_decision, parts))
    frozen = issubclass(type_, Enum) or getattr(getattr(type_, "__struct_config__", None), "frozen", False)
    frozen = frozen or getattr(getattr(type_, "__dataclass_params__", None), "frozen", False)
    return frozen and not type_.__name__.endswith("Plan")


@pytest.mark.parametrize("name", PLANNING)
def test_a_decision_is_frozen_and_is_not_called_a_plan(name: str) -> None:
    found = plans(modules(FOLDER / name, "plan"))
    wrong = {where: type_ for where, type_ in found.items() if not is_decision(type_)}
    assert wrong == {}, "return an action, a plan, or a frozen value whose name does not end in Plan"


def test_shared_plans_are_frozen_too() -> None:
    found = plans((ROOT / "kcm_cli" / "planning").rglob("*.py"))
    assert {"kcm_cli.planning.replicas.plan", "kcm_cli.planning.protection.plan"} <= found.keys()
    assert all(map(is_decision, found.values()))


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (Plan, True),
        (Update | None, True),
        (Iterator[Update], True),
        (Mapping[str, int], True),
        (dict[str, int], False),
        (list[Update], False),
        (tuple[list[Update], ...], False),
        (bytearray, False),
    ],
)
def test_what_a_decision_is(type_: Any, expected: bool) -> None:  # a column of a table
    assert is_decision(type_) is expected


@pytest.mark.parametrize("name", PLANNING)
def test_a_status_is_called_status(name: str) -> None:
    """A room for it is only needed where it is more than a few lines."""
    if any(path.stem == "status" for path in modules(FOLDER / name, "plan")):
        assert "status" in exposed(FOLDER / name)


@pytest.mark.parametrize("name", OURS)
def test_a_snapshot_is_read_by_read(name: str) -> None:
    folder = FOLDER / name
    if any("Snapshot" in defined(path) for path in modules(folder, "plan")):
        assert any({"read", "_read"} & defined(path) for path in modules(folder))


@pytest.mark.parametrize("name", OURS)
def test_no_former_name_is_used(name: str) -> None:
    assert {(path.name, one) for path in modules(FOLDER / name) for one in defined(path) & OTHER_NAMES} == set()


@pytest.mark.parametrize("name", OURS)
def test_plans_are_pure(name: str) -> None:
    """As import-linter has it, which follows imports of imports, too."""
    for path in modules(FOLDER / name, "plan", "config"):
        assert not any(one == bad or one.startswith(f"{bad}.") for one in imported(path) for bad in IMPURE), path
        assert not any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(ast.parse(path.read_text()))), path
