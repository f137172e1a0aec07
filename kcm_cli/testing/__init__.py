"""A Kubernetes control plane for tests: the one place to import from (docs/testing-operators.md).

    from kcm_cli.testing import Sandbox

    with Sandbox() as sandbox:
        sandbox.apply("deploy/")
        sandbox.advance(600)

pytest has the fixtures ``kcm_sandbox``, ``kcm_namespace`` and others for it. ``AsyncSandbox`` is for asynchronous
programs. What is public is listed in ``public``, which is imported at the first use: pytest loads its plugin, which is
in this package, in every project.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcm_cli.testing.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        from importlib import import_module  # imported here, as ``public``

        public = import_module("kcm_cli.testing.public")
        if name == "__all__" or name in public.__all__:
            return getattr(public, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
