"""The state machine of a pod: properties that hold for any behaviour and any times."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from kcm_cli.sandbox.nodes import machine
from kcm_cli.sandbox.nodes.script import NO_HOOK, ContainerScript, Hook, PodScript, Probing, Role, Run

seconds = st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0, 60.0, math.inf])
short = st.sampled_from([0.0, 0.5, 1.0, 5.0])
hooks = st.just(NO_HOOK) | st.builds(Hook, seconds, st.booleans())
runs = st.builds(Run, seconds, st.integers(0, 2))


@st.composite
def containers(draw: st.DrawFn, role: Role, index: int) -> ContainerScript:
    restart = "Always" if role is Role.SIDECAR else draw(st.sampled_from(["Always", "OnFailure", "Never"]))
    if role is Role.INIT and restart == "Always":
        restart = "OnFailure"
    return ContainerScript(
        f"{role.value}{index}",
        role,
        restart,
        (),
        draw(runs),
        draw(st.integers(0, 3)),
        draw(runs),
        draw(short),
        draw(seconds),
        draw(seconds),
        post_start=NO_HOOK if role is Role.INIT else draw(hooks),
        pre_stop=NO_HOOK if role is Role.INIT else draw(hooks),
        later=draw(st.none() | st.builds(Probing, short, seconds)),
    )


@st.composite
def scripts(draw: st.DrawFn) -> PodScript:
    roles = draw(st.lists(st.sampled_from([Role.INIT, Role.SIDECAR]), max_size=2))
    roles += [Role.MAIN] * draw(st.integers(1, 2))
    made = tuple(draw(containers(role, index)) for index, role in enumerate(roles))
    return PodScript(
        made, draw(short), draw(st.sampled_from([math.inf, 20.0])), draw(st.sampled_from([0.0, 5.0, 30.0]))
    )


LEAST_S = 2.0
"""A container has so long to stop, whatever its grace is."""
AT_ONCE = Run(0.0, 0)
FAILING_HOOK = PodScript(
    (ContainerScript("c", Role.MAIN, "Always", (), AT_ONCE, 0, AT_ONCE, 0.0, 0.0, 0.0, post_start=Hook(fails=True)),),
    0.0,
    math.inf,
    0.0,
)
instants = st.lists(st.floats(0, 2000), min_size=1, max_size=6).map(sorted)


@given(scripts(), instants)
def test_advancing_in_steps_has_the_same_result(script: PodScript, times: list[float]) -> None:
    start = machine.accept(script, 0.0)
    state = start
    for at in times:
        state = machine.advance(script, state, at)
    assert state == machine.advance(script, start, times[-1])


@given(scripts(), instants, st.floats(0, 500), st.sampled_from([0.0, 5.0, 60.0]))
@example(FAILING_HOOK, [0.0], 0.0, 0.0)
def test_a_stopped_pod_ends_within_its_grace_and_stays_so(
    script: PodScript, times: list[float], at: float, grace_s: float
) -> None:
    state = machine.advance(script, machine.accept(script, 0.0), at)
    state = machine.stop(state, at, grace_s)
    end = at + grace_s + LEAST_S
    ended = machine.advance(script, state, end)
    assert machine.finished(script, ended)
    assert machine.advance(script, ended, end + times[-1]) == ended
    assert machine.due(script, ended, end) == math.inf


@given(scripts(), st.floats(0, 1000))
def test_due_is_when_the_next_change_is(script: PodScript, at: float) -> None:
    state = machine.advance(script, machine.accept(script, 0.0), at)
    due = machine.due(script, state, at)
    assert due > at
    if due < math.inf:
        just_before = at + (due - at) * 0.5
        assert machine.advance(script, state, just_before) == state


@given(scripts(), st.floats(0, 1000))
def test_regular_containers_start_after_all_init_containers_did_their_part(script: PodScript, at: float) -> None:
    state = machine.advance(script, machine.accept(script, 0.0), at)
    pairs = list(zip(script.containers, state.containers, strict=True))
    if any(current.starts for container, current in pairs if container.role is Role.MAIN):
        for container, current in pairs:
            if container.role is Role.INIT:
                assert current.exit is not None and current.exit.code == 0
            elif container.role is Role.SIDECAR:
                assert current.starts > 0
    assert machine.finished(script, state) is False or all(current.started_at is None for _, current in pairs)


def one(restart: str, run: Run, **changes: float) -> PodScript:
    container = ContainerScript("c", Role.MAIN, restart, (), run, 0, run, 0.0, 0.0, 0.0)
    return PodScript((container,), changes.get("start", 0.0), changes.get("deadline", math.inf), 30.0)


def test_backoff_doubles_to_five_minutes() -> None:
    script = one("Always", Run(0.0, 1))
    state = machine.accept(script, 0.0)
    starts, now = [], 0.0
    for _ in range(9):
        state = machine.advance(script, state, now)
        starts.append(now)
        now = machine.due(script, state, now)
    assert [late - early for early, late in zip(starts, starts[1:], strict=False)] == [
        10, 20, 40, 80, 160, 300, 300, 300
    ]  # fmt: skip


def test_a_container_that_a_probe_ends_waits_from_the_end_of_the_run_before() -> None:
    """As kubectl shows a pod whose probe fails again and again (kubernetes#99697)."""
    script = one("Always", Run(66.0, 137, "", "liveness"))
    state = machine.accept(script, 0.0)
    pauses, now = [], 0.0
    for _ in range(40):
        state = machine.advance(script, state, now)
        current = state.containers[0]
        if current.started_at == now and current.previous is not None:
            pauses.append(now - current.previous.finished)
        now = machine.due(script, state, now)
    assert pauses[:11] == [0, 0, 0, 0, 0, 80, 160, 300, 0, 300, 0]


def test_backoff_is_forgotten_after_a_long_run() -> None:
    script = one("Always", Run(700.0, 1))
    state = machine.advance(script, machine.accept(script, 0.0), 1401.0)
    assert state.containers[0].starts == 3
    assert state.containers[0].started_at == 1400.0


def test_sidecars_stop_last_and_in_reverse() -> None:
    sidecar = Run(math.inf, 0)
    made = [ContainerScript(n, Role.SIDECAR, "Always", (), sidecar, 0, sidecar, 0, 0, 2.0) for n in ("s", "t")]
    main = ContainerScript("c", Role.MAIN, "Always", (), sidecar, 0, sidecar, 0, 0, 3.0)
    script = PodScript((*made, main), 0.0, math.inf, 30.0)
    state = machine.advance(script, machine.accept(script, 0.0), 1.0)
    state = machine.advance(script, machine.stop(state, 10.0, 30.0), 60.0)
    assert [c.exit.finished for c in state.containers if c.exit] == [17.0, 15.0, 13.0]


def test_hooks_use_the_grace_period_and_run_before_a_sidecar_stops() -> None:
    for_ever = Run(math.inf, 0)
    sidecar = ContainerScript("s", Role.SIDECAR, "Always", (), for_ever, 0, for_ever, 0, 0, 0.0, pre_stop=Hook(5.0))
    main = ContainerScript("c", Role.MAIN, "Always", (), for_ever, 0, for_ever, 0, 0, 1.0, pre_stop=Hook(7.0))
    script = PodScript((sidecar, main), 0.0, math.inf, 30.0)
    for grace_s, ends in ((30.0, [(8.0, 0), (8.0, 0)]), (6.0, [(6.0, 0), (7.0, 0)]), (0.0, [(0.0, 0), (1.0, 0)])):
        state = machine.advance(script, machine.accept(script, -1.0), 0.0)
        state = machine.advance(script, machine.stop(state, 0.0, grace_s), 60.0)
        assert [(c.exit.finished, c.exit.code) for c in state.containers if c.exit] == ends, grace_s


def test_a_second_request_can_only_shorten_the_grace() -> None:
    script = one("Always", Run(math.inf, 0))
    state = machine.stop(machine.advance(script, machine.accept(script, 0.0), 1.0), 10.0, 30.0)
    assert machine.stop(state, 15.0, 100.0) == state
    shorter = machine.stop(state, 15.0, 5.0).stop
    assert shorter is not None and (shorter.at, shorter.deadline) == (10.0, 20.0)


def test_only_what_runs_on_is_evicted() -> None:
    script = one("Never", Run(5.0, 0))
    begun = machine.accept(script, 0.0)
    evicted = machine.advance(script, machine.evict(script, machine.advance(script, begun, 1.0), 1.0, "why"), 60.0)
    assert evicted.stop is not None and (evicted.stop.reason, evicted.stop.message) == (machine.EVICTED, "why")
    for other in (machine.advance(script, begun, 5.0), machine.stop(begun, 0.0, 30.0)):
        assert machine.evict(script, other, 5.0, "why") == other
