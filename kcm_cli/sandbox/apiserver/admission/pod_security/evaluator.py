"""The rules of each level and version, in the order of violations.

upstream: staging/src/k8s.io/pod-security-admission/policy/registry.go
"""

from functools import cache

import msgspec

from kcm_cli.sandbox.apiserver.admission.pod_security import baseline, restricted
from kcm_cli.sandbox.apiserver.admission.pod_security.findings import Check, Finding
from kcm_cli.sandbox.apiserver.admission.pod_security.levels import BASELINE, PRIVILEGED, LevelVersion
from kcm_cli.sandbox.apiserver.types import Tree

_NEWEST = 35
"""The last minor version that changed a rule."""


class _Rule(msgspec.Struct, frozen=True):
    """versions: pairs of a minor version and the check since then. replaces: the baseline rule that this restricted one
    includes.
    """

    name: str
    versions: tuple[tuple[int, Check], ...]
    replaces: str = ""

    def at(self, minor: int) -> Check | None:
        return next((check for since, check in reversed(self.versions) if since <= minor), None)


_windows = restricted.unless_windows
_userns = restricted.unless_user_namespace
_BASELINE = (
    _Rule("appArmorProfile", ((0, baseline.apparmor_profile),)),
    _Rule("capabilities_baseline", ((0, baseline.capabilities),)),
    _Rule("hostNamespaces", ((0, baseline.host_namespaces),)),
    _Rule("hostPathVolumes", ((0, baseline.host_path_volumes),)),
    _Rule("hostPorts", ((0, baseline.host_ports),)),
    _Rule("hostProbesAndHostLifecycle", ((34, baseline.host_probes),)),
    _Rule("privileged", ((0, baseline.privileged),)),
    _Rule("procMount", ((0, baseline.proc_mount), (35, baseline.proc_mount_35))),
    _Rule("seLinuxOptions", ((0, baseline.selinux_options()), (31, baseline.selinux_options(baseline.SELINUX_31)))),
    _Rule("seccompProfile_baseline", ((0, baseline.seccomp_annotations), (19, baseline.seccomp_profile))),
    _Rule(
        "sysctls",
        (
            (0, baseline.sysctls()),
            (27, baseline.sysctls(baseline.SYSCTLS_27)),
            (29, baseline.sysctls(baseline.SYSCTLS_29)),
            (32, baseline.sysctls(baseline.SYSCTLS_32)),
        ),
    ),
    _Rule("windowsHostProcess", ((0, baseline.windows_host_process),)),
)
_RESTRICTED = (
    _Rule(
        "allowPrivilegeEscalation",
        ((8, restricted.privilege_escalation), (25, _windows(restricted.privilege_escalation))),
    ),
    _Rule(
        "capabilities_restricted",
        ((22, restricted.capabilities), (25, _windows(restricted.capabilities))),
        "capabilities_baseline",
    ),
    _Rule("procMount_restricted", ((35, baseline.proc_mount),), "procMount"),
    _Rule("restrictedVolumes", ((0, restricted.volumes),), "hostPathVolumes"),
    _Rule("runAsNonRoot", ((0, restricted.run_as_non_root), (35, _userns(restricted.run_as_non_root)))),
    _Rule("runAsUser", ((23, restricted.run_as_user), (35, _userns(restricted.run_as_user)))),
    _Rule(
        "seccompProfile_restricted",
        ((19, restricted.seccomp), (25, _windows(restricted.seccomp))),
        "seccompProfile_baseline",
    ),
)


def evaluate(wanted: LevelVersion, metadata: Tree, spec: Tree) -> list[Finding]:
    """The violations of a pod."""
    if wanted.level == PRIVILEGED:
        return []
    checks = _checks(wanted.level, min(wanted.minor, _NEWEST))
    return [finding for check in checks if (finding := check(metadata, spec)) is not None]


@cache
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    further = () if level == BASELINE else tuple(rule for rule in _RESTRICTED if rule.at(minor))
    replaced = {rule.replaces for rule in further}
    rules = (*(rule for rule in _BASELINE if rule.name not in replaced), *further)
    return tuple(check for rule in rules if (check := rule.at(minor)) is not None)
