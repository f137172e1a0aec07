"""What the request path needs from the other parts of the server, and what stands in where a part is left out.

The stand-ins let everything through; tests of the registry use them, the server is composed of the real ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import yaml

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.registry.refusals import unsupported_media_type
from kcm_cli.sandbox.apiserver.types import (
    ApiError,
    Attributes,
    FieldError,
    RequestInfo,
    ResourceInfo,
    User,
)


class Schema(Protocol):
    """Bytes to documents, checked against the schema."""

    def decode_body(self, resource: ResourceInfo, data: bytes, content_type: str, mode: str) -> tuple[Doc, list[str]]:
        """The document and the warnings. Raises ApiError."""


class Patching(Protocol):
    """Strategic merge and server-side apply, and who owns which field."""

    def strategic_merge(self, resource: ResourceInfo, current: Doc, patch: Doc) -> Doc: ...

    def track_update(
        self, resource: ResourceInfo, subresource: str, old: Doc | None, new: Doc, manager: str, now: datetime
    ) -> None: ...

    def apply(
        self,
        resource: ResourceInfo,
        subresource: str,
        live: Doc | None,
        applied: Doc,
        manager: str,
        force: bool,
        now: datetime,
    ) -> Doc: ...


class Strategy(Protocol):
    """The rules of one kind."""

    creates_on_update: bool
    needs_version_on_update: bool
    returns_object_on_delete: bool

    def prepare_create(self, doc: Doc) -> None: ...
    def prepare_update(self, new: Doc, old: Doc) -> None: ...
    def prepare_status(self, new: Doc, old: Doc) -> None: ...
    def validate_create(self, doc: Doc) -> list[FieldError]: ...
    def validate_update(self, new: Doc, old: Doc) -> list[FieldError]: ...
    def validate_status(self, new: Doc, old: Doc) -> list[FieldError]: ...
    def warnings(self, doc: Doc) -> list[str]: ...


class Strategies(Protocol):
    def for_resource(self, resource: ResourceInfo) -> Strategy: ...


class Defaulting(Protocol):
    def apply(self, resource: ResourceInfo, doc: Doc) -> None: ...


class Admission(Protocol):
    async def mutate(self, attrs: Attributes) -> None: ...
    async def validate(self, attrs: Attributes) -> None: ...


class Decision(Protocol):
    @property
    def allowed(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class Authenticator(Protocol):
    def authenticate(self, headers: Mapping[str, str], peer_cert_der: bytes | None) -> User: ...


class Authorizer(Protocol):
    def authorize(self, user: User, info: RequestInfo) -> Decision: ...


class PlainSchema:
    """Any JSON or YAML object."""

    def decode_body(self, resource: ResourceInfo, data: bytes, content_type: str, mode: str) -> tuple[Doc, list[str]]:
        if "protobuf" in content_type:
            raise unsupported_media_type("application/json, application/yaml")
        try:
            document = yaml.safe_load(data) if "yaml" in content_type else codec.decode_doc(data)
        except (codec.DecodeError, yaml.YAMLError) as error:
            raise ApiError(400, "BadRequest", str(error)) from error
        if not isinstance(document, dict):
            raise ApiError(400, "BadRequest", "the body is no object")
        return document, []


class PlainPatching:
    """Merge patch in place of strategic merge; nobody owns fields."""

    def strategic_merge(self, resource: ResourceInfo, current: Doc, patch: Doc) -> Doc:
        return merge_patch(current, patch)

    def track_update(
        self, resource: ResourceInfo, subresource: str, old: Doc | None, new: Doc, manager: str, now: datetime
    ) -> None:
        return None

    def apply(
        self,
        resource: ResourceInfo,
        subresource: str,
        live: Doc | None,
        applied: Doc,
        manager: str,
        force: bool,
        now: datetime,
    ) -> Doc:
        return merge_patch(live or {}, applied)


@dataclass
class PlainStrategy:
    """No rules."""

    creates_on_update: bool = False
    needs_version_on_update: bool = False
    returns_object_on_delete: bool = False

    def prepare_create(self, doc: Doc) -> None:
        return None

    def prepare_update(self, new: Doc, old: Doc) -> None:
        if "status" in old:
            new["status"] = old["status"]

    def prepare_status(self, new: Doc, old: Doc) -> None:
        if "spec" in old:
            new["spec"] = old["spec"]

    def validate_create(self, doc: Doc) -> list[FieldError]:
        return []

    def validate_update(self, new: Doc, old: Doc) -> list[FieldError]:
        return []

    def validate_status(self, new: Doc, old: Doc) -> list[FieldError]:
        return []

    def warnings(self, doc: Doc) -> list[str]:
        return []


class PlainStrategies:
    def __init__(self) -> None:
        self._plain = PlainStrategy()

    def for_resource(self, resource: ResourceInfo) -> Strategy:
        return self._plain


class NoDefaulting:
    def apply(self, resource: ResourceInfo, doc: Doc) -> None:
        return None


class NoAdmission:
    async def mutate(self, attrs: Attributes) -> None:
        return None

    async def validate(self, attrs: Attributes) -> None:
        return None


@dataclass(frozen=True)
class Allowed:
    allowed: bool = True
    reason: str = ""


class AllowAll:
    def authorize(self, user: User, info: RequestInfo) -> Decision:
        return Allowed()


class TokenTable:
    """Bearer tokens of a fixed table; no token at all is anonymous."""

    def __init__(self, tokens: Mapping[str, User], anonymous: User) -> None:
        self._tokens = dict(tokens)
        self._anonymous = anonymous

    def authenticate(self, headers: Mapping[str, str], peer_cert_der: bytes | None) -> User:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return self._anonymous
        user = self._tokens.get(token)
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user


@dataclass
class Parts:
    """The parts of a server; stand-ins by default."""

    schema: Schema = field(default_factory=PlainSchema)
    patching: Patching = field(default_factory=PlainPatching)
    strategies: Strategies = field(default_factory=PlainStrategies)
    defaulting: Defaulting = field(default_factory=NoDefaulting)
    admission: Admission = field(default_factory=NoAdmission)
    authorizer: Authorizer = field(default_factory=AllowAll)


def merge_patch(current: object, patch: object) -> Doc:
    """RFC 7386. The result shares parts with both."""
    result = dict(current) if isinstance(current, dict) else {}
    assert isinstance(patch, dict)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge_patch(result.get(key), value)
        else:
            result[key] = value
    return result


def errors_text(errors: Sequence[FieldError]) -> str:
    """For logs and tests."""
    return "; ".join(f"{error.field}: {error.message}" for error in errors)
