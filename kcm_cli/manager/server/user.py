"""The user of a request."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.api.well_known import AUTHENTICATED, UNAUTHENTICATED


class User(msgspec.Struct, frozen=True):
    """An identity, from a certificate, a proxy's headers or a token review."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def authenticated(self) -> "User":
        """The user with the group system:authenticated."""
        if AUTHENTICATED in self.groups or UNAUTHENTICATED in self.groups:
            return self
        return replace(self, groups=(*self.groups, AUTHENTICATED))


ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


class AuthenticationError(Exception):
    """Credentials were presented and are invalid; a request without any is anonymous."""
