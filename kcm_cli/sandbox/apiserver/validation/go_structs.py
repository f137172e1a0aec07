"""Upstream's internal types that are not in ``machinery.go_types``, or differ from it.

Errors print values of internal types: their fields by name and in order, absent ones as zero values. The notation is
that of ``go_types``: ``Field:type`` or ``Field=json:type``; ``=.`` marks an inlined struct. A JSON name with ``^`` is
one level up: versioned pods have host namespaces in the spec, internal ones in the security context. ``~metadata`` is
an embedded metav1.ObjectMeta, which is printed by its JSON names.

upstream: pkg/apis/{core,batch,policy,rbac,...}/types.go, v1.36
"""

STRUCTS = """
core.PodTemplateSpec ObjectMeta=metadata:~metadata Spec:core.PodSpec
core.PersistentVolumeClaimTemplate ObjectMeta=metadata:~metadata Spec:v1.PersistentVolumeClaimSpec
core.PodSpec Volumes:[]core.Volume InitContainers:[]v1.Container Containers:[]v1.Container
  EphemeralContainers:[]v1.EphemeralContainer RestartPolicy:string TerminationGracePeriodSeconds:*int64
  ActiveDeadlineSeconds:*int64 DNSPolicy=dnsPolicy:string NodeSelector:map[string]string
  ServiceAccountName:string AutomountServiceAccountToken:*bool NodeName:string
  SecurityContext:*core.PodSecurityContext ImagePullSecrets:[]v1.LocalObjectReference Hostname:string
  Subdomain:string SetHostnameAsFQDN:*bool Affinity:*v1.Affinity SchedulerName:string
  Tolerations:[]v1.Toleration HostAliases:[]v1.HostAlias PriorityClassName:string Priority:*int32
  PreemptionPolicy:*string DNSConfig=dnsConfig:*v1.PodDNSConfig ReadinessGates:[]v1.PodReadinessGate
  RuntimeClassName:*string Overhead:v1.ResourceList EnableServiceLinks:*bool
  TopologySpreadConstraints:[]v1.TopologySpreadConstraint OS=os:*v1.PodOS
  SchedulingGates:[]v1.PodSchedulingGate ResourceClaims:[]v1.PodResourceClaim
  Resources:*v1.ResourceRequirements HostnameOverride:*string SchedulingGroup:*v1.PodSchedulingGroup
core.PodSecurityContext HostNetwork=^hostNetwork:bool HostPID=^hostPID:bool HostIPC=^hostIPC:bool
  ShareProcessNamespace=^shareProcessNamespace:*bool HostUsers=^hostUsers:*bool
  SELinuxOptions=seLinuxOptions:*v1.SELinuxOptions WindowsOptions:*v1.WindowsSecurityContextOptions
  RunAsUser:*int64 RunAsGroup:*int64 RunAsNonRoot:*bool SupplementalGroups:[]int64
  SupplementalGroupsPolicy:*string FSGroup=fsGroup:*int64 FSGroupChangePolicy=fsGroupChangePolicy:*string
  Sysctls:[]v1.Sysctl SeccompProfile:*v1.SeccompProfile AppArmorProfile:*v1.AppArmorProfile
  SELinuxChangePolicy=seLinuxChangePolicy:*string
core.Volume Name:string VolumeSource=.:core.VolumeSource
core.VolumeSource HostPath:*v1.HostPathVolumeSource EmptyDir:*v1.EmptyDirVolumeSource
  GCEPersistentDisk=gcePersistentDisk:*v1.GCEPersistentDiskVolumeSource
  AWSElasticBlockStore=awsElasticBlockStore:*v1.AWSElasticBlockStoreVolumeSource
  GitRepo:*v1.GitRepoVolumeSource Secret:*v1.SecretVolumeSource NFS=nfs:*v1.NFSVolumeSource
  ISCSI=iscsi:*v1.ISCSIVolumeSource Glusterfs:*v1.GlusterfsVolumeSource
  PersistentVolumeClaim:*v1.PersistentVolumeClaimVolumeSource RBD=rbd:*v1.RBDVolumeSource
  Quobyte:*v1.QuobyteVolumeSource FlexVolume:*v1.FlexVolumeSource Cinder:*v1.CinderVolumeSource
  CephFS=cephfs:*v1.CephFSVolumeSource Flocker:*v1.FlockerVolumeSource
  DownwardAPI:*v1.DownwardAPIVolumeSource FC=fc:*v1.FCVolumeSource AzureFile:*v1.AzureFileVolumeSource
  ConfigMap:*v1.ConfigMapVolumeSource VsphereVolume:*v1.VsphereVirtualDiskVolumeSource
  AzureDisk:*v1.AzureDiskVolumeSource PhotonPersistentDisk:*v1.PhotonPersistentDiskVolumeSource
  Projected:*core.ProjectedVolumeSource PortworxVolume:*v1.PortworxVolumeSource
  ScaleIO=scaleIO:*v1.ScaleIOVolumeSource StorageOS=storageos:*v1.StorageOSVolumeSource
  CSI=csi:*v1.CSIVolumeSource Ephemeral:*core.EphemeralVolumeSource Image:*v1.ImageVolumeSource
core.EphemeralVolumeSource VolumeClaimTemplate:*core.PersistentVolumeClaimTemplate
core.ProjectedVolumeSource Sources:[]core.VolumeProjection DefaultMode:*int32
core.VolumeProjection Secret:*v1.SecretProjection DownwardAPI:*v1.DownwardAPIProjection
  ConfigMap:*v1.ConfigMapProjection ServiceAccountToken:*core.ServiceAccountTokenProjection
  ClusterTrustBundle:*v1.ClusterTrustBundleProjection PodCertificate:*v1.PodCertificateProjection
core.ServiceAccountTokenProjection Audience:string ExpirationSeconds:int64 Path:string
core.PersistentVolumeSource GCEPersistentDisk=gcePersistentDisk:*v1.GCEPersistentDiskVolumeSource
  AWSElasticBlockStore=awsElasticBlockStore:*v1.AWSElasticBlockStoreVolumeSource
  HostPath:*v1.HostPathVolumeSource Glusterfs:*core.GlusterfsPersistentVolumeSource
  NFS=nfs:*v1.NFSVolumeSource RBD=rbd:*core.RBDPersistentVolumeSource Quobyte:*v1.QuobyteVolumeSource
  ISCSI=iscsi:*core.ISCSIPersistentVolumeSource FlexVolume:*core.FlexPersistentVolumeSource
  Cinder:*core.CinderPersistentVolumeSource CephFS=cephfs:*core.CephFSPersistentVolumeSource
  FC=fc:*v1.FCVolumeSource Flocker:*v1.FlockerVolumeSource AzureFile:*core.AzureFilePersistentVolumeSource
  VsphereVolume:*v1.VsphereVirtualDiskVolumeSource AzureDisk:*v1.AzureDiskVolumeSource
  PhotonPersistentDisk:*v1.PhotonPersistentDiskVolumeSource PortworxVolume:*v1.PortworxVolumeSource
  ScaleIO=scaleIO:*core.ScaleIOPersistentVolumeSource Local:*core.LocalVolumeSource
  StorageOS=storageos:*core.StorageOSPersistentVolumeSource CSI=csi:*core.CSIPersistentVolumeSource
core.SecretReference Name:string Namespace:string
core.ObjectReference Kind:string Namespace:string Name:string UID=uid:string APIVersion=apiVersion:string
  ResourceVersion:string FieldPath:string
core.GlusterfsPersistentVolumeSource EndpointsName=endpoints:string Path:string ReadOnly:bool
  EndpointsNamespace:*string
core.RBDPersistentVolumeSource CephMonitors=monitors:[]string RBDImage=image:string FSType=fsType:string
  RBDPool=pool:string RadosUser=user:string Keyring:string SecretRef:*core.SecretReference ReadOnly:bool
core.ISCSIPersistentVolumeSource TargetPortal:string IQN=iqn:string Lun:int32
  ISCSIInterface=iscsiInterface:string FSType=fsType:string ReadOnly:bool Portals:[]string
  DiscoveryCHAPAuth=chapAuthDiscovery:bool SessionCHAPAuth=chapAuthSession:bool
  SecretRef:*core.SecretReference InitiatorName:*string
core.FlexPersistentVolumeSource Driver:string FSType=fsType:string SecretRef:*core.SecretReference
  ReadOnly:bool Options:map[string]string
core.CinderPersistentVolumeSource VolumeID:string FSType=fsType:string ReadOnly:bool
  SecretRef:*core.SecretReference
core.CephFSPersistentVolumeSource Monitors:[]string Path:string User:string SecretFile:string
  SecretRef:*core.SecretReference ReadOnly:bool
core.AzureFilePersistentVolumeSource SecretName:string ShareName:string ReadOnly:bool
  SecretNamespace:*string
core.ScaleIOPersistentVolumeSource Gateway:string System:string SecretRef:*core.SecretReference
  SSLEnabled=sslEnabled:bool ProtectionDomain:string StoragePool:string StorageMode:string
  VolumeName:string FSType=fsType:string ReadOnly:bool
core.LocalVolumeSource Path:string FSType=fsType:*string
core.StorageOSPersistentVolumeSource VolumeName:string VolumeNamespace:string FSType=fsType:string
  ReadOnly:bool SecretRef:*core.ObjectReference
core.CSIPersistentVolumeSource Driver:string VolumeHandle:string ReadOnly:bool FSType=fsType:string
  VolumeAttributes:map[string]string ControllerPublishSecretRef:*core.SecretReference
  NodeStageSecretRef:*core.SecretReference NodePublishSecretRef:*core.SecretReference
  ControllerExpandSecretRef:*core.SecretReference NodeExpandSecretRef:*core.SecretReference
core.VolumeNodeAffinity Required:*v1.NodeSelector
core.PersistentVolumeSpec Capacity:map[string]string PersistentVolumeSource=.:core.PersistentVolumeSource
  AccessModes:[]string ClaimRef:*core.ObjectReference PersistentVolumeReclaimPolicy:string
  StorageClassName:string MountOptions:[]string VolumeMode:*string NodeAffinity:*core.VolumeNodeAffinity
  VolumeAttributesClassName:*string
storage.VolumeAttachmentSpec Attacher:string Source:storage.VolumeAttachmentSource NodeName:string
storage.VolumeAttachmentSource PersistentVolumeName:*string InlineVolumeSpec:*core.PersistentVolumeSpec
storage.CSINodeDriver Name:string NodeID=nodeID:string TopologyKeys:[]string
  Allocatable:*storage.VolumeNodeResources
storage.VolumeNodeResources Count:*int32
networking.ParentReference Group:string Resource:string Namespace:string Name:string
core.Taint Key:string Value:string Effect:string TimeAdded:*v1.Time
core.EventSource Component:string Host:string
core.ScopeSelector MatchExpressions:[]core.ScopedResourceSelectorRequirement
core.ScopedResourceSelectorRequirement ScopeName:string Operator:string Values:[]string
admissionregistration.AuditAnnotation Key:string ValueExpression:string
certificates.CertificateSigningRequestCondition Type:string Status:string Reason:string Message:string
  LastUpdateTime:v1.Time LastTransitionTime:v1.Time
batch.PodFailurePolicy Rules:[]batch.PodFailurePolicyRule
batch.PodFailurePolicyRule Action:string OnExitCodes:*batch.PodFailurePolicyOnExitCodesRequirement
  OnPodConditions:[]batch.PodFailurePolicyOnPodConditionsPattern
batch.PodFailurePolicyOnExitCodesRequirement ContainerName:*string Operator:string Values:[]int32
batch.PodFailurePolicyOnPodConditionsPattern Type:string Status:string
batch.SuccessPolicy Rules:[]batch.SuccessPolicyRule
batch.SuccessPolicyRule SucceededIndexes:*string SucceededCount:*int32
batch.UncountedTerminatedPods Succeeded:[]string Failed:[]string
autoscaling.HorizontalPodAutoscalerBehavior ScaleUp:*autoscaling.HPAScalingRules
  ScaleDown:*autoscaling.HPAScalingRules
autoscaling.HPAScalingRules StabilizationWindowSeconds:*int32 SelectPolicy:*string
  Policies:[]autoscaling.HPAScalingPolicy Tolerance:*resource.Quantity
autoscaling.HPAScalingPolicy Type:string Value:int32 PeriodSeconds:int32
resource.ResourceClaimSpec Devices:resource.DeviceClaim
resource.ResourceClaimTemplateSpec ObjectMeta=metadata:~metadata Spec:resource.ResourceClaimSpec
resource.DeviceAttribute IntValue=int:*int64 BoolValue=bool:*bool StringValue=string:*string
  VersionValue=version:*string IntValues=ints:[]int64 BoolValues=bools:[]bool
  StringValues=strings:[]string VersionValues=versions:[]string
resource.DeviceClaim Requests:[]resource.DeviceRequest Constraints:[]resource.DeviceConstraint
  Config:[]resource.DeviceClaimConfiguration
resource.AllocationResult Devices:resource.DeviceAllocationResult NodeSelector:*v1.NodeSelector
  AllocationTimestamp:*v1.Time
resource.DeviceRequest Name:string Exactly:*resource.ExactDeviceRequest
  FirstAvailable:[]resource.DeviceSubRequest
resource.DeviceConstraint Requests:[]string MatchAttribute:*string DistinctAttribute:*string
resource.DeviceClaimConfiguration Requests:[]string DeviceConfiguration=.:resource.DeviceConfiguration
resource.DeviceAllocationResult Results:[]resource.DeviceRequestAllocationResult
  Config:[]resource.DeviceAllocationConfiguration
resource.ExactDeviceRequest DeviceClassName:string Selectors:[]resource.DeviceSelector
  AllocationMode:string Count:int64 AdminAccess:*bool Tolerations:[]resource.DeviceToleration
  Capacity:*resource.CapacityRequirements
resource.DeviceSubRequest Name:string DeviceClassName:string Selectors:[]resource.DeviceSelector
  AllocationMode:string Count:int64 Tolerations:[]resource.DeviceToleration
  Capacity:*resource.CapacityRequirements
resource.DeviceConfiguration Opaque:*resource.OpaqueDeviceConfiguration
resource.DeviceRequestAllocationResult Request:string Driver:string Pool:string Device:string
  AdminAccess:*bool Tolerations:[]resource.DeviceToleration BindingConditions:[]string
  BindingFailureConditions:[]string ShareID:*string ConsumedCapacity:map[string]resource.Quantity
resource.DeviceAllocationConfiguration Source:string Requests:[]string
  DeviceConfiguration=.:resource.DeviceConfiguration
resource.DeviceSelector CEL=cel:*resource.CELDeviceSelector
resource.DeviceToleration Key:string Operator:string Value:string Effect:string TolerationSeconds:*int64
resource.CapacityRequirements Requests:map[string]resource.Quantity
resource.OpaqueDeviceConfiguration Driver:string Parameters:runtime.RawExtension
resource.CELDeviceSelector Expression:string
flowcontrol.FlowSchemaSpec PriorityLevelConfiguration:flowcontrol.PriorityLevelConfigurationReference
  MatchingPrecedence:int32 DistinguisherMethod:*flowcontrol.FlowDistinguisherMethod
  Rules:[]flowcontrol.PolicyRulesWithSubjects
flowcontrol.PriorityLevelConfigurationReference Name:string
flowcontrol.FlowDistinguisherMethod Type:string
flowcontrol.PolicyRulesWithSubjects Subjects:[]flowcontrol.Subject
  ResourceRules:[]flowcontrol.ResourcePolicyRule NonResourceRules:[]flowcontrol.NonResourcePolicyRule
flowcontrol.Subject Kind:string User:*flowcontrol.UserSubject Group:*flowcontrol.GroupSubject
  ServiceAccount:*flowcontrol.ServiceAccountSubject
flowcontrol.UserSubject Name:string
flowcontrol.GroupSubject Name:string
flowcontrol.ServiceAccountSubject Namespace:string Name:string
flowcontrol.ResourcePolicyRule Verbs:[]string APIGroups=apiGroups:[]string Resources:[]string ClusterScope:bool
  Namespaces:[]string
flowcontrol.NonResourcePolicyRule Verbs:[]string NonResourceURLs=nonResourceURLs:[]string
flowcontrol.PriorityLevelConfigurationSpec Type:string
  Limited:*flowcontrol.LimitedPriorityLevelConfiguration Exempt:*flowcontrol.ExemptPriorityLevelConfiguration
flowcontrol.LimitedPriorityLevelConfiguration NominalConcurrencyShares:int32
  LimitResponse:flowcontrol.LimitResponse LendablePercent:*int32 BorrowingLimitPercent:*int32
flowcontrol.LimitResponse Type:string Queuing:*flowcontrol.QueuingConfiguration
flowcontrol.QueuingConfiguration Queues:int32 HandSize:int32 QueueLengthLimit:int32
flowcontrol.ExemptPriorityLevelConfiguration NominalConcurrencyShares:*int32 LendablePercent:*int32
"""

INTERNAL_NAMES = {
    "v1.PodTemplateSpec": "core.PodTemplateSpec",
    "v1.PodSpec": "core.PodSpec",
    "v1.PodSecurityContext": "core.PodSecurityContext",
    "v1.Volume": "core.Volume",
    "v1.VolumeSource": "core.VolumeSource",
}
