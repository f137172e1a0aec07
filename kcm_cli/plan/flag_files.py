"""Reads the manager's flags from its configuration: a systemd unit, a static pod, or a component configuration.

Only flags that affect controllers are kept. Those about the API server, serving, leader election and key files do not
matter in a twin. Variables are replaced where the same file sets them, as systemd and the kubelet do it; one that a
kept flag needs and the file does not set is an error, since a plan with other flags than the manager's would be wrong.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.yaml_errors import described, load_all
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.options import bindings, flag_set
from kcm_cli.plan.snapshot import PlanError
from kcm_cli.sandbox.nodes.expansion import expand, references

_KEPT = frozenset(("controllers", "config", "feature-gates", "kube-api-qps", "kube-api-burst", "min-resync-period"))
_DROPPED_WORDS = (
    "file",
    "kubeconfig",
    "key",
    "cert",
    "leader-",
    "credentials",
    "address",
    "port",
    "profiling",
    "-dir",
    "cloud",
)
_UNIT = re.compile(r"[ \t]*ExecStart[ \t]*=")
_UNIT_WORD = re.compile(r"\$(\w+)", re.ASCII)
_UNIT_VARIABLE = re.compile(r"\$\$|\$\{(\w+)\}", re.ASCII)
_HOW = "write its value into a copy of the file, or give --controllers"

_Found = tuple[list[str], set[str]]
"""The words of a command, and the references in them to variables that the file does not set."""


def manager_flags(path: str) -> tuple[str, ...]:
    """The flags that matter in a twin. Raises PlanError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"--flags-from: cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if any(map(_UNIT.match, text.splitlines())):
        return _kept(*_of_unit(text, path), path)
    try:
        docs = [doc for doc in load_all(text) if isinstance(doc, dict)]
    except yaml.YAMLError as error:
        raise PlanError(f"--flags-from: {path}: not YAML: {described(error)}") from None
    for doc in docs:
        if doc.get("kind") == COMPONENT_CONFIG.kind:
            return (f"--config={path}",)
        if doc.get("kind") == "Pod":
            return _kept(*_of_pod(doc, path), path)
    raise PlanError(f"--flags-from: {path} is no systemd unit, no Pod and no {COMPONENT_CONFIG.kind}")


def _of_unit(text: str, path: str) -> _Found:
    """The arguments of the last ExecStart, with the variables of Environment: ``$NAME`` alone is any number of words,
    ``${NAME}`` a part of one, and ``$$`` a dollar sign. upstream: systemd.service(5), "Command lines"."""
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    known: dict[str, str] = {}
    commands: list[str] = []
    for line in lines:
        name, _, value = line.partition("=")
        if name.rstrip() == "ExecStart":
            commands.append(value)
        elif name.rstrip() == "Environment":
            known = {**known, **_assigned(value, path)} if value.strip() else {}
    words = _split(next((one for one in reversed(commands) if one.strip()), ""), "ExecStart", path)
    found: list[str] = []
    unset: set[str] = set()
    for word in words[1:]:
        if (alone := _UNIT_WORD.fullmatch(word)) is None:
            unset |= {one[0] for one in _UNIT_VARIABLE.finditer(word) if one[1] and one[1] not in known}
            found.append(_UNIT_VARIABLE.sub(lambda one: known.get(one[1], one[0]) if one[1] else "$", word))
        elif alone[1] in known:
            found += known[alone[1]].split()
        else:
            raise PlanError(f"--flags-from: {path}: ExecStart has {word}, which the file does not set: {_HOW}")
    return found, unset


def _assigned(value: str, path: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in _split(value, "Environment", path))
    return {name: text for name, equals, text in pairs if equals}


def _split(value: str, field: str, path: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise PlanError(f"--flags-from: {path}: {field}: {error}") from None


def _of_pod(doc: dict[str, Any], path: str) -> _Found:
    for container in nested_list(doc, "spec", "containers"):
        words = [str(word) for word in (*nested_list(container, "command"), *nested_list(container, "args"))]
        named = nested_str(container, "name") == "kube-controller-manager"
        if named or any("controller-manager" in word or word.endswith("kcm") for word in words[:1]):
            return _expanded(words, nested_list(container, "env"), path)
    raise PlanError(f"--flags-from: {path}: no container of the Pod is a controller manager")


def _expanded(words: list[str], variables: Iterable[object], path: str) -> _Found:
    """``variables``: those of the container; each is expanded with the ones before it."""
    known: dict[str, str] = {}
    unset: set[str] = set()
    for variable in map(nested_map, variables):
        name, value = nested_str(variable, "name"), variable.get("value") or ""
        if variable.get("valueFrom") or not isinstance(value, str):
            known.pop(name, None)
        else:
            known[name] = _with_values(value, known, unset, path)
    return [_with_values(word, known, unset, path) for word in words], unset


def _with_values(text: str, known: Mapping[str, str], unset: set[str], path: str) -> str:
    """The text as kubelets expand it. Adds references without a value to ``unset``."""
    unset.update(f"$({name})" for name in references(text) if name not in known)
    found = expand(text, known)
    if found is None:
        raise PlanError(f"--flags-from: {path}: {text[:40]} is too long with the values of its variables")
    return found


def _kept(words: Sequence[str], unset: Iterable[str], path: str) -> tuple[str, ...]:
    flags = flag_set()
    parsed = flags.parse([word for word in words if not word.endswith("controller-manager")])
    if parsed.problems:
        raise PlanError("\n".join(f"--flags-from: {path}: {problem}" for problem in parsed.problems))
    kept = []
    for name, value in parsed.values.items():
        if _matters(name):
            shown = flags[name].kind.show(value).removeprefix("[").removesuffix("]")
            if (missing := next((one for one in unset if one in shown), None)) is not None:
                raise PlanError(f"--flags-from: {path}: --{name} has {missing}, which the file does not set: {_HOW}")
            kept.append(f"--{name}={shown}")
    return tuple(kept)


def _matters(name: str) -> bool:
    if name in _KEPT:
        return True
    of_component = any(one.option.name == name and one.path[:1] == ("component",) for one in bindings())
    return of_component and not any(word in name for word in _DROPPED_WORDS)
