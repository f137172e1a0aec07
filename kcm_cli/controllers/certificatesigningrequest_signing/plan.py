"""Which requests are signed, and for how long.

upstream: pkg/controller/certificates/signer/signer.go
"""

from kcm_cli.api.certificates import CertificateSigningRequest

SHORTEST_S = 600.0


def is_due(request: CertificateSigningRequest) -> bool:
    """Approved, not denied, and neither signed nor given up yet."""
    types = {condition.type for condition in request.status.conditions}
    failed = any(c.type == "Failed" and c.status in ("", "True") for c in request.status.conditions)
    return "Approved" in types and "Denied" not in types and not failed and not request.status.certificate


def duration_s(asked_s: int | None, longest_s: float) -> float:
    """How long a certificate is valid: as asked, but not more than the longest nor less than ten minutes."""
    return longest_s if asked_s is None or asked_s > longest_s else max(float(asked_s), SHORTEST_S)
