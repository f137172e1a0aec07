"""validatingadmissionpolicy-status-controller: type checks the expressions of policies, and writes warnings to their
status.

Expressions are checked against the schemas that the API server publishes. Kinds without a schema are not checked.

upstream: pkg/controller/validatingadmissionpolicystatus/controller.go
"""

import asyncio
from typing import TYPE_CHECKING

from kcm_cli.api.admissionregistration import VALIDATING_ADMISSION_POLICIES, ValidatingAdmissionPolicy
from kcm_cli.controllers.validatingadmissionpolicy_status import kinds
from kcm_cli.controllers.validatingadmissionpolicy_status.config import ValidatingAdmissionPolicyStatusConfig
from kcm_cli.controllers.validatingadmissionpolicy_status.kinds import Kind
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import CUSTOM, Controller, Queue, Watch, only
from kcm_cli.engine.definitions import mapper
from kcm_cli.engine.door import Door
from kcm_cli.engine.worker import unhandled
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.openapi import Schemas, schemas

if TYPE_CHECKING:
    from kcm_cli.controllers.validatingadmissionpolicy_status.plan import Declared

NAME = "validatingadmissionpolicy-status"


class PolicyStatusController:
    """Keys are names of policies."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._mapper = mapper(context)
        self._policies = context.cache(VALIDATING_ADMISSION_POLICIES).store

    async def sync(self, key: str) -> None:
        policy = self._policies.get(key)
        if policy is None or _is_checked(policy):
            return
        # imported here: without a policy the language is not needed
        from kcm_cli.controllers.validatingadmissionpolicy_status import plan

        types = _Types(self._client)
        wanted, params = await self._kinds(policy), kinds.param_kind(policy)
        declared = {kind: found for kind in wanted if (found := await types.declare(kind, "0")) is not None}
        own_params = await types.declare(params, "1") if params is not None else None
        warnings: list[plan.ExpressionWarning] = []
        for warning in plan.plan(policy, declared, params=params is not None, declared_params=own_params):
            if warning is not None:
                warnings.append(warning)
            await asyncio.sleep(0)
        try:
            await writes.send(self._client, plan.status(policy, warnings))
        except NotFound:
            return

    async def _kinds(self, policy: ValidatingAdmissionPolicy) -> list[Kind]:
        served = await self._mapper.having(lambda known: not kinds.unknown(policy, known))
        return kinds.kinds(policy, served)


class _Types:
    """The types of kinds, for one sync of a policy. Each group version is fetched once."""

    def __init__(self, client: Door) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Schemas | None] = {}

    async def declare(self, kind: Kind, suffix: str) -> "Declared | None":
        """The type of a kind; None if there is no schema. Raises RequestError."""
        from kcm_cli.controllers.validatingadmissionpolicy_status.plan import Declared
        from kcm_cli.machinery.cel.declarations import Declarations

        place = kind.group, kind.version
        if place not in self._known:
            self._known[place] = await schemas(self._client, *place)
        found = self._known[place]
        reference = found.reference_to(*kind) if found is not None else None
        if found is None or reference is None:
            return None
        declarations = Declarations(found.get, formats=True)
        type_ = declarations.declare({"$ref": reference}, f"{kind.kind}{suffix}", root=True)
        return Declared(type_, declarations) if type_ is not None else None


def _is_checked(policy: ValidatingAdmissionPolicy) -> bool:
    return policy.metadata.generation <= policy.status.observed_generation


CONTROLLER = Controller(
    PolicyStatusController,
    Queue(
        NAME,
        Watch(VALIDATING_ADMISSION_POLICIES, changed=only(lambda policy: not _is_checked(policy))),
        sync=PolicyStatusController.sync,
        failures=unhandled(),
        workers=ValidatingAdmissionPolicyStatusConfig,
    ),
    also_needs=(CUSTOM,),
)
