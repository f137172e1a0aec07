"""The feature gates of v1.36: their history, those that a controller manager reads, and their dependencies."""

Stage = tuple[str, bool, str, bool]
"""Release, default, stage, and whether it is locked. It holds from its release on."""

_HISTORY = """
APIResponseCompression: 1.8 off ALPHA, 1.16 on BETA
APIServerIdentity*: 1.20 off ALPHA, 1.26 on BETA
APIServerTracing: 1.22 off ALPHA, 1.27 on BETA, 1.34 on GA locked
APIServingWithRoutine: 1.30 off ALPHA
AggregatedDiscoveryRemoveBetaType: 1.0 off GA, 1.33 on DEPRECATED, 1.35 on DEPRECATED locked
AllAlpha: 0.0 off ALPHA
AllBeta: 0.0 off BETA
AllowDNSOnlyNodeCSR: 1.0 on GA, 1.31 off DEPRECATED
AllowInsecureKubeletCertificateSigningRequests: 1.0 on GA, 1.31 off DEPRECATED
AllowOverwriteTerminationGracePeriodSeconds: 1.0 on GA, 1.32 off DEPRECATED, 1.35 off DEPRECATED locked
AllowParsingUserUIDFromCertAuth*: 1.33 on BETA
AllowServiceExternalIPs: 1.0 on GA
AllowUnsafeMalformedObjectDeletion: 1.32 off ALPHA
AnonymousAuthConfigurableEndpoints: 1.31 off ALPHA, 1.32 on BETA, 1.34 on GA locked
AnyVolumeDataSource: 1.18 off ALPHA, 1.24 on BETA, 1.33 on GA locked
AtomicFIFO*: 1.36 on BETA
AuthorizeNodeWithSelectors: 1.31 off ALPHA, 1.32 on BETA, 1.34 on GA locked
AuthorizePodWebsocketUpgradeCreatePermission: 1.35 on BETA
AuthorizeWithSelectors*: 1.31 off ALPHA, 1.32 on BETA, 1.34 on GA locked
BtreeWatchCache: 1.32 on BETA, 1.33 on GA locked
CBORServingAndStorage*: 1.32 off ALPHA
CPUManagerPolicyAlphaOptions: 1.23 off ALPHA
CPUManagerPolicyBetaOptions: 1.23 on BETA
CPUManagerPolicyOptions: 1.22 off ALPHA, 1.23 on BETA, 1.33 on GA locked
CRDObservedGenerationTracking: 1.35 off BETA, 1.36 on BETA
CRDValidationRatcheting: 1.28 off ALPHA, 1.30 on BETA, 1.33 on GA locked
CRIListStreaming: 1.36 off ALPHA
CSIServiceAccountTokenSecrets: 1.35 on BETA, 1.36 on GA locked
CSIVolumeHealth*: 1.21 off ALPHA
ChangeContainerStatusOnKubeletRestart: 1.0 on GA, 1.35 off DEPRECATED
ClearingNominatedNodeNameAfterBinding: 1.34 off ALPHA, 1.35 on BETA
ClientsAllowCARotation*: 1.36 on BETA
ClientsAllowCBOR*: 1.32 off ALPHA
ClientsAllowTLSCacheGC*: 1.36 on BETA
ClientsPreferCBOR*: 1.32 off ALPHA
CloudControllerManagerWatchBasedRoutesReconciliation: 1.35 off ALPHA
CloudControllerManagerWebhook: 1.27 off ALPHA
ClusterTrustBundle*: 1.27 off ALPHA, 1.33 off BETA
ClusterTrustBundleProjection: 1.29 off ALPHA, 1.33 off BETA
ComponentFlagz*: 1.32 off ALPHA, 1.36 on BETA
ComponentStatusz*: 1.32 off ALPHA, 1.36 on BETA
ConcurrentWatchObjectDecode: 1.31 off BETA
ConsistentListFromCache: 1.28 off ALPHA, 1.31 on BETA, 1.34 on GA locked
ConstrainedImpersonation: 1.35 off ALPHA, 1.36 on BETA
ContainerCheckpoint: 1.25 off ALPHA, 1.30 on BETA
ContainerRestartRules: 1.34 off ALPHA, 1.35 on BETA
ContainerStopSignals: 1.33 off ALPHA
ContextualLogging*: 1.24 off ALPHA, 1.30 on BETA
ControllerManagerReleaseLeaderElectionLockOnExit*: 1.36 off ALPHA
CoordinatedLeaderElection*: 1.31 off ALPHA, 1.33 off BETA
CrossNamespaceVolumeDataSource: 1.26 off ALPHA
CustomCPUCFSQuotaPeriod: 1.12 off ALPHA, 1.36 on GA
CustomResourceFieldSelectors: 1.30 off ALPHA, 1.31 on BETA, 1.32 on GA locked
DRAAdminAccess*: 1.32 off ALPHA, 1.34 on BETA, 1.36 on GA locked
DRAConsumableCapacity: 1.34 off ALPHA, 1.36 on BETA
DRADeviceBindingConditions: 1.34 off ALPHA, 1.36 on BETA
DRADeviceTaintRules*: 1.35 off ALPHA, 1.36 off BETA
DRADeviceTaints*: 1.33 off ALPHA, 1.36 on BETA
DRAExtendedResource*: 1.34 off ALPHA, 1.36 on BETA
DRAListTypeAttributes: 1.36 off ALPHA
DRANodeAllocatableResources: 1.36 off ALPHA
DRAPartitionableDevices: 1.33 off ALPHA, 1.36 on BETA
DRAPrioritizedList*: 1.33 off ALPHA, 1.34 on BETA, 1.36 on GA
DRAResourceClaimDeviceStatus: 1.32 off ALPHA, 1.33 on BETA
DRAResourceClaimGranularStatusAuthorization: 1.36 on BETA
DRAResourcePoolStatus*: 1.36 off ALPHA
DRASchedulerFilterTimeout: 1.34 on BETA
DRAWorkloadResourceClaims*: 1.36 off ALPHA
DeclarativeValidation: 1.33 on BETA, 1.36 on GA locked
DeclarativeValidationBeta: 1.36 on BETA
DeclarativeValidationTakeover: 1.33 off BETA, 1.36 off DEPRECATED
DeploymentReplicaSetTerminatingReplicas*: 1.33 off ALPHA, 1.35 on BETA
DetectCacheInconsistency: 1.34 on BETA
DisableAllocatorDualWrite: 1.31 off ALPHA, 1.33 off BETA, 1.34 on GA, 1.35 on GA locked
DisableCPUQuotaWithExclusiveCPUs: 1.33 on BETA, 1.36 on DEPRECATED
DisableNodeKubeProxyVersion: 1.29 off ALPHA, 1.31 off DEPRECATED, 1.33 on DEPRECATED, 1.36 on DEPRECATED locked
DynamicResourceAllocation*: 1.26 off ALPHA, 1.32 off BETA, 1.34 on GA, 1.35 on GA locked
EnvFiles: 1.34 off ALPHA, 1.35 on BETA
EventedPLEG: 1.26 off ALPHA
ExecProbeTimeout: 1.20 on GA, 1.35 on GA locked
ExtendWebSocketsToKubelet: 1.36 on BETA
ExternalServiceAccountTokenSigner: 1.32 off ALPHA, 1.34 on BETA, 1.36 on GA locked
GangScheduling: 1.35 off ALPHA
GenericWorkload*: 1.35 off ALPHA
GitRepoVolumeDriver: 1.0 on GA, 1.33 off DEPRECATED, 1.36 off DEPRECATED locked
GracefulNodeShutdown: 1.20 off ALPHA, 1.21 on BETA
GracefulNodeShutdownBasedOnPodPriority: 1.23 off ALPHA, 1.24 on BETA
HPAConfigurableTolerance*: 1.33 off ALPHA, 1.35 on BETA
HPAScaleToZero*: 1.16 off ALPHA
HostnameOverride: 1.34 off ALPHA, 1.35 on BETA
ImageMaximumGCAge: 1.29 off ALPHA, 1.30 on BETA, 1.35 on GA locked
ImageVolume: 1.31 off ALPHA, 1.33 off BETA, 1.35 on BETA, 1.36 on GA locked
ImageVolumeWithDigest: 1.35 off ALPHA
InOrderInformers*: 1.33 on BETA, 1.36 on GA locked
InOrderInformersBatchProcess*: 1.35 on BETA
InPlacePodLevelResourcesVerticalScaling: 1.35 off ALPHA, 1.36 on BETA
InPlacePodVerticalScaling*: 1.27 off ALPHA, 1.33 on BETA, 1.35 on GA locked
InPlacePodVerticalScalingExclusiveCPUs: 1.32 off ALPHA
InPlacePodVerticalScalingExclusiveMemory: 1.34 off ALPHA
InPlacePodVerticalScalingInitContainers: 1.36 on BETA
InformerResourceVersion*: 1.30 off ALPHA, 1.35 on GA
JobBackoffLimitPerIndex*: 1.28 off ALPHA, 1.29 on BETA, 1.33 on GA locked
JobManagedBy*: 1.30 off ALPHA, 1.32 on BETA, 1.35 on GA locked
JobPodReplacementPolicy*: 1.28 off ALPHA, 1.29 on BETA, 1.34 on GA locked
JobSuccessPolicy*: 1.30 off ALPHA, 1.31 on BETA, 1.33 on GA locked
KMSv1: 1.0 on GA, 1.28 on DEPRECATED, 1.29 off DEPRECATED
KubeletCgroupDriverFromCRI: 1.28 off ALPHA, 1.31 on BETA, 1.34 on GA locked
KubeletCrashLoopBackOffMax: 1.32 off ALPHA, 1.35 on BETA
KubeletEnsureSecretPulledImages: 1.33 off ALPHA, 1.35 on BETA
KubeletFineGrainedAuthz: 1.32 off ALPHA, 1.33 on BETA, 1.36 on GA locked
KubeletInUserNamespace: 1.22 off ALPHA
KubeletPSI: 1.33 off ALPHA, 1.34 on BETA, 1.36 on GA locked
KubeletPodResourcesDynamicResources: 1.27 off ALPHA, 1.34 on BETA, 1.36 on GA locked
KubeletPodResourcesGet: 1.27 off ALPHA, 1.34 on BETA, 1.36 on GA locked
KubeletPodResourcesListUseActivePods: 1.0 off GA, 1.34 on DEPRECATED
KubeletRegistrationGetOnExistsOnly: 1.0 on GA, 1.32 off DEPRECATED
KubeletSeparateDiskGC: 1.29 off ALPHA, 1.31 on BETA
KubeletServiceAccountTokenForCredentialProviders: 1.33 off ALPHA, 1.34 on BETA
KubeletTracing: 1.25 off ALPHA, 1.27 on BETA, 1.34 on GA locked
ListFromCacheSnapshot: 1.33 off ALPHA, 1.34 on BETA
LocalStorageCapacityIsolationFSQuotaMonitoring: 1.15 off ALPHA, 1.31 off BETA
LogarithmicScaleDown*: 1.21 off ALPHA, 1.22 on BETA, 1.31 on GA locked
LoggingAlphaOptions*: 1.24 off ALPHA
LoggingBetaOptions*: 1.24 on BETA
ManifestBasedAdmissionControlConfig: 1.36 off ALPHA
MatchLabelKeysInPodAffinity: 1.29 off ALPHA, 1.31 on BETA, 1.33 on GA locked
MatchLabelKeysInPodTopologySpread: 1.25 off ALPHA, 1.27 on BETA
MatchLabelKeysInPodTopologySpreadSelectorMerge: 1.34 on BETA
MaxUnavailableStatefulSet*: 1.24 off ALPHA, 1.35 off BETA
MemoryQoS: 1.22 off ALPHA
MultiCIDRServiceAllocator*: 1.27 off ALPHA, 1.31 off BETA, 1.33 on GA, 1.34 on GA locked
MutableCSINodeAllocatableCount*: 1.33 off ALPHA, 1.34 off BETA, 1.35 on BETA, 1.36 on GA locked
MutablePVNodeAffinity: 1.35 off ALPHA
MutablePodResourcesForSuspendedJobs: 1.35 off ALPHA, 1.36 on BETA
MutableSchedulingDirectivesForSuspendedJobs*: 1.35 off ALPHA, 1.36 on BETA
MutatingAdmissionPolicy: 1.32 off ALPHA, 1.34 off BETA, 1.36 on GA
NFTablesProxyMode: 1.29 off ALPHA, 1.31 on BETA, 1.33 on GA locked
NativeHistograms: 1.36 off ALPHA
NodeDeclaredFeatures: 1.35 off ALPHA, 1.36 on BETA
NodeInclusionPolicyInPodTopologySpread: 1.25 off ALPHA, 1.26 on BETA, 1.33 on GA locked
NodeLogQuery: 1.27 on ALPHA, 1.30 on BETA, 1.36 on GA locked
NodeSwap: 1.22 off ALPHA, 1.28 off BETA, 1.30 on BETA, 1.34 on GA locked
NominatedNodeNameForExpectation: 1.34 off ALPHA, 1.35 on BETA
OpenAPIEnums: 1.23 off ALPHA, 1.24 on BETA
OpportunisticBatching: 1.35 on BETA
OrderedNamespaceDeletion*: 1.30 off BETA, 1.33 on BETA, 1.34 on GA locked
PLEGOnDemandRelist: 1.36 on BETA
PersistentVolumeClaimUnusedSinceTime*: 1.36 off ALPHA
PodAndContainerStatsFromCRI: 1.23 off ALPHA
PodCertificateRequest*: 1.34 off ALPHA, 1.35 off BETA
PodDeletionCost*: 1.21 off ALPHA, 1.22 on BETA
PodLevelResourceManagers: 1.36 off ALPHA
PodLevelResources*: 1.32 off ALPHA, 1.34 on BETA
PodLifecycleSleepAction: 1.29 off ALPHA, 1.30 on BETA, 1.34 on GA locked
PodLifecycleSleepActionAllowZero: 1.32 off ALPHA, 1.33 on BETA, 1.34 on GA locked
PodLogsQuerySplitStreams: 1.32 off ALPHA
PodObservedGenerationTracking*: 1.33 off ALPHA, 1.34 on BETA, 1.35 on GA locked
PodReadyToStartContainersCondition: 1.28 off ALPHA, 1.29 on BETA
PodSchedulingReadiness: 1.26 off ALPHA, 1.27 on BETA, 1.30 on GA locked
PodTopologyLabelsAdmission: 1.33 off ALPHA, 1.35 on BETA
PodsAPI: 1.36 off ALPHA
PortForwardWebsockets: 1.30 off ALPHA, 1.31 on BETA
PreferSameTrafficDistribution*: 1.33 off ALPHA, 1.34 on BETA, 1.35 on GA locked
PreventStaticPodAPIReferences: 1.34 on BETA
ProcMountType: 1.12 off ALPHA, 1.31 off BETA, 1.33 on BETA, 1.36 on GA locked
QOSReserved: 1.11 off ALPHA
RecoverVolumeExpansionFailure*: 1.23 off ALPHA, 1.32 on BETA, 1.34 on GA locked
RecursiveReadOnlyMounts: 1.30 off ALPHA, 1.31 on BETA, 1.33 on GA locked
ReduceDefaultCrashLoopBackOffDecay: 1.33 off ALPHA
RelaxedDNSSearchValidation: 1.32 off ALPHA, 1.33 on BETA, 1.34 on GA locked
RelaxedEnvironmentVariableValidation: 1.30 off ALPHA, 1.32 on BETA, 1.34 on GA locked
RelaxedServiceNameValidation: 1.34 off ALPHA, 1.36 on BETA
ReloadKubeletClientCAFile: 1.36 on BETA
ReloadKubeletServerCertificateFile: 1.31 on BETA
RemoteRequestHeaderUID*: 1.32 off ALPHA, 1.33 on BETA
ResilientWatchCacheInitialization: 1.31 on BETA, 1.34 on GA locked
ResourceHealthStatus: 1.31 off ALPHA, 1.36 on BETA
ResourceHealthStatusMessage: 1.36 on BETA
RestartAllContainersOnContainerExits*: 1.35 off ALPHA, 1.36 on BETA
RetryGenerateName: 1.30 off ALPHA, 1.31 on BETA, 1.32 on GA locked
RotateKubeletServerCertificate: 1.7 off ALPHA, 1.12 on BETA
RuntimeClassInImageCriApi: 1.29 off ALPHA
SELinuxChangePolicy*: 1.32 off ALPHA, 1.33 on BETA, 1.36 on GA locked
SELinuxMount*: 1.30 off ALPHA, 1.33 off BETA
SELinuxMountReadWriteOncePod*: 1.25 off ALPHA, 1.27 off BETA, 1.28 on BETA, 1.36 on GA locked
SchedulerAsyncAPICalls: 1.34 off BETA
SchedulerAsyncPreemption: 1.32 off ALPHA, 1.33 on BETA
SchedulerPopFromBackoffQ: 1.33 on BETA
SchedulerQueueingHints: 1.28 off BETA, 1.32 on BETA, 1.34 on GA locked
SeparateCacheWatchRPC: 1.28 on BETA, 1.33 off DEPRECATED, 1.36 off DEPRECATED locked
SeparateTaintEvictionController*: 1.29 on BETA, 1.34 on GA locked
ServiceAccountNodeAudienceRestriction: 1.32 off BETA, 1.33 on BETA
ServiceAccountTokenJTI: 1.29 off ALPHA, 1.30 on BETA, 1.32 on GA locked
ServiceAccountTokenNodeBinding: 1.29 off ALPHA, 1.31 on BETA, 1.33 on GA locked
ServiceAccountTokenNodeBindingValidation: 1.29 off ALPHA, 1.30 on BETA, 1.32 on GA locked
ServiceAccountTokenPodNodeInfo: 1.29 off ALPHA, 1.30 on BETA, 1.32 on GA locked
ServiceCIDRStatusFieldWiping: 1.0 off GA, 1.36 on DEPRECATED
ShardedListAndWatch: 1.36 off ALPHA
SidecarContainers*: 1.28 off ALPHA, 1.29 on BETA, 1.33 on GA locked
SizeBasedListCostEstimate: 1.34 on BETA
StaleControllerConsistencyDaemonSet*: 1.36 on BETA
StaleControllerConsistencyJob*: 1.36 on BETA
StaleControllerConsistencyReplicaSet*: 1.36 on BETA
StaleControllerConsistencyStatefulSet*: 1.36 on BETA
StatefulSetSemanticRevisionComparison*: 1.0 on BETA
StorageCapacityScoring: 1.33 off ALPHA
StorageNamespaceIndex: 1.30 on BETA, 1.33 on DEPRECATED
StorageVersionAPI*: 1.20 off ALPHA
StorageVersionHash: 1.14 off ALPHA, 1.15 on BETA
StorageVersionMigrator*: 1.30 off ALPHA, 1.35 off BETA
StreamingCollectionEncodingToJSON: 1.33 on BETA, 1.34 on GA locked
StreamingCollectionEncodingToProtobuf: 1.33 on BETA, 1.34 on GA locked
StrictIPCIDRValidation: 1.33 off ALPHA, 1.36 on BETA
StructuredAuthenticationConfiguration: 1.29 off ALPHA, 1.30 on BETA, 1.34 on GA locked
StructuredAuthenticationConfigurationEgressSelector: 1.34 on BETA
StructuredAuthenticationConfigurationJWKSMetrics: 1.35 on BETA
SupplementalGroupsPolicy: 1.31 off ALPHA, 1.33 on BETA, 1.35 on GA locked
SystemdWatchdog: 1.32 on BETA, 1.35 on GA locked
TaintTolerationComparisonOperators*: 1.35 off ALPHA
TokenRequestServiceAccountUIDValidation: 1.34 on BETA
TopologyAwareWorkloadScheduling: 1.36 off ALPHA
TopologyManagerPolicyAlphaOptions: 1.26 off ALPHA
TopologyManagerPolicyBetaOptions: 1.26 off BETA, 1.28 on BETA
TopologyManagerPolicyOptions: 1.26 off ALPHA, 1.28 on BETA, 1.32 on GA locked
TranslateStreamCloseWebsocketRequests: 1.29 off ALPHA, 1.30 on BETA
UnauthenticatedHTTP2DOSMitigation*: 1.25 off BETA, 1.29 on BETA
UnknownVersionInteroperabilityProxy: 1.28 off ALPHA, 1.36 on BETA
UnlockWhileProcessingFIFO*: 1.36 on BETA
UserNamespacesHostNetworkSupport: 1.35 off ALPHA
UserNamespacesSupport: 1.25 off ALPHA, 1.30 off BETA, 1.33 on BETA, 1.36 on GA locked
VolumeAttributesClass*: 1.29 off ALPHA, 1.31 off BETA, 1.34 on GA, 1.36 on GA locked
VolumeLimitScaling: 1.35 off ALPHA
WatchCacheInitializationPostStartHook: 1.31 off BETA, 1.36 on BETA
WatchList: 1.27 off ALPHA, 1.32 on BETA, 1.33 off BETA, 1.34 on BETA
WatchListClient*: 1.30 off BETA, 1.35 on BETA
WinDSR: 1.14 off ALPHA, 1.33 on BETA, 1.34 on GA locked
WinOverlay: 1.14 off ALPHA, 1.20 on BETA, 1.34 on GA locked
WindowsCPUAndMemoryAffinity: 1.32 off ALPHA
WindowsGracefulNodeShutdown: 1.32 off ALPHA, 1.34 on BETA
WindowsHostNetwork: 1.26 off ALPHA, 1.33 off DEPRECATED
WorkloadAwarePreemption: 1.36 off ALPHA
WorkloadWithJob*: 1.36 off ALPHA
"""
"""A star marks the gates that kube-controller-manager reads; the others are there because all components know them."""


def _stages(text: str) -> tuple[Stage, ...]:
    words = (stage.split() for stage in text.split(", "))
    return tuple((release, default == "on", stage, bool(locked)) for release, default, stage, *locked in words)


_LINES = [line.partition(": ") for line in _HISTORY.strip().splitlines()]
GATES = {name.rstrip("*"): _stages(text) for name, _, text in _LINES}
MANAGERS = frozenset(name.rstrip("*") for name, _, _ in _LINES if name.endswith("*"))

DEPENDENCIES: dict[str, tuple[str, ...]] = {
    "AuthorizeNodeWithSelectors": ("AuthorizeWithSelectors",),
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRAAdminAccess": ("DynamicResourceAllocation",),
    "DRAConsumableCapacity": ("DynamicResourceAllocation",),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRADeviceTaints": ("DynamicResourceAllocation",),
    "DRAExtendedResource": ("DynamicResourceAllocation",),
    "DRAListTypeAttributes": ("DynamicResourceAllocation",),
    "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
    "DRAPartitionableDevices": ("DynamicResourceAllocation",),
    "DRAPrioritizedList": ("DynamicResourceAllocation",),
    "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"),
    "DRAResourcePoolStatus": ("DynamicResourceAllocation",),
    "DRASchedulerFilterTimeout": ("DynamicResourceAllocation",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "DeclarativeValidationBeta": ("DeclarativeValidation",),
    "DeclarativeValidationTakeover": ("DeclarativeValidation",),
    "DisableAllocatorDualWrite": ("MultiCIDRServiceAllocator",),
    "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "ImageVolumeWithDigest": ("ImageVolume",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "InPlacePodVerticalScaling",
        "NodeDeclaredFeatures",
        "PodLevelResources",
    ),
    "InPlacePodVerticalScalingExclusiveCPUs": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingExclusiveMemory": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingInitContainers": ("InPlacePodVerticalScaling", "NodeDeclaredFeatures"),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "PodCertificateRequest": ("AuthorizeNodeWithSelectors",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "PodLifecycleSleepActionAllowZero": ("PodLifecycleSleepAction",),
    "ProcMountType": ("UserNamespacesSupport",),
    "ResourceHealthStatus": ("DynamicResourceAllocation",),
    "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "ServiceAccountTokenNodeBinding": ("ServiceAccountTokenNodeBindingValidation",),
    "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
    "StaleControllerConsistencyJob": ("AtomicFIFO",),
    "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
    "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
    "StorageVersionAPI": ("APIServerIdentity",),
    "StructuredAuthenticationConfigurationEgressSelector": ("StructuredAuthenticationConfiguration",),
    "StructuredAuthenticationConfigurationJWKSMetrics": ("StructuredAuthenticationConfiguration",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "UserNamespacesHostNetworkSupport": ("NodeDeclaredFeatures", "UserNamespacesSupport"),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
