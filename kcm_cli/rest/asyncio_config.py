"""The configuration part of kubernetes-asyncio without its model and API classes.

``import kubernetes_asyncio.config`` executes ``kubernetes_asyncio.client``, which imports some 1,500 generated
modules that kcm never uses: about 0.5 s and 40 MiB, which would be more than the rest of the process. The
configuration modules need only ``Configuration`` from it. So they are imported here with bare packages standing
in for ``kubernetes_asyncio`` and ``kubernetes_asyncio.client``, and the import table is put back afterwards:
whoever imports the real package later gets the real one, whole.

Where the real package is loaded already (a plugin did it), its modules are used.
"""

import functools
import importlib
import importlib.util
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

_ROOT = "kubernetes_asyncio"
_CLIENT = "kubernetes_asyncio.client"


class ConfigModules:
    """What kcm uses of kubernetes-asyncio: classes and functions of ``config`` and ``client.configuration``."""

    def __init__(self) -> None:
        configuration = importlib.import_module(f"{_CLIENT}.configuration")
        if not hasattr(sys.modules[_CLIENT], "Configuration"):
            vars(sys.modules[_CLIENT]).update(Configuration=configuration.Configuration, ApiClient=None)
        kube_config = importlib.import_module(f"{_ROOT}.config.kube_config")
        exceptions = importlib.import_module(f"{_ROOT}.config.config_exception")
        self.Configuration: Any = configuration.Configuration
        self.KubeConfigLoader: Any = kube_config.KubeConfigLoader
        self.ConfigException: type[Exception] = exceptions.ConfigException
        # It logs what it raises: once is enough.
        logging.getLogger(kube_config.__name__).setLevel(logging.CRITICAL)
        self._kube_config: Any = kube_config

    @contextmanager
    def own_temp_files(self) -> Iterator[None]:
        """Remove the temporary files made within, and leave those alone that this process made elsewhere.

        The loader shares them by content with everybody in the process: an operator's tests, for example.
        """
        module = self._kube_config
        others, module._temp_files = module._temp_files, {}
        try:
            yield
        finally:
            module._cleanup_temp_files()
            module._temp_files = others


_once = threading.Lock()


def load() -> ConfigModules:
    """The modules, imported at the first call. Raises ImportError where kubernetes-asyncio is not installed."""
    with _once:
        return _load()


@functools.cache
def _load() -> ConfigModules:
    if _CLIENT in sys.modules:
        return ConfigModules()
    with _bare_packages():
        return ConfigModules()


@contextmanager
def _bare_packages() -> Iterator[None]:
    before = {name: module for name, module in sys.modules.items() if _ours(name)}
    root = _bare(_ROOT, None)
    _bare(_CLIENT, list(root.__path__))
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _ours(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _bare(name: str, path: list[str] | None) -> ModuleType:
    """A package whose __init__ is not executed; its submodules are found as ever."""
    spec = PathFinder.find_spec(name, path)
    if spec is None:
        raise ImportError(f"{name} is not installed", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module


def _ours(name: str) -> bool:
    return name == _ROOT or name.startswith(f"{_ROOT}.")
