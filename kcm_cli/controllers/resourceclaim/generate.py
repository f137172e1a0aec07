"""Creates the claims for templates that pods and PodGroups name, and writes their names into the owner's status.

upstream: pkg/controller/resourceclaim/controller.go#handleClaim, #handlePodGroupClaim
"""

from typing import Any

from kcm_cli.api.core import PODS, Pod, PodResourceClaim
from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, ResourceClaimTemplate
from kcm_cli.api.resource import Resource
from kcm_cli.api.scheduling import POD_GROUPS, PodGroup
from kcm_cli.controllers.resourceclaim import plan
from kcm_cli.controllers.resourceclaim.metrics import ResourceClaimMetrics
from kcm_cli.controllers.resourceclaim.plan import Caches
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.resource_claims import Unsupported
from kcm_cli.rest.transport import RequestError


class NoClaim(SyncError):
    """A claim cannot be created; the text says why."""

    reason = "FailedResourceClaimCreation"


class Generator:
    """Creates claims for pods and PodGroups."""

    def __init__(self, context: ControllerContext, caches: Caches, metrics: ResourceClaimMetrics) -> None:
        self._client, self._recorder = context.client, context.recorder
        self._admin_access = context.gates.enabled("DRAAdminAccess")
        self._alternatives = context.gates.enabled("DRAPrioritizedList")
        self._caches, self._metrics = caches, metrics
        self._templates = context.cache(RESOURCE_CLAIM_TEMPLATES).store

    async def sync(self, user: Pod | PodGroup, group: PodGroup | None) -> None:
        """Create the missing claims. Raises NoClaim, and errors of requests."""
        new: dict[str, str] = {}
        for entry in user.spec.resource_claims:
            try:
                name = await self._claim_for(user, group, entry)
            except (NoClaim, RequestError) as error:
                self._emit(user, entry, error)
                raise
            if name is not None and name != plan.recorded(user).get(entry.name):
                new[entry.name] = name
        if new:
            await self._record(user, new)

    async def _claim_for(self, user: Pod | PodGroup, group: PodGroup | None, entry: PodResourceClaim) -> str | None:
        try:
            name = plan.plan_entry(user, group, entry, self._caches)
        except Unsupported as error:
            raise NoClaim(f"checking for claim before creating it: {error}") from error
        return await self._create(user, entry) if name == plan.CREATE else name

    async def _create(self, user: Pod | PodGroup, entry: PodResourceClaim) -> str:
        template = self._template(user.namespace, entry.resource_claim_template_name or "")
        requests = template.spec.spec.devices.requests
        admin_access = plan.has_admin_access(requests)
        if admin_access and not self._admin_access:
            raise NoClaim("admin access is requested, but the feature is disabled")
        if not self._alternatives and plan.has_alternatives(requests):
            raise NoClaim("template includes a prioritized list of subrequests, but the feature is disabled")
        body = plan.claim_from(template, _kind(user), user, entry.name)
        try:
            claim = await self._client.create(RESOURCE_CLAIMS, user.namespace, body, reason="user has no claim")
        except RequestError as error:
            self._metrics.created(admin_access=admin_access, success=False)
            raise NoClaim(f"create ResourceClaim : {error}") from error
        self._metrics.created(admin_access=admin_access, success=True)
        return claim.name

    def _template(self, namespace: str, name: str) -> ResourceClaimTemplate:
        template = self._templates.get(f"{namespace}/{name}")
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise NoClaim(f'resource claim template "{name}": {missing}')
        return template

    async def _record(self, user: Pod | PodGroup, new: dict[str, str]) -> None:
        await writes.send(self._client, plan.status(_kind(user), user, new))

    def _emit(self, user: Pod | PodGroup, entry: PodResourceClaim, error: Exception) -> None:
        resource = _kind(user)
        text = f"{resource.kind}ResourceClaim {entry.name}: {error}"
        self._recorder.emit(Notice(ref_to(resource, user), "Warning", NoClaim.reason, text))


def _kind(user: Pod | PodGroup) -> Resource[Any]:
    return POD_GROUPS if isinstance(user, PodGroup) else PODS
