"""Reads the manager's flags from its configuration: a systemd unit, a static pod, or a component configuration.

Only flags that affect controllers are kept. Those about the API server, serving, leader election and key files do not
matter in a twin.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from kcm_cli.machinery.documents import nested_list, nested_str
from kcm_cli.machinery.yaml_errors import described, load_all
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.options import bindings, flag_set
from kcm_cli.plan.snapshot import PlanError

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


def manager_flags(path: str) -> tuple[str, ...]:
    """The flags that matter in a twin. Raises PlanError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"--flags-from: cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if "ExecStart=" in text:
        return _kept(_of_unit(text, path), path)
    try:
        docs = [doc for doc in load_all(text) if isinstance(doc, dict)]
    except yaml.YAMLError as error:
        raise PlanError(f"--flags-from: {path}: not YAML: {described(error)}") from None
    for doc in docs:
        if doc.get("kind") == COMPONENT_CONFIG.kind:
            return (f"--config={path}",)
        if doc.get("kind") == "Pod":
            return _kept(_of_pod(doc, path), path)
    raise PlanError(f"--flags-from: {path} is no systemd unit, no Pod and no {COMPONENT_CONFIG.kind}")


def _of_unit(text: str, path: str) -> list[str]:
    lines = text.replace("\\\n", " ").splitlines()
    commands = [line.partition("=")[2] for line in lines if line.strip().startswith("ExecStart=")]
    try:
        words = shlex.split(next((one for one in reversed(commands) if one.strip()), ""))
    except ValueError as error:
        raise PlanError(f"--flags-from: {path}: ExecStart: {error}") from None
    return words[1:]


def _of_pod(doc: dict[str, Any], path: str) -> list[str]:
    for container in nested_list(doc, "spec", "containers"):
        words = [*nested_list(container, "command"), *nested_list(container, "args")]
        named = nested_str(container, "name") == "kube-controller-manager"
        if named or any("controller-manager" in str(word) or str(word).endswith("kcm") for word in words[:1]):
            return [str(word) for word in words]
    raise PlanError(f"--flags-from: {path}: no container of the Pod is a controller manager")


def _kept(words: Sequence[str], path: str) -> tuple[str, ...]:
    flags = flag_set()
    parsed = flags.parse([word for word in words if not word.endswith("controller-manager")])
    if parsed.problems:
        raise PlanError("\n".join(f"--flags-from: {path}: {problem}" for problem in parsed.problems))
    kept = []
    for name, value in parsed.values.items():
        if _matters(name):
            kept.append(f"--{name}={flags[name].kind.show(value).removeprefix('[').removesuffix(']')}")
    return tuple(kept)


def _matters(name: str) -> bool:
    if name in _KEPT:
        return True
    of_component = any(one.option.name == name and one.path[:1] == ("component",) for one in bindings())
    return of_component and not any(word in name for word in _DROPPED_WORDS)
