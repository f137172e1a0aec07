"""Options of the legacy-serviceaccount-token-cleaner-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import duration


@dataclass(frozen=True, slots=True)
class LegacyTokenCleanerConfig:
    """Options of the legacy-serviceaccount-token-cleaner controller."""

    clean_up_period_s: float = duration(
        8760 * 3600.0,
        flag="legacy-service-account-token-clean-up-period",
        key="CleanUpPeriod",
        help=(
            "How long a token Secret that was made for a ServiceAccount must have been unused before it is "
            "marked invalid, and then again before it is deleted."
        ),
    )
