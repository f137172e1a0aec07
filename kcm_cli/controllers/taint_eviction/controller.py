"""taint-eviction-controller: the eviction of pods by NoExecute taints, where it is a controller of its own.

upstream: cmd/kube-controller-manager/app/core.go#newTaintEvictionController
"""

from kcm_cli.controllers.shared.taint_eviction import TAINT_EVICTION

CONTROLLER = TAINT_EVICTION
