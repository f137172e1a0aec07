"""Points the clients of this process, and of others, to a cluster by the environment.

While a kubeconfig is pointed to, KUBECONFIG is its path. What would lead a client elsewhere is absent: the variables by
which programs in a pod find the cluster of that pod, as tests in a CI system, and proxies, which clients in Python ask
for the address of this machine, too.
"""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

_KUBECONFIG, _USUAL = "KUBECONFIG", "~/.kube/config"
_READ_AT_IMPORT = (
    *("kubernetes.config.kube_config", "kubernetes.config"),
    *("kubernetes_asyncio.config.kube_config", "kubernetes_asyncio.config"),
)
"""Modules that read KUBECONFIG when they are imported, into this name; their packages have copies, for
``load_config``."""
_READ = "KUBE_CONFIG_DEFAULT_LOCATION"
_OF_PODS = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_HERE = "127.0.0.1"


def environment(kubeconfig: str) -> dict[str, str]:
    """The environment for a process whose cluster is that of a kubeconfig."""
    wanted = {**os.environ, **_wanted(kubeconfig)}
    return {name: value for name, value in wanted.items() if value is not None}


@contextmanager
def pointing_to(kubeconfig: str) -> Iterator[None]:
    """Sets KUBECONFIG, and the values that client libraries have read from it, to this path.

    What leads clients elsewhere, in a pod of another cluster or to a proxy, is absent meanwhile. Of several at once the
    latest one counts; they may end in any order.
    """
    with _lock:
        mine = _Pointed(kubeconfig)
        _pointed.append(mine)
    try:
        yield
    finally:
        with _lock:
            mine.end()


class _Pointed:
    """A kubeconfig that is pointed to.

    before: the variables as they were; None for one that was absent. read: what modules had read, by their names.
    """

    def __init__(self, kubeconfig: str) -> None:
        wanted = _wanted(kubeconfig)
        self.before = {name: os.environ.get(name) for name in wanted}
        self.read = {name: getattr(module, _READ) for name, module in _readers()}
        _set(wanted)
        for _, module in _readers():
            setattr(module, _READ, kubeconfig)

    def end(self) -> None:
        """Restore what was before, or leave that to the one that came next."""
        at = _pointed.index(self)
        del _pointed[at]
        if at < len(_pointed):
            _pointed[at].before |= self.before
            _pointed[at].read = self.read
            return
        _set(self.before)
        now = os.environ.get(_KUBECONFIG, _USUAL)
        for name, module in _readers():  # perhaps it was imported meanwhile
            setattr(module, _READ, self.read.get(name, now))


_lock = threading.Lock()
_pointed: list[_Pointed] = []
"""The latest one last."""


def _readers() -> list[tuple[str, ModuleType]]:
    """The modules that have read KUBECONFIG so far."""
    there = ((name, sys.modules.get(name)) for name in _READ_AT_IMPORT)
    return [(name, module) for name, module in there if module is not None and hasattr(module, _READ)]


def _wanted(kubeconfig: str) -> dict[str, str | None]:
    return {_KUBECONFIG: kubeconfig, **dict.fromkeys(_OF_PODS), **_unproxied()}


def _unproxied() -> dict[str, str]:
    """The variables that except this machine from proxies, if there are proxies."""
    if not any(os.environ.get(name) for name in _PROXIES):
        return {}
    names = [name for name in _NO_PROXY if name in os.environ] or _NO_PROXY
    return {name: _with_here(os.environ.get(name, "")) for name in names}


def _with_here(hosts: str) -> str:
    known = [host for each in hosts.split(",") if (host := each.strip())]
    return hosts if _HERE in known or "*" in known else ",".join([*known, _HERE])


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
