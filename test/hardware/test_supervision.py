"""Every check of a joint: nothing below its level, a warning, a fault; each only after its time."""

import numpy as np
import pytest

from humanoid_control.hardware.supervision import (
    DRIVE_FAILED,
    FAULT,
    UNPOWERED,
    WARN,
    JointSamples,
    JumpFilter,
    SampleWatch,
    Supervision,
    SupervisionLimits,
)
from humanoid_control.hardware.transmission import JointReading

T = 0.002
NAMES = ("l_knee", "r_knee")


def limits(**changed):
    values = {
        "lower": -1.0, "upper": 1.0, "velocity": 4.0, "effort": 20.0, "continuous": 8.0, "following_error": 0.15,
        "warm": 70.0, "hot": 80.0, "low_voltage": 40.0, "high_voltage": 56.0, **changed,
    }  # fmt: skip
    return SupervisionLimits(margin=0.02, **{k: np.full(2, float(v)) for k, v in values.items()})


def samples(**changed):
    """Two joints at ease; what is changed is changed for the first."""
    values = {"q": 0.2, "v": 0.0, "tau": 0.0, "temperature": 30.0, "voltage": 48.0, "age": 0.001, "q_ref": 0.2}
    rows = {k: np.array([float(changed.get(k, v)), v]) for k, v in values.items()}
    return JointSamples(failed=np.zeros(2, dtype=bool), **rows)


def first(level, supervision, s, seconds=1.0, powered=True):
    """Time after which a finding of this level appears; None where none does. It must be of the first joint."""
    for k in range(1, round(seconds / T) + 1):
        found = [f for f in supervision.update(s, powered) if f.level == level]
        if found:
            assert {f.joint for f in found} == {0} and "l_knee" in found[0].text
            return k * T
    return None


CHECKS = {
    "silent for": ({"age": 0.004}, {"age": 0.008}, {"age": 0.021}, 0.0),
    "following error": ({"q_ref": 0.3}, {"q_ref": 0.32}, {"q_ref": 0.36}, 0.05),
    "beyond its range by": (
        {"q": 1.005, "q_ref": 1.005}, {"q": 1.015, "q_ref": 1.015}, {"q": -1.021, "q_ref": -1.0}, 3 * T,
    ),
    "speed": ({"v": 4.1}, {"v": -4.3}, {"v": 4.9}, 3 * T),
    "torque": ({"tau": 20.2}, {"tau": 21.0}, {"tau": -22.5}, 0.2),
    "temperature": ({"temperature": 69.0}, {"temperature": 71.0}, {"temperature": 81.0}, 0.1),
}  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_warns_and_fails_at_its_levels_and_after_its_time(check):
    fine, warn, fault, after = CHECKS[check]
    no_heat = limits(continuous=np.inf)
    assert first(WARN, Supervision(NAMES, no_heat, T), samples(**fine)) is None
    assert first(WARN, Supervision(NAMES, no_heat, T), samples(**warn)) is not None
    assert first(FAULT, Supervision(NAMES, no_heat, T), samples(**warn)) is None
    found = first(FAULT, Supervision(NAMES, no_heat, T), samples(**fault))
    assert found == pytest.approx(max(after, T), abs=T / 2)


@pytest.mark.parametrize("check", ["following error", "beyond its range by", "speed", "torque"])
def test_without_power_only_what_can_be_wrong_then_is_looked_at(check):
    assert first(WARN, Supervision(NAMES, limits(), T), samples(**CHECKS[check][2]), powered=False) is None


@pytest.mark.parametrize("check", ["silent for", "temperature"])
def test_samples_and_temperatures_count_without_power_too(check):
    assert first(FAULT, Supervision(NAMES, limits(), T), samples(**CHECKS[check][2]), powered=False) is not None


def test_a_short_excess_is_forgotten():
    s = Supervision(NAMES, limits(), T)
    for _ in range(20):
        assert first(FAULT, s, samples(q_ref=0.5), seconds=0.04) is None
        s.update(samples(), True)
    s.update(samples(q_ref=0.5), False)  # without power nobody follows
    assert first(FAULT, s, samples(q_ref=0.5), seconds=0.04) is None


def test_supply_out_of_its_band_is_a_warning():
    for volts, says in ((39.0, "supply below"), (57.0, "supply above")):
        s = Supervision(NAMES, limits(), T)
        assert first(WARN, s, samples(voltage=volts)) == pytest.approx(0.1, abs=T)
        assert says in s.update(samples(voltage=volts), True)[0].text


def test_what_is_not_measured_is_not_judged():
    unknown = dict.fromkeys(("tau", "temperature", "voltage", "v"), np.nan)
    s = Supervision(NAMES, limits(), T)
    assert first(WARN, s, samples(**unknown)) is None and (s.mean_square == 0).all()


def test_the_mean_square_of_torque_follows_the_heat_of_a_motor():
    """At twice the continuous torque: 1 - exp(-t / 5 s) = 1 / 4."""
    s = Supervision(NAMES, limits(), T)
    assert first(FAULT, s, samples(tau=16.0), seconds=3.0) == pytest.approx(-5.0 * np.log(0.75), rel=0.01)
    assert first(FAULT, Supervision(NAMES, limits(), T), samples(tau=7.9), seconds=3.0) is None


def test_the_text_says_how_much_and_what_the_limit_is():
    s = Supervision(NAMES, limits(), T)
    for _ in range(30):
        found = s.update(samples(q_ref=0.41), True)
    assert found[0].text == "l_knee following error 0.21 rad (limit 0.15)" and found[0].level == FAULT


def test_an_encoder_that_jumps_is_not_believed_and_one_that_goes_on_is_a_fault():
    f = JumpFilter(np.full(2, 4.0), T)
    fresh = np.ones(2, dtype=bool)
    f.update(np.array([0.1, 0.1]), fresh)
    assert f.update(np.array([0.11, 3.0]), fresh).tolist() == [0.11, 0.1] and not f.failed().any()
    assert f.update(np.array([0.12, 0.11]), fresh).tolist() == [0.12, 0.11] and f.count[1] == 0
    for k in range(3):
        assert f.failed()[1] == (k > 2)
        f.update(np.array([0.12, 3.0]), fresh)
    assert f.failed().tolist() == [False, True]
    f.restart()
    assert f.update(np.array([0.12, 3.0]), fresh).tolist() == [0.12, 3.0] and not f.failed().any()


def test_a_joint_that_was_not_heard_may_have_moved_meanwhile():
    f = JumpFilter(np.full(1, 4.0), T)
    yes, no = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)
    f.update(np.array([0.0]), yes)
    for _ in range(9):
        assert f.update(np.array([0.0]), no)[0] == 0.0
    assert f.update(np.array([0.2]), yes)[0] == 0.2


def test_samples_have_an_age_and_are_believed_where_they_are_new_and_numbers():
    j = JointReading(4)
    watch = SampleWatch(j, 0.01, T)
    j.q[:], j.v[:], j.stamp[:] = [0.1, np.nan, 0.1, 0.1], [0.0, 0.0, 0.02, np.nan], [1.0, 1.0, 1.5, np.nan]
    j.fresh[:], j.enabled[:] = [True, True, True, False], True
    for _ in range(5):
        assert watch.update(2.0, 0.5) == 0
    assert watch.believed.tolist() == [True, False, True, False]
    np.testing.assert_allclose(watch.age, [1.0, 1.0, 0.5, 1.5])
    np.testing.assert_allclose(watch.still, [5 * T, 5 * T, 0.0, 0.0])
    j.v[0], j.enabled[1], j.enabled[3] = 0.02, False, False
    assert watch.update(2.0, 0.5) == 0 and watch.still[0] == 0.0, "what is not believed has lost no power"
    j.enabled[2] = False
    assert watch.update(2.0, 0.5) == UNPOWERED
    j.failed[2] = True
    assert watch.update(2.0, 0.5) == DRIVE_FAILED
