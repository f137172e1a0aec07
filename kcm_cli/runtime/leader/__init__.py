"""Leader election on a Lease: a pure decision (``record``), the lock (``lock``) and the loop (``elector``)."""

from kcm_cli.runtime.leader.elector import HEALTH_CHECK, ElectionConfig, Elector
from kcm_cli.runtime.leader.lock import LeaseLock, Lock

__all__ = ["HEALTH_CHECK", "ElectionConfig", "Elector", "LeaseLock", "Lock"]
