"""x"""

from kcm_cli.sandbox.apiserver.crd.structural import Structural
from kcm_cli.sandbox.apiserver.crd.writes import Rules


def rules_of(schema: Structural) -> Rules | None:
    return None
