"""Torque controllers on a 7-DoF arm with a payload that their model does not know: who tracks, within what limits."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.simonidis2011.controllers import DT, HAND, LIMIT, START, TIP, C, arm, swing
from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.simulation.drives.torque_control import (
    ComputedTorque,
    EncoderMotion,
    IndependentPid,
    JointMotion,
    PayloadPlant,
    RecursiveController,
    contraction,
    largest_step,
)

Q, V, A = swing()


def track(controller, payload, filter_time=None, limit=LIMIT):
    """Root mean square error over time and joints [deg]; share of the steps at a limit."""
    plant = PayloadPlant(arm(), payload, HAND, TIP, START, DT)
    encoders = EncoderMotion(2 * np.pi / 2**17, filter_time, DT) if filter_time is not None else None
    errors, at_limit = [], 0
    for k in range(1000):
        measured = plant.exact() if encoders is None else encoders.read(plant.q)
        tau = controller.torque(JointMotion(Q[k], V[k], A[k]), measured)
        assert (np.abs(tau) <= limit).all()
        at_limit += bool((np.abs(tau) == limit).any())
        plant.step(tau)
        errors.append(Q[k + 1] - plant.q)
    return float(np.degrees(np.sqrt(np.mean(np.square(errors))))), at_limit / 1000


def recursive(alpha=1.0, filter_time=0.0, model=None, limit=LIMIT):
    return RecursiveController(model or arm(), limit, C, DT, alpha, filter_time)


def test_without_payload_the_model_is_right_and_both_track():
    computed, _ = track(ComputedTorque(arm(), LIMIT, C), 0.0)
    stepwise, _ = track(recursive(), 0.0)
    assert computed < 0.01 and stepwise < 0.01


def test_unknown_payload_of_2_kg():
    """The recursive controller does not notice it, computed torque does; a PID comes in between."""
    assert 0.5 < contraction(arm(), arm(2.0), START) < 0.7
    computed, _ = track(ComputedTorque(arm(), LIMIT, C), 2.0)
    stepwise, saturated = track(recursive(), 2.0)
    inertia = np.diag(pin.crba(arm(), arm().createData(), START))
    pid, _ = track(IndependentPid(inertia, LIMIT, C, DT), 2.0)
    assert stepwise <= 0.05 and stepwise < computed / 50 and saturated == 0
    assert computed > 2.0 and stepwise < pid < computed


def test_encoders_alone_need_a_relaxed_step():
    """17 bits a turn, a filter of 2 ms, 2 kg: relaxed it tracks, with whole steps it runs from limit to limit."""
    computed, _ = track(ComputedTorque(arm(), LIMIT, C), 2.0, 0.002)
    relaxed, saturated = track(recursive(0.3, 0.002), 2.0, 0.002)
    assert relaxed <= 0.2 and relaxed < computed / 50 and saturated == 0
    whole = recursive(0.3, 0.002)
    whole.alpha = 1.0
    error, saturated = track(whole, 2.0, 0.002)
    assert error > 1.0 and saturated > 0.5


def test_model_that_is_too_heavy_diverges_where_the_criterion_says_so():
    assert contraction(arm(2.0), arm(), Q[-1]) > 1.5
    error, saturated = track(recursive(model=arm(2.0)), 0.0)
    assert error > 2.0 and saturated > 0.3


def test_limits_of_the_torque_are_kept():
    low = np.full(7, 6.0)
    for controller in (
        recursive(limit=low), ComputedTorque(arm(), low, C), IndependentPid(np.full(7, 1.0), low, C, DT),
    ):  # fmt: skip
        _, saturated = track(controller, 2.0, limit=low)
        assert saturated > 0.02


def test_integral_does_not_wind_up_at_the_limit():
    pid = IndependentPid(np.ones(1), np.ones(1), C, DT)
    far, here = JointMotion(np.ones(1), np.zeros(1), np.zeros(1)), JointMotion(np.zeros(1), np.zeros(1), np.zeros(1))
    for _ in range(1000):
        assert pid.torque(far, here)[0] == 1.0
    assert pid.torque(here, here)[0] == 0.0


@pytest.mark.parametrize(
    ("alpha", "filter_time"), [(1.01, 0.0), (0.34, 0.002), (0.1, 0.01), (0.0, 0.0), (-0.1, 0.0), (np.nan, 0.0)]
)
def test_step_beyond_its_bound_is_refused_with_the_bound(alpha, filter_time):
    with pytest.raises(ConfigError, match=rf"not above {largest_step(DT, filter_time):.3g}, or it becomes unstable"):
        recursive(alpha, filter_time)
    recursive(largest_step(DT, filter_time), filter_time)


def test_plant_falls_as_a_pendulum_and_keeps_its_energy():
    plant = PayloadPlant(arm(), 2.0, HAND, TIP, START, DT)

    def energy():
        data = plant.model.createData()
        return pin.computeMechanicalEnergy(plant.model, data, plant.q, plant.v)

    before = energy()
    for _ in range(300):
        plant.step(np.zeros(7))
    assert np.abs(plant.v).max() > 0.5
    assert energy() == pytest.approx(before, abs=1e-6)
    heavier = PayloadPlant(arm(), 2.0, HAND, TIP, START, DT)
    np.testing.assert_allclose(
        pin.crba(heavier.model, heavier.data, START), pin.crba(arm(2.0), arm(2.0).createData(), START)
    )


def test_encoders_follow_a_steady_acceleration():
    encoders = EncoderMotion(1e-6, 0.002, DT)
    for k in range(200):
        motion = encoders.read(np.array([2.0 * (k * DT) ** 2]))
    assert motion.a[0] == pytest.approx(4.0, abs=0.3)
    assert motion.v[0] == pytest.approx(4.0 * (0.199 - 0.0025), abs=0.01)  # behind by the filter and half a step
    assert motion.q[0] % 1e-6 == pytest.approx(0, abs=1e-12) or motion.q[0] % 1e-6 == pytest.approx(1e-6, abs=1e-12)


def test_what_cannot_be_used():
    with pytest.raises(ConfigError, match="payload must not be negative, got -1"):
        PayloadPlant(arm(), -1.0, HAND, TIP, START, DT)
    with pytest.raises(SizeError, match=r"expected q of shape \(7,\), got \(6,\)"):
        PayloadPlant(arm(), 1.0, HAND, TIP, START[:6], DT)
    with pytest.raises(ConfigError, match="computed torque: limit must be"):
        ComputedTorque(arm(), np.zeros(7), C)
    with pytest.raises(ConfigError, match="filter_time must not be negative, got -1"):
        EncoderMotion(1e-6, -1.0, DT)
