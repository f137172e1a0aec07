"""Options of the legacy-serviceaccount-token-cleaner-controller."""

from kcm_cli.component.options import OptionGroup, duration


class LegacyTokenCleanerConfig(OptionGroup):
    clean_up_period_s: float = duration(
        8760 * 3600.0,
        flag="legacy-service-account-token-clean-up-period",
        key="CleanUpPeriod",
        help=(
            "How long an auto-generated token Secret must be unused before it is marked as invalid, "
            "and again before it is deleted."
        ),
    )
