"""/openapi/v2 and /openapi/v3: see ``OpenApi``."""

from kcm_cli.sandbox.apiserver.openapi.document import OpenApi

__all__ = ["OpenApi"]
