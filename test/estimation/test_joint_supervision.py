"""Supervision of joints, each fault injected into what a good robot would say."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.estimation import JointFaultKind, JointSupervision, JointSupervisionLimits

NAMES, SPEED, DT = ("hip", "knee", "toe"), np.array([3.0, 2.0, 8.0]), 0.004
ALL = np.arange(3)


def path(t):
    """Commands that reach the joints' speed."""
    return np.array([0.9, 0.6, 1.0]) * np.sin(np.array([3.0, 3.0, 8.0]) * t)


def run(change=None, seconds=3.0, lag=0.02, begin=1.0, limits=None, commanded=path, noise=1e-6, seed=0):
    """A robot whose joints are `lag` behind their commands, changed from `begin` on: fault, and when it was seen."""
    s, rng = JointSupervision(NAMES, SPEED, limits), np.random.default_rng(seed)
    for k in range(int(seconds / DT)):
        t = k * DT
        s.command(t, commanded(t))
        joints, q = ALL, commanded(max(t - lag, 0.0)) + noise * rng.normal(size=3)
        if change is not None and t >= begin:
            joints, q = change(t - begin, q.copy())
        if len(joints):
            s.measure(t, joints, q)
        if (fault := s.fault(t)) is not None:
            return fault, t - begin, s
    return None, np.inf, s


def shift(joint, by, since=0.0, until=np.inf):
    def change(t, q):
        if since <= t < until:
            q[joint] += by
        return ALL, q

    return change


def test_joints_that_follow_at_full_speed_are_well_even_where_messages_are_late():
    for lag in (0.0, 0.02, 0.05):
        fault, _, s = run(lag=lag)
        assert fault is None and s.error.max() < 0.05, lag
    fault, _, _ = run(lag=0.2)
    assert fault.kind is JointFaultKind.FOLLOWING and fault.joint == "toe", "8 rad/s times 0.15 s is too much"


@pytest.mark.parametrize("joint", range(3))
def test_a_joint_that_slips_away_is_a_following_error_after_50_ms(joint):
    slipping = lambda t, q: (ALL, q + min(0.4, 4.0 * t) * (joint == ALL))  # noqa: E731
    fault, after, s = run(slipping, commanded=lambda t: 0.0 * path(t))
    assert fault.kind is JointFaultKind.FOLLOWING and fault.joint == NAMES[joint]
    assert 0.15 / 4.0 + 0.05 - 1e-9 <= after <= 0.15 / 4.0 + 0.05 + 2 * DT
    assert fault.value == pytest.approx(4.0 * after, abs=1e-4) and fault.limit == 0.15
    assert str(fault).startswith(f"{NAMES[joint]}: following error 0.3") and "(limit 0.150)" in str(fault)
    assert s.worst == (NAMES[joint], pytest.approx(fault.value))


def test_limits_are_kept_on_both_sides_and_for_each_joint():
    still = lambda t: np.zeros(3)  # noqa: E731
    limits = JointSupervisionLimits(following_error=np.array([0.1, 0.3, 0.1]), jump=1e9)
    for sign in (1, -1):
        assert run(shift(1, sign * 0.29), limits=limits, commanded=still)[0] is None
        assert run(shift(1, sign * 0.31), limits=limits, commanded=still)[0].joint == "knee"
        assert run(shift(0, sign * 0.11), limits=limits, commanded=still)[0].joint == "hip"


def test_an_error_that_does_not_last_is_no_fault():
    still, limits = lambda t: np.zeros(3), JointSupervisionLimits(jump=1e9)
    assert run(shift(0, 0.5, until=0.045), limits=limits, commanded=still)[0] is None
    assert run(shift(0, 0.5, until=0.08), limits=limits, commanded=still)[0].kind is JointFaultKind.FOLLOWING
    twice = lambda t, q: shift(0, 0.5)(t, q) if (t % 0.1) < 0.04 else (ALL, q)  # noqa: E731
    assert run(twice, limits=limits, commanded=still)[0] is None, "it begins anew each time"


def test_a_joint_that_is_not_measured_any_more_is_named():
    fault, after, _ = run(lambda t, q: (np.array([0, 2]), q[[0, 2]]))
    assert fault.kind is JointFaultKind.SILENT and fault.joint == "knee"
    assert 0.5 - DT <= after <= 0.5 + 2 * DT
    fault, after, _ = run(lambda t, q: (ALL[:0], q[:0]), limits=JointSupervisionLimits(silence=0.2))
    assert fault.kind is JointFaultKind.SILENT and 0.2 - DT <= after <= 0.2 + 2 * DT


def test_states_that_freeze_are_found_only_while_commands_move():
    held = {}

    def frozen(t, q):
        return ALL, held.setdefault("q", q.copy())

    slow = lambda t: np.array([0.2, 0.0, 0.0]) * t  # noqa: E731
    fault, after, _ = run(frozen, commanded=slow)
    assert fault.kind is JointFaultKind.FROZEN and fault.joint == "hip", "before its error is one"
    assert after == pytest.approx(0.3, abs=0.02)
    held.clear()
    assert run(frozen, commanded=lambda t: np.zeros(3))[0] is None
    assert run(commanded=slow, noise=0.0)[0] is None, "measured and moving"


@pytest.mark.parametrize("how", ["no samples", "the same samples"])
def test_it_is_late_where_commands_move_on_without_news(how):
    s = JointSupervision(NAMES, SPEED)
    assert not s.late(0.0), "nothing is commanded yet"
    for k in range(100):
        t = k * DT
        s.command(t, np.array([0.5 * t, 0.0, 0.0]))
        if t < 0.2:
            s.measure(t, ALL, np.array([0.5 * t, 0.0, 0.0]))
        elif how == "the same samples":
            s.measure(t, ALL, np.array([0.5 * 49 * DT, 0.0, 0.0]))
        assert s.late(t) == (t > 0.2 - DT + 0.1 + 1e-9), t
    s.measure(0.4, ALL, np.array([0.1, 0.0, 0.0]))
    assert not s.late(0.4)
    for k in range(100):
        s.command(0.5 + k * DT, np.array([0.2, 0.0, 0.0]))
    assert not s.late(0.9), "at rest there is no news"


def test_samples_that_jump_are_dropped_and_three_in_a_row_are_a_fault():
    spike = shift(1, 1.0, until=2 * DT - 1e-9)
    fault, _, s = run(spike)
    assert fault is None and s.error[1] < 0.05
    fault, after, _ = run(shift(1, 1.0))
    assert fault.kind is JointFaultKind.JUMP and fault.joint == "knee" and after == pytest.approx(2 * DT, abs=1e-9)
    assert fault.value == pytest.approx(1.0, abs=0.05) and fault.limit == pytest.approx(3 * 2.0 * 3 * DT)


def test_measurements_that_are_not_numbers_change_nothing_and_are_a_fault_if_they_stay():
    fault, _, s = run(shift(2, np.nan, until=0.03))
    assert fault is None and np.isfinite(s.error).all()
    fault, after, _ = run(shift(2, np.nan))
    assert fault.kind is JointFaultKind.NOT_A_NUMBER and fault.joint == "toe"
    assert 0.05 <= after <= 0.05 + 2 * DT and "not a number" in str(fault)


def test_the_first_fault_stays_until_a_restart():
    fault, _, s = run(shift(1, 1.0))
    assert s.fault(100.0) is fault
    s.restart()
    assert s.fault(100.0) is None and not s.error.any()
    s.command(100.0, np.zeros(3))
    s.measure(100.0, ALL, np.array([0.1, 0.1, 3.0]))
    assert s.fault(100.01) is None, "a first sample does not jump, and its error has just begun"


def test_limits_that_make_no_sense_are_refused():
    for wrong in (
        {"following_error": 0.0},
        {"silence": -1.0},
        {"lag": -0.1},
        {"following_error": np.array([0.1, 0.0, 1])},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            JointSupervision(NAMES, SPEED, JointSupervisionLimits(**wrong))


def test_a_joint_that_rested_is_not_frozen_while_it_begins_to_move():
    """It measures the same to the last bit for a second, and then follows commands at full speed some 40 ms later."""
    begins = lambda t: SPEED * max(0.0, t - 1.0)  # noqa: E731
    for late in (0.04, 0.2):
        fault, after, _ = run(commanded=begins, noise=0.0, lag=late, seconds=1.9)
        assert fault is None or (late > 0.1 and fault.kind is JointFaultKind.FOLLOWING), "late, but not frozen"
    wide = JointSupervisionLimits(following_error=10.0)
    fault, after, _ = run(commanded=begins, noise=0.0, lag=1e9, seconds=1.9, limits=wide)
    assert fault.kind is JointFaultKind.FROZEN and after == pytest.approx(0.3, abs=0.02), "one that does not begin is"


def test_an_encoder_that_begins_again_is_no_jump_of_a_joint_without_ends():
    """A hip that turns on and on with its command, counted in one turn; the same of a joint with ends is a jump."""
    free = (np.array([-np.inf, -1.0, -1.0]), np.array([np.inf, 1.0, 1.0]))
    for ranges, found in ((free, None), (None, JointFaultKind.JUMP)):
        s = JointSupervision(NAMES, SPEED, ranges=ranges)
        for k in range(1500):
            q = np.array([2.0 * k * DT, 0.0, 0.0])
            s.command(k * DT, q)
            s.measure(k * DT, ALL, np.array([(q[0] + np.pi) % (2 * np.pi) - np.pi, 1e-6 * k, 1e-6 * k]))
        fault = s.fault(k * DT)
        assert (fault and fault.kind) == found
