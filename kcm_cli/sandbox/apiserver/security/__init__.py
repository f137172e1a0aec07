"""Authentication and authorization (see ``security.assembly``)."""

from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.security.authenticator import Authenticator
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer, Decision, refusal
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import Certificates, KeyPair

__all__ = [
    "Authenticator",
    "Authorizer",
    "Certificates",
    "Decision",
    "KeyPair",
    "Security",
    "bootstrap_objects",
    "refusal",
]
