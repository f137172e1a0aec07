"""Unusual requests of all kinds get a response; none makes the server fail."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.unit.sandbox.fuzz.cluster import Cluster
from tests.unit.sandbox.fuzz.mutations import Tape
from tests.unit.sandbox.fuzz.scenarios import SCENARIOS

LENGTH = 120


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(Certificates.load(None, datetime.now(UTC)))
    yield made
    made.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@settings(
    max_examples=150,  # the same ones each time; `make fuzz` runs for longer
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(data=st.binary(min_size=LENGTH, max_size=LENGTH))
def test_none_makes_the_server_fail(cluster: Cluster, scenario: Callable[[Cluster, Tape], None], data: bytes) -> None:
    scenario(cluster, Tape(data))
