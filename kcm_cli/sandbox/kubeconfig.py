"""Writes kubeconfig files.

An existing file keeps its other clusters: the sandbox's entries are merged into it, and its current context is set, as
``kubectl config`` would do. An invalid file is not changed.
"""

import errno
import os
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from kcm_cli.component.files import replaced
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.formats import base64_text
from kcm_cli.machinery.yaml_errors import load
from kcm_cli.sandbox.apiserver.security.certificates import KeyPair

CLUSTER = "kcm-sandbox"
_LISTS = ("clusters", "users", "contexts")
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def document(name: str, url: str, ca: bytes, user: Doc) -> Doc:
    """A kubeconfig with one cluster, and one user and context of this name."""
    cluster: Doc = {"server": url, "certificate-authority-data": base64_text(ca)}
    context: Doc = {"cluster": CLUSTER, "user": name}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def identity(pair: KeyPair) -> Doc:
    """A kubeconfig user with this certificate."""
    return {"client-certificate-data": base64_text(pair.certificate), "client-key-data": base64_text(pair.key)}


def join(path: Path, ours: Doc) -> None:
    """Merge entries into a file, which is created if it does not exist. Into what is no file, such as /dev/stdout, the
    entries alone are written. Raises OSError, ValueError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""  # a device may be read without end
    write(path, joined(_read(path, text), ours) if text.strip() else ours)


def usual() -> str:
    """The path of the kubeconfig to use: that of KUBECONFIG, or those of its files that exist, which are read together
    (``rest.kubeconfig.read``); by default ~/.kube/config. If the user's home is not known, "~" stays in the path."""
    named = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    there = [name for name in named if os.path.isfile(name)]
    if there:
        return os.pathsep.join(dict.fromkeys(there))
    return next(iter(named), os.path.expanduser("~/.kube/config"))


def missing(path: str) -> str:
    """The error about a kubeconfig of ``usual`` that does not exist, or is in a folder of another user; empty if there
    is one, which may be a pipe."""
    there = any(os.path.exists(one) for one in (path, *path.split(os.pathsep)))
    return "" if there else f"there is no kubeconfig {path}: --kubeconfig or KUBECONFIG names one"


def of_cluster(given: str) -> tuple[str, str]:
    """(the path of the kubeconfig of the cluster to read, the error if there is none). The path is empty in a pod that
    has no kubeconfig, for its service account. given: the value of --kubeconfig."""
    path = given or usual()
    problem = "" if given else missing(path)
    if problem and not os.environ.get("KUBECONFIG", "").strip(os.pathsep) and "KUBERNETES_SERVICE_HOST" in os.environ:
        return "", ""
    return path, problem


def joined(there: Doc, ours: Doc) -> Doc:
    """The existing document with these entries, which replace those of the same names. Raises ValueError."""
    result = {**ours, **there, "current-context": ours["current-context"]}
    for key in _LISTS:
        entries, new = _named(there.get(key), key), _named(ours[key], key)
        kept = [new.pop(name, entry) for name, entry in entries.items()]
        result[key] = [*kept, *new.values()]
    return result


def write(path: Path, config: Doc) -> None:
    """Write a file with mode 0600, atomically. A device or a pipe is written to, not replaced. Raises OSError."""
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            _dump(config, device)
        return
    target = path.resolve()
    if target.exists() and not os.access(target, os.W_OK):  # replacing it would need the folder's leave only
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    with replaced(target) as file:
        _dump(config, file)


def _dump(config: Doc, file: BinaryIO) -> None:
    yaml.dump(config, file, Dumper=_Dumper, sort_keys=False, encoding="utf-8")


def _read(path: Path, text: str) -> Doc:
    try:
        found = load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is there already and is not YAML") from error
    if not isinstance(found, dict) or found.get("kind", "Config") != "Config":
        raise ValueError(f"{path} is there already and is no kubeconfig")
    return found


def _named(entries: object, key: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for entry in entries if isinstance(entries, list) else []:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise ValueError(f"the kubeconfig that is there already has an entry without name in {key}")
        found.setdefault(name, entry)
    return found
