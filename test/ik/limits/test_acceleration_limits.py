"""Limits of accelerations: ranges and speeds hold, rows are second derivatives of distances, arms keep clear."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.ik.limits.acceleration_limits import AccelerationLimits
from humanoid_control.mocap import load_body_points
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.performing import ControllerSettings, WholeBodyController, make_feasible, perform
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from test.performing.pieces import piece

DT = 0.002  # [s] of a tick


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def limits(hrp2):
    return AccelerationLimits(hrp2, 30.0, 0.005, 0.2)


def test_joints_stop_before_their_ranges_end_and_keep_their_speed(hrp2, limits):
    rng = np.random.default_rng(4)
    for side in (1.0, -1.0):
        q, v = hrp2.postures["neutral"].copy(), 0.5 * rng.normal(size=hrp2.n)
        for _ in range(1500):
            low, high = limits.joints(q, v)
            assert (low <= high).all()
            v += DT * np.clip(side * 80.0, low, high)
            q += DT * v
            assert (q < hrp2.upper + 1e-3).all() and (q > hrp2.lower - 1e-3).all()
            assert (np.abs(v) < hrp2.velocity * (1 + 1e-9)).all()
        end = hrp2.upper if side > 0 else hrp2.lower
        assert np.abs(q - end).max() < 0.01


def measured(robot, pairs, q, v, a):
    """Second derivatives of distances along a path, by differences of the distances."""
    h, d, monitor = 1e-3, [], robot.collision_monitor("shapes")
    for t in (-h, 0.0, h):
        step = pin.integrate(robot.model, q, t * v)
        near = monitor.update(pin.integrate(robot.model, step, 0.5 * t * t * a), np.inf)
        d.append(near.distance[np.searchsorted(near.pair, pairs)])
    return (d[0] - 2 * d[1] + d[2]) / h**2


def test_rows_are_second_derivatives_of_distances(hrp2, limits):
    """At rest they are exact; in motion as far as a few ticks are short."""
    rng, data, r, errors = np.random.default_rng(5), hrp2.model.createData(), limits.rate, ([], [])
    drifts = []
    for k in range(30):
        q = pin.integrate(hrp2.model, hrp2.q("neutral"), 0.1 * rng.normal(size=hrp2.nv))
        v = (k % 2) * 0.5 * rng.normal(size=hrp2.nv)
        pin.computeJointJacobians(hrp2.model, data, q)
        near = limits.monitor.update(q, limits.activation)
        pairs, speed = near.pair, near.gradient(data.J) @ v
        rows, a = limits.distances(data, q, v), rng.normal(size=hrp2.nv)
        own = np.array([i for i, J in enumerate(near.gradient(data.J)) if any(np.array_equal(J, x) for x in rows.J)])
        if not len(own):
            continue
        # least = -2 r d' - r^2 (d - margin) - drift, so the second derivative is J a + drift.
        fall = -2 * r * speed[own] - r * r * (near.distance[own] - limits.margin[pairs[own]])
        ours = rows.J @ a + fall - rows.least
        drifts.extend((fall - rows.least) if k % 2 else ())
        truth = measured(hrp2, pairs[own], q, v, a)
        errors[k % 2].extend((truth - ours)[np.abs(truth) < 50.0])  # a nearest point that jumps has no derivative
    assert min(map(len, errors)) > 30
    assert np.abs(errors[0]).max() < 0.02
    off, drift = (np.percentile(np.abs(x), 80) for x in (errors[1], drifts))
    assert off < 0.3 * drift, (off, drift)


def toward_trunk(robot, motion, angle):
    """The motion with the left arm turned toward the trunk, and as if that were free."""
    j, t = robot.index[robot.joint_for("l_shoulder_abduction")], motion.time
    turn = angle * minimum_jerk(np.clip((t - 0.2) / 0.5, 0.0, 1.0))
    q, v, a = motion.q.copy(), motion.v.copy(), motion.a.copy()
    q[:, 7 + j] += turn
    v[:, 6 + j] += np.gradient(turn, 1 / motion.rate)
    a[:, 6 + j] += np.gradient(np.gradient(turn, 1 / motion.rate), 1 / motion.rate)
    return replace(motion, q=q, v=v, a=a)


def test_an_arm_that_is_sent_into_the_trunk_keeps_clear(hrp2):
    """By the simulator's truth: without the rows it goes 2 cm into the trunk, with them it never touches."""
    trajectory = retarget_whole_body(load_body_points("dance"), hrp2, method="clip")
    motion = make_feasible(piece(trajectory, 0.0, 0.5), hrp2)
    short = {k: v[:110] for k, v in vars(motion).items() if isinstance(v, np.ndarray) and len(v) == len(motion)}
    motion, least = toward_trunk(hrp2, replace(motion, **short), -0.5), {}
    for activation in (0.0, 0.05):
        world = SimulationConfig("hrp2", "floating").build(load_robot("hrp2", "floating"))
        settings = ControllerSettings(activation=activation)
        controller = WholeBodyController(hrp2, motion, settings, NoisySensors(world, NOISE, 0).read)
        seen = []

        def watch(t, engine, seen=seen):
            if round(t / DT) % 4 == 0:
                seen.append(hrp2.pair_distances(engine.q).min())

        assert perform(motion, world, controller, watch).survived and controller.failed == 0
        least[activation] = min(seen)
    assert least[0.0] < -0.02 and least[0.05] > 0.0
