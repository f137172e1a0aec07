"""Annotations and finalizers of volumes and claims.

upstream: staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go
"""

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""On claims that have been bound once, whatever its value."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a volume or claim whose pointer to the other was set by a controller, not by its author."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim for which the scheduler has chosen a node: its volume may be made now."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"

PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
IN_TREE_FINALIZER = "kubernetes.io/pv-controller"

NO_PROVISIONER = "kubernetes.io/no-provisioner"
IN_TREE = "kubernetes.io/"
"""How the names of the plugins begin that are, or were, part of Kubernetes."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
YES = "yes"
