"""The folder for ``KUBEBUILDER_ASSETS``: kube-apiserver, etcd and kubectl as small scripts.

There is one folder for each interpreter and set of flags, in the user's cache directory. It is kept.
"""

import errno
import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kcm_cli.component.files import replaced

FLAGS = "KCM_SANDBOX_FLAGS"
"""The variable with the sandbox's flags, which replaces those of the folder."""
_APISERVER = """#!/bin/sh
# kube-apiserver of kcm's sandbox, written by: kcm sandbox assets
: "${{{variable}={flags}}}"
export {variable}
exec {python} -P -m kcm_cli.cli.kube_apiserver "$@"
"""
_ETCD = """#!/bin/sh
# etcd of kcm's sandbox, written by: kcm sandbox assets
exec {python} -ISE {etcd} "$@"
"""
_NO_KUBECTL = """#!/bin/sh
echo 'Error: kubectl is not on PATH; install it, then run kcm sandbox assets again' >&2
exit 1
"""


def write(flags: Sequence[str], target: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Write the folder for these flags of the sandbox; returns its path. target: by default in the cache. Raises
    OSError."""
    scripts = {
        "kube-apiserver": _APISERVER.format(
            variable=FLAGS, flags=_in_quotes(shlex.join(flags)), python=shlex.quote(sys.executable)
        ),
        "etcd": _ETCD.format(
            python=shlex.quote(sys.executable), etcd=shlex.quote(str(Path(__file__).with_name("etcd.py")))
        ),
    }
    kubectl = shutil.which("kubectl", path=environ.get("PATH"))
    scripts["kubectl"] = f'#!/bin/sh\nexec {shlex.quote(kubectl)} "$@"\n' if kubectl else _NO_KUBECTL
    folder = (target or _cache(environ) / _digest(scripts)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in scripts.items():
        _put(folder / name, text)
    return folder


def _cache(environ: Mapping[str, str]) -> Path:
    cache = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.expanduser("~/.cache")
    if not os.path.isabs(cache):
        raise FileNotFoundError(errno.ENOENT, "there is no home directory, so --dir has to name a folder", "the assets")
    return Path(cache) / "kcm" / "assets"


def _digest(scripts: Mapping[str, str]) -> str:
    return hashlib.sha256(repr(sorted(scripts.items())).encode()).hexdigest()[:16]


def _in_quotes(text: str) -> str:
    """Quote text for a parameter expansion in double quotes."""
    return "".join(f"\\{letter}" if letter in '\\"$`}' else letter for letter in text)


def _put(path: Path, text: str) -> None:
    """Write a script atomically, since another process may run it. A file that has the text is not touched."""
    try:
        if path.read_text() == text and os.access(path, os.X_OK):
            return
    except (OSError, UnicodeDecodeError):
        pass  # it is replaced
    with replaced(path, 0o755) as file:
        file.write(text.encode())
