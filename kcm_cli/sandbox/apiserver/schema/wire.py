"""The fields whose zero differs from absence, and those that are written even if they are not set.

A kube-apiserver decodes objects to Go structs, which shows in JSON: an optional number, string or boolean is omitted
if it is zero, unless the field is a pointer; an embedded struct is written as ``{}`` and an embedded time as ``null``
even if they are not set; required fields are always written. The published schemas do not have this, so the fields
are listed here: ``field`` is a field of any type, ``Type.field`` and ``group.version.Type.field`` that of one type.

Source: the API reference of v1.36 and the responses of a v1.36 server.
"""


def _table(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEEPS_ZERO = _table(
    """ activeDeadlineSeconds adminAccess allNodes allocateLoadBalancerNodePorts allowMultipleAllocations
    allowPrivilegeEscalation allowVolumeExpansion appProtocol attachRequired automountServiceAccountToken
    averageUtilization backoffLimit backoffLimitPerIndex bindsToNode blockOwnerDeletion bool
    borrowingLimitPercent cachingMode capacityKey collisionCount completionMode completions
    currentCPUUtilizationPercentage currentVolumeAttributesClassName defaultMode deletionGracePeriodSeconds
    deprecationWarning distinctAttribute enableServiceLinks endPort endpointsNamespace errorCode
    expirationSeconds extendedResourceName failedIndexes failedJobsHistoryLimit failurePolicy fsGroup
    fsGroupChangePolicy fsGroupPolicy gmsaCredentialSpec gmsaCredentialSpecName gracePeriodSeconds
    holderIdentity hostProcess hostUsers hostnameOverride ignoreStoreReadErrorWithClusterBreakingPotential
    immutable ingressClassName initiatorName int internalTrafficPolicy ipFamilyPolicy ipMode labelSelectorPath
    leaseDurationSeconds leaseTransitions lendablePercent loadBalancerClass localhostProfile lun managedBy
    manualSelector matchAttribute matchPolicy maxExpirationSeconds maxFailedIndexes maxItems maxLength
    maxProperties maxSurge maxUnavailable maximum minAvailable minDomains minItems minLength minProperties
    minReplicas minimum mode mountPropagation multipleOf nodeAffinityPolicy nodeAllocatableUpdatePeriodSeconds
    nodeTaintsPolicy
    nominalConcurrencyShares optional optionalOldSelf orphanDependents parallelism parameterNotFoundAction
    perDeviceNodeSelection persistentVolumeName podGroupName podInfoOnMount podReplacementPolicy port
    preemptionPolicy preferredHolder preventPodSchedulingIfMissing privileged procMount
    progressDeadlineSeconds propagationPolicy readOnlyRootFilesystem ready reclaimPolicy recursiveReadOnly
    recursiveReadOnlyMounts remainingItemCount requiresRepublish resourceClaimName resourceClaimTemplateName
    revisionHistoryLimit runAsGroup runAsNonRoot runAsUser runAsUserName runtimeClassName seLinuxChangePolicy
    seLinuxMount selectPolicy serviceAccountTokenInSecrets serving setHostnameAsFQDN shareID
    shareProcessNamespace sideEffects stabilizationWindowSeconds started startingDeadlineSeconds stopSignal
    storageCapacity strategy string succeededCount succeededIndexes successfulJobsHistoryLimit
    supplementalGroupsPolicy suspend targetCPUUtilizationPercentage terminating terminatingReplicas
    terminationGracePeriodSeconds timeZone tolerationSeconds trafficDistribution ttlSecondsAfterFinished
    unhealthyPodEvictionPolicy userNamespaces volumeAttributesClassName volumeBindingMode volumeMode
    x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-preserve-unknown-fields zone $ref
    AzureDiskVolumeSource.fsType AzureDiskVolumeSource.kind AzureDiskVolumeSource.readOnly
    CSIVolumeSource.fsType CSIVolumeSource.readOnly ClientIPConfig.timeoutSeconds
    ClusterTrustBundleProjection.name ClusterTrustBundleProjection.signerName Container.restartPolicy
    Device.nodeName DeviceAttribute.version Endpoint.hostname Endpoint.nodeName EndpointAddress.nodeName
    EphemeralContainer.restartPolicy HorizontalPodAutoscalerStatus.observedGeneration
    HostPathVolumeSource.type IngressClassParametersReference.apiGroup
    IngressClassParametersReference.namespace IngressPortStatus.error LocalVolumeSource.fsType
    MutatingWebhook.reinvocationPolicy MutatingWebhook.timeoutSeconds NetworkPolicyPort.protocol
    OwnerReference.controller PersistentVolumeClaimSpec.storageClassName PodDNSConfigOption.value
    PodFailurePolicyOnExitCodesRequirement.containerName PodSpec.priority PortStatus.error
    Preconditions.resourceVersion Preconditions.uid ReplicaSetSpec.replicas ReplicationControllerSpec.replicas
    DeploymentSpec.replicas StatefulSetSpec.replicas ResourceHealth.message ResourceSliceSpec.nodeName
    RollingUpdateStatefulSetStrategy.partition ServiceReference.path TypedObjectReference.namespace
    ValidatingWebhook.timeoutSeconds Validation.reason ValidationRule.reason VolumeNodeResources.count
    NamedRuleWithOperations.scope RuleWithOperations.scope WebhookClientConfig.url
    discovery.v1.EndpointPort.name discovery.v1.EndpointPort.protocol
    """
)

ALWAYS_STRUCT = _table(
    """ metadata spec status PersistentVolumeClaimSpec.resources Container.resources
    EphemeralContainer.resources ContainerStatus.state ContainerStatus.lastState PodTemplate.template
    ServiceStatus.loadBalancer NodeDaemonEndpoints.kubeletEndpoint NodeStatus.daemonEndpoints
    NodeStatus.nodeInfo core.v1.Event.source StatefulSetSpec.updateStrategy DeploymentSpec.strategy
    DaemonSetSpec.updateStrategy ReplicaSetSpec.template events.v1.Event.regarding
    events.v1.Event.deprecatedSource TokenReviewStatus.user SelfSubjectReviewStatus.userInfo
    NetworkPolicySpec.podSelector IngressStatus.loadBalancer IngressServiceBackend.port Endpoint.conditions
    ResourceClaimSpec.devices AllocationResult.devices LimitedPriorityLevelConfiguration.limitResponse
    CustomResourceDefinitionStatus.acceptedNames
    """
)
"""Structs that are written as ``{}`` although they are optional. Required ones are too, without being listed."""

ALWAYS_NULL = _table(
    """ PersistentVolumeClaimCondition.lastProbeTime PersistentVolumeClaimCondition.lastTransitionTime
    ContainerStateRunning.startedAt ContainerStateTerminated.startedAt ContainerStateTerminated.finishedAt
    PodCondition.lastProbeTime PodCondition.lastTransitionTime
    ReplicationControllerCondition.lastTransitionTime NodeCondition.lastHeartbeatTime
    NodeCondition.lastTransitionTime NamespaceCondition.lastTransitionTime core.v1.Event.firstTimestamp
    core.v1.Event.lastTimestamp core.v1.Event.eventTime core.v1.EventSeries.lastObservedTime
    StatefulSetCondition.lastTransitionTime DeploymentCondition.lastUpdateTime
    DeploymentCondition.lastTransitionTime DaemonSetCondition.lastTransitionTime
    ReplicaSetCondition.lastTransitionTime events.v1.Event.eventTime events.v1.Event.deprecatedFirstTimestamp
    events.v1.Event.deprecatedLastTimestamp events.v1.EventSeries.lastObservedTime
    HorizontalPodAutoscalerCondition.lastTransitionTime JobCondition.lastProbeTime
    JobCondition.lastTransitionTime CertificateSigningRequestCondition.lastUpdateTime
    CertificateSigningRequestCondition.lastTransitionTime VolumeError.time
    FlowSchemaCondition.lastTransitionTime PriorityLevelConfigurationCondition.lastTransitionTime
    Condition.lastTransitionTime CustomResourceDefinitionCondition.lastTransitionTime
    APIServiceCondition.lastTransitionTime TokenRequestStatus.expirationTimestamp ControllerRevision.data
    ProjectedVolumeSource.sources ContainerImage.names TokenRequestSpec.audiences
    TokenRequestSpec.boundObjectRef TokenRequestSpec.expirationSeconds
    HorizontalPodAutoscalerStatus.currentMetrics Role.rules ClusterRole.rules CSINodeDriver.topologyKeys
    EndpointSlice.endpoints EndpointSlice.ports AllocatedDeviceStatus.conditions ResourcePolicyRule.namespaces
    DeviceClaim.requests
    CustomResourceDefinitionStatus.conditions CustomResourceDefinitionStatus.storedVersions
    TypedObjectReference.apiGroup AzureFilePersistentVolumeSource.secretNamespace
    ScaleIOVolumeSource.secretRef ScaleIOPersistentVolumeSource.secretRef GRPCAction.service
    TypedLocalObjectReference.apiGroup StatefulSetSpec.selector DeploymentSpec.selector DaemonSetSpec.selector
    ReplicaSetSpec.selector HTTPIngressPath.pathType IngressClassParametersReference.scope
    ValidatingWebhook.sideEffects MutatingWebhook.sideEffects CapacityRequestPolicy.default
    LimitedPriorityLevelConfiguration.nominalConcurrencyShares
    """
)
"""Fields that are written as ``null`` if they are not set: embedded times, and lists and pointers without
``omitempty``."""

ALWAYS_ZERO = _table(
    """ NodeRuntimeHandler.name core.v1.Event.reportingComponent core.v1.Event.reportingInstance
    StatefulSetOrdinals.start StatefulSetSpec.serviceName StatefulSetStatus.availableReplicas
    TokenRequestStatus.token PodFailurePolicyOnPodConditionsPattern.status
    PodDisruptionBudgetStatus.disruptionsAllowed PodDisruptionBudgetStatus.currentHealthy
    PodDisruptionBudgetStatus.desiredHealthy PodDisruptionBudgetStatus.expectedPods RoleRef.apiGroup
    PriorityClass.value FlowSchemaSpec.matchingPrecedence QueuingConfiguration.queues
    QueuingConfiguration.handSize QueuingConfiguration.queueLengthLimit ResourceFieldSelector.divisor
    """
)
"""Optional scalars that are written as zero if they are not set."""

NEVER = _table(
    """
    PodCertificateProjection.signerName PodCertificateProjection.keyType ImageVolumeStatus.imageRef
    ContainerRestartRule.action ContainerRestartRuleOnExitCodes.operator TokenReviewSpec.token
    IPAddressSpec.parentRef ParentReference.resource ParentReference.name
    ValidatingAdmissionPolicyBindingSpec.policyName ValidatingAdmissionPolicyBindingSpec.validationActions
    CounterSet.counters DeviceCounterConsumption.counters CapacityRequestPolicyRange.min
    CustomResourceSubresources.status
    """
)
"""Exceptions: required fields, and structs of a name above, that are omitted if they are not set."""


KEEPS_EMPTY = _table(
    """ HPAScalingRules.policies PodFailurePolicyOnExitCodesRequirement.values PersistentVolumeSpec.capacity
    CustomResourceDefinitionSpec.versions
    """
)
"""Lists and maps whose validation distinguishes empty from absent."""


def _names(type_: str, field: str) -> tuple[str, str, str]:
    """The entries of tables that name a field. ``type_``: ``core.v1.Container``."""
    return f"{type_}.{field}", f"{type_.rpartition('.')[2]}.{field}", field


def _in(table: frozenset[str], type_: str, field: str) -> bool:
    return any(name in table for name in _names(type_, field))


def keeps_zero(type_: str, field: str, *, required: bool) -> bool:
    """Whether an explicit zero of a scalar is kept."""
    return required and not _in(NEVER, type_, field) or _in(KEEPS_ZERO, type_, field) or _in(ALWAYS_ZERO, type_, field)


def keeps_empty(type_: str, field: str) -> bool:
    """Whether an empty list or map differs from absence."""
    return _in(KEEPS_EMPTY, type_, field)


def always_null(type_: str, field: str) -> bool:
    return _in(ALWAYS_NULL, type_, field)


def always_struct(type_: str, field: str, *, required: bool) -> bool:
    return not _in(NEVER, type_, field) and (required or _in(ALWAYS_STRUCT, type_, field))


def always_zero(type_: str, field: str, *, required: bool) -> bool:
    return not _in(NEVER, type_, field) and (required or _in(ALWAYS_ZERO, type_, field))
