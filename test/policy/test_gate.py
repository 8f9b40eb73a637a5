"""The gate on torques: each rule against its formula and in closed loop, nothing touched where no rule acts."""

import copy
import os
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.ssv.segments import Segment, SegmentFile, SegmentPair, Volume
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.policy import Policy, examine, gate_for, read_policy
from humanoid_control.policy.baselines import FreezeOnSpeed, TargetRateLimit, Unlimited
from humanoid_control.policy.gate import (
    GateSettings,
    TorqueGate,
    _pair_joints,
    arm_joints,
    exempt_pairs,
    hip_joints,
    named_pairs,
    pd_torque,
)
from humanoid_control.policy.player import LOOP, policy_engine, quasi_direct_armature
from humanoid_control.policy.runner import PolicyTargets
from humanoid_control.robots import load_robot
from humanoid_control.robots.self_collision import CollisionMonitor, VolumePairs
from humanoid_control.robots.volumes import model_of

NO_PAIRS = GateSettings(pairs=False)


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2", "floating")


def gate_of(robot, settings=None):
    return TorqueGate(robot, quasi_direct_armature(robot), settings)


def targets_of(robot, q, kp=100.0, kd=2.0, tau=0.0):
    n = robot.n
    return PolicyTargets(np.array(q, dtype=float), np.zeros(n), np.full(n, tau), np.full(n, kp), np.full(n, kd))


def inertia_of(robot, q):
    """Diagonal of the joint-space inertia of the floating robot, with armature, by RNEA column by column."""
    model = robot.model.copy()
    model.armature = np.zeros(robot.nv)
    model.gravity.setZero()
    data, full, zero = model.createData(), robot.q(q), np.zeros(robot.nv)
    columns = [pin.rnea(model, data, full, zero, np.eye(robot.nv)[6 + k])[6 + k] for k in range(robot.n)]
    return np.array(columns) + quasi_direct_armature(robot)


def test_pd_is_clipped_to_the_torque_limits(hrp2):
    rng = np.random.default_rng(1)
    q, v, goal = (rng.normal(size=hrp2.n) for _ in range(3))
    t = targets_of(hrp2, goal, 300.0, 5.0, 2.0)
    expected = [max(-e, min(e, 300 * (g - x) - 5 * y + 2)) for g, x, y, e in zip(goal, q, v, hrp2.effort, strict=True)]
    assert np.allclose(pd_torque(t, q, v, hrp2.effort), expected)


def plain_rules(robot, t, q, v, s):
    """Range and speed as they are written in words, joint by joint."""
    tau, inertia = pd_torque(t, q, v, robot.effort), inertia_of(robot, q)
    for k in range(robot.n):
        low, high, most, fastest = robot.lower[k], robot.upper[k], robot.effort[k], robot.velocity[k]
        if q[k] + s.horizon * v[k] < low:
            stop = most / 0.03 * max(low - q[k], 0.0)
            tau[k] = max(tau[k], min(inertia[k] * ((low - q[k]) / s.horizon - v[k]) / s.settling + stop, most))
        if q[k] + s.horizon * v[k] > high:
            stop = most / 0.03 * max(q[k] - high, 0.0)
            tau[k] = min(tau[k], max(inertia[k] * ((high - q[k]) / s.horizon - v[k]) / s.settling - stop, -most))
        if abs(v[k]) > 0.8 * fastest:
            left = most * (0.9 * fastest - abs(v[k])) / (0.1 * fastest)
            tau[k] = min(tau[k], max(left, -most)) if v[k] > 0 else max(tau[k], min(-left, most))
    return tau


def test_compiled_rules_are_those_of_plain_numbers(hrp2):
    rng, gate = np.random.default_rng(12), gate_of(hrp2, NO_PAIRS)
    for _ in range(60):
        q = rng.uniform(hrp2.lower - 0.02, hrp2.upper + 0.02)
        v = rng.uniform(-1.3, 1.3, hrp2.n) * hrp2.velocity
        t = targets_of(hrp2, q + rng.normal(size=hrp2.n), 300.0, 3.0)
        assert gate.torque(t, q, v) == pytest.approx(plain_rules(hrp2, t, q, v, gate.settings), rel=1e-9, abs=1e-9)
    assert gate.activity.range > 30 and gate.activity.speed == gate.activity.steps


def model_with_armature(robot):
    model = robot.model.copy()
    model.armature = np.concatenate([np.zeros(robot.iv), quasi_direct_armature(robot)])
    return model, model.createData()


def configuration(robot, q):
    """The robot at q with its base at the origin."""
    return np.concatenate([pin.SE3ToXYZQUAT(pin.SE3.Identity()), q])


def plain_pairs(robot, monitor, separating, tau, q, v, s):
    """The rule of pairs in words, with pinocchio's Jacobians and inertia, for every pair nearer than 120 mm."""
    (model, data), full = model_with_armature(robot), configuration(robot, q)
    near = monitor.update(full, s.near)
    pin.computeJointJacobians(model, data, full)
    M = pin.crba(model, data, full)
    M = np.triu(M) + np.triu(M, 1).T
    out = tau.copy()
    for pair, d, J in zip(near.pair, near.distance, near.gradient(data.J), strict=True):
        rate = J[robot.iv :] @ v
        if d + s.horizon * rate >= s.margin:
            continue
        g, direction = np.linalg.solve(M, J)[robot.iv :], separating[pair] * J[robot.iv :]
        lack = ((s.margin - d) / s.horizon - rate) / s.settling - g @ out
        if lack > 0.0 and g @ direction > 1e-6:
            out = np.clip(out + lack / (g @ direction) * direction, -robot.effort, robot.effort)
    return out


@pytest.mark.parametrize("name", ["hrp2", "g1"])
def test_pairs_are_parted_as_by_plain_numbers_and_others_passed_over(name, request):
    """The bounds of pairs of links leave out no pair that matters, whether the robot moves a little or jumps."""
    robot = request.getfixturevalue("g1") if name == "g1" else load_robot(name, "floating")
    rng, gate, monitor = np.random.default_rng(13), gate_of(robot), robot.collision_monitor()
    q, separating, at = robot.joints(robot.q()).copy(), _pair_joints(robot, monitor), None
    for k in range(200):
        if at is None or k % 5 == 0:
            at = np.clip(q + 0.5 * rng.normal(size=robot.n), robot.lower + 0.02, robot.upper - 0.02)
        v = (3.0 if k % 2 else 0.2) * rng.normal(size=robot.n)
        at = np.clip(at + LOOP * v, robot.lower + 0.02, robot.upper - 0.02)
        t = targets_of(robot, at + 0.3 * rng.normal(size=robot.n))
        before, pairs = gate.activity.active, gate.activity.pairs
        tau = gate.torque(t, at, v)
        without = plain_rules(robot, t, at, v, gate.settings)
        expected = plain_pairs(robot, monitor, separating, without, at, v, gate.settings)
        assert tau == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert gate.activity.active > before or tau.tobytes() == pd_torque(t, at, v, robot.effort).tobytes()
        assert gate.activity.pairs - pairs == (not np.array_equal(expected, without))
    assert gate.activity.pairs > 10


def test_bounds_are_measured_again_before_they_lose_digits(g1):
    """A joint that was far away, as after a faulty measurement, leaves torques as those of a new gate."""
    rng, arms = np.random.default_rng(4), np.flatnonzero(arm_joints(g1))
    gate = gate_of(g1, GateSettings(range=False, speed=False))
    q, v, *_ = near_posture(g1, gate, arms, rng)
    t = targets_of(g1, q, 0.0, 0.0)
    expected = gate_of(g1, gate.settings).torque(t, q, v)
    away = np.where(np.arange(g1.n) == arms[0], 9e5, 0.0)
    for k in range(40):
        gate.torque(t, q + away * (k % 2), v)
    assert gate.torque(t, q, v) == pytest.approx(expected, rel=1e-9) and expected.any()
    assert gate._arrays.record.pairs.travel.max() < 1e7


def test_swept_sphere_volumes_are_kept_apart_by_the_same_rule():
    """Lola's thighs as lines swept by a ball: the rule of pairs, with their distances; none where they may touch."""
    robot, rng = copy.copy(load_robot("lola", "floating")), np.random.default_rng(6)
    bone = Volume("bone", "line", 0.09, ((0.0, 0.0, -0.05), (0.0, 0.0, -0.41)))
    pair = ("l_thigh", "r_thigh")
    thighs = SegmentFile((Segment(pair[0], pair[0], (bone,), "y"),), (SegmentPair(*pair),), "lola")
    monitor = VolumePairs(robot, model_of(robot, thighs))
    only = GateSettings(range=False, speed=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CollisionMonitor, "of", staticmethod(lambda robot: VolumePairs(robot, model_of(robot, thighs))))
        gate, allowed = gate_of(robot, only), gate_of(robot, replace(only, exempt=exempt_pairs([pair])))
    separating = _pair_joints(robot, monitor)
    for _ in range(30):
        q, v = robot.joints(robot.q()) + 0.1 * rng.normal(size=robot.n), rng.normal(size=robot.n)
        t = targets_of(robot, q, 0.0, 0.0)
        tau, expected = gate.torque(t, q, v), plain_pairs(robot, monitor, separating, np.zeros(robot.n), q, v, only)
        assert tau == pytest.approx(expected, rel=1e-9, abs=1e-9) and not allowed.torque(t, q, v).any()
    assert 3 < gate.activity.pairs < 30


def test_a_torque_that_is_no_number_is_none(hrp2):
    gate, q = gate_of(hrp2, NO_PAIRS), hrp2.joints(hrp2.q()).copy()
    t = targets_of(hrp2, q)
    t.q[3], t.kp[5] = np.nan, np.inf
    tau = gate.torque(t, q, np.zeros(hrp2.n))
    assert np.isfinite(tau).all() and tau[3] == 0.0


def test_nothing_is_touched_where_no_rule_acts_bit_by_bit(hrp2):
    rng, gate, q = np.random.default_rng(2), gate_of(hrp2), hrp2.joints(hrp2.q()).copy()
    for _ in range(50):
        at, v = (
            np.clip(q + 0.02 * rng.normal(size=hrp2.n), hrp2.lower + 0.05, hrp2.upper - 0.05),
            0.05 * rng.normal(size=hrp2.n),
        )
        t = targets_of(hrp2, at + 0.1 * rng.normal(size=hrp2.n))
        assert gate.torque(t, at, v).tobytes() == pd_torque(t, at, v, hrp2.effort).tobytes()
    assert gate.activity.steps == 50 and gate.activity.active == 0 and gate.activity.share == 0.0


def test_the_range_rule_is_its_formula(hrp2):
    rng, gate, s = np.random.default_rng(3), gate_of(hrp2, NO_PAIRS), NO_PAIRS
    for _ in range(20):
        q = rng.uniform(hrp2.lower - 0.02, hrp2.upper + 0.02)
        v = rng.normal(size=hrp2.n) * 0.7 * 0.8 * hrp2.velocity
        v = np.clip(v, -0.79 * hrp2.velocity, 0.79 * hrp2.velocity)
        t = targets_of(hrp2, rng.uniform(hrp2.lower - 1, hrp2.upper + 1), 200.0)
        raw, out, M = pd_torque(t, q, v, hrp2.effort), gate.torque(t, q, v), inertia_of(hrp2, q)
        for k in range(hrp2.n):
            expected, limit = raw[k], hrp2.effort[k]
            if q[k] + s.horizon * v[k] > hrp2.upper[k]:
                bound = M[k] * ((hrp2.upper[k] - q[k]) / s.horizon - v[k]) / s.settling
                bound -= limit * max(q[k] - hrp2.upper[k], 0.0) / 0.03
                expected = min(raw[k], max(bound, -limit))
            elif q[k] + s.horizon * v[k] < hrp2.lower[k]:
                bound = M[k] * ((hrp2.lower[k] - q[k]) / s.horizon - v[k]) / s.settling
                bound += limit * max(hrp2.lower[k] - q[k], 0.0) / 0.03
                expected = max(raw[k], min(bound, limit))
            assert out[k] == pytest.approx(expected, abs=1e-9), hrp2.joint_names[k]
    assert gate.activity.range > 0 and gate.activity.speed == 0


def test_the_speed_rule_is_its_formula(hrp2):
    gate, k = gate_of(hrp2, replace(NO_PAIRS, range=False)), 3
    q, limit, fastest = hrp2.joints(hrp2.q()), hrp2.effort[3], hrp2.velocity[3]
    for share, side in ((0.79, 1), (0.9, 1), (1.0, 1), (1.3, 1), (0.9, -1), (1.1, -1)):
        v = np.zeros(hrp2.n)
        v[k] = side * share * fastest
        goal = q.copy()
        goal[k] += side * 10.0  # asks for more speed
        gate.reset()
        out = gate.torque(targets_of(hrp2, goal, 1e4, 0.0), q, v)[k]
        assert gate.activity.joints[k] == (share > 0.8) and gate.activity.joints.sum() == (share > 0.8)
        most = limit if share <= 0.8 else max(limit * (0.9 - share) / 0.1, -limit)
        assert out == pytest.approx(side * min(limit, most))
        goal[k] -= side * 20.0  # brakes: never touched
        assert gate.torque(targets_of(hrp2, goal, 1e4, 0.0), q, v)[k] == -side * limit


def test_arms_and_hips_are_found(hrp2, g1):
    names = [g1.joint_names[k] for k in np.flatnonzero(arm_joints(g1))]
    assert len(names) == 14 and all(any(w in n for w in ("shoulder", "elbow", "wrist")) for n in names)
    assert {g1.joint_names[k] for k in np.flatnonzero(hip_joints(g1))} == {
        f"{s}_hip_{a}_joint" for s in ("left", "right") for a in ("roll", "yaw")
    }
    assert arm_joints(hrp2).sum() == 14 and hip_joints(hrp2).sum() == 4


def near_posture(robot, gate, joint, rng):
    """A posture and speed in which a pair closes, out of random arm postures."""
    monitor, (model, data) = robot.collision_monitor(), model_with_armature(robot)
    for _ in range(3000):
        q = robot.joints(robot.q()).copy()
        q[joint] = rng.uniform(robot.lower[joint], robot.upper[joint])
        v = np.zeros(robot.n)
        v[joint] = rng.normal(size=len(joint))
        near = monitor.update(configuration(robot, q), gate.settings.near)
        if len(near) and 0.0 < near.distance.min() < 0.02:
            pin.computeJointJacobians(model, data, configuration(robot, q))
            J = near.gradient(data.J)[:, robot.iv :]
            closing = near.distance + 0.02 * (J @ v) < 0.005
            if closing.sum() == 1:
                return q, v, near.distance[closing][0], J[closing][0], int(near.pair[closing][0])
    raise AssertionError("no such posture")


def test_the_pair_rule_gives_the_distance_the_acceleration_of_its_formula(g1):
    rng, gate, joint = (
        np.random.default_rng(4),
        gate_of(g1, GateSettings(range=False, speed=False)),
        np.flatnonzero(arm_joints(g1)),
    )
    gate.torque_limit[:] = 1e5
    checked, separating = 0, _pair_joints(g1, g1.collision_monitor())
    for _ in range(6):
        q, v, d, J, pair = near_posture(g1, gate, joint, rng)
        t = targets_of(g1, q, 0.0, 0.0)
        out = gate.torque(t, q, v)
        M = pin.crba(*model_with_armature(g1), configuration(g1, q))
        M = np.triu(M) + np.triu(M, 1).T
        full = np.concatenate([np.zeros(6), J])
        acceleration = full @ np.linalg.solve(M, np.concatenate([np.zeros(6), out]))
        assert acceleration == pytest.approx(((0.005 - d) / 0.02 - J @ v) / 0.01, rel=1e-6)
        assert set(np.flatnonzero(out)) <= set(joint), "only joints of the arm part a pair with an arm"
        checked += separating[pair].any()
    assert checked == 6 and gate.activity.pairs == gate.activity.active == 6


def test_pairs_that_may_touch_are_left_alone(g1):
    rng, joint = np.random.default_rng(5), np.flatnonzero(arm_joints(g1))
    gate = gate_of(g1, GateSettings(range=False, speed=False))
    q, v, _, _, pair = near_posture(g1, gate, joint, rng)
    t = targets_of(g1, q, 0.0, 0.0)
    links = {s.name: s.link for s in g1.shapes}
    names = tuple(links[n] for n in g1.collision_monitor().name(pair))
    assert gate.torque(t, q, v).any()
    allowed = gate_of(g1, GateSettings(range=False, speed=False, exempt=exempt_pairs([names])))
    assert not allowed.torque(t, q, v).any()
    assert named_pairs(f" {names[1]} / {names[0]}, ", g1) == exempt_pairs([names])


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("pelvis", ConfigError, "'pelvis' must be two links"),
        ("pelvis/pelvis", ConfigError, "must be two links"),
        ("pelvis/torso_lnk", UnknownNameError, "did you mean torso_link"),
    ],
)
def test_pairs_with_a_mistake_are_named(g1, text, error, words):
    with pytest.raises(error, match=words):
        named_pairs(text, g1)


ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e18, 0.0, -0.0, 1e-308)


def test_whatever_it_is_given_torques_are_numbers_within_the_limits(g1):
    """Random states and targets, up to three values of each odd; HUMANOID_FUZZ=100000 and --timeout 0 try more."""
    gate, rng, n = gate_of(g1), np.random.default_rng(0), g1.n
    for _ in range(int(os.environ.get("HUMANOID_FUZZ", "400"))):
        q = rng.uniform(g1.lower - 0.3, g1.upper + 0.3)
        v = rng.normal(size=n) * g1.velocity * rng.choice([0.01, 0.5, 3.0])
        rows = [q + rng.normal(size=n), rng.normal(size=n), 5.0 * rng.normal(size=n)]
        rows += [rng.uniform(0, 300, n), rng.uniform(0, 9, n)]
        for _ in range(rng.integers(0, 4)):
            (*rows, q, v)[rng.integers(7)][rng.integers(n)] = rng.choice(ODD)
        with np.errstate(over="ignore", invalid="ignore"):
            tau = gate.torque(PolicyTargets(*rows), q, v)
        assert np.isfinite(tau).all() and (np.abs(tau) <= g1.effort).all()
        unknown = ~(np.isfinite(q) & np.isfinite(v))
        assert (tau[unknown] == 0.0).all()


def test_a_joint_that_is_not_measured_changes_no_other(g1):
    """The others are driven as if it were where it was last seen."""
    q, v = g1.joints(g1.q("neutral")).copy(), np.zeros(g1.n)
    t, k = targets_of(g1, q + 0.1), 3
    gate = gate_of(g1)
    expected = gate.torque(t, q, v).copy()
    blind = q.copy()
    blind[k] = np.nan
    found = gate.torque(t, blind, v)
    assert found[k] == 0.0 and np.array_equal(np.delete(found, k), np.delete(expected, k))


def test_the_gate_of_a_policy_leaves_its_contacts_alone(g1, model_file):
    """Links that a description lets touch are no pairs of the gate; others still are."""
    found = examine(*read_policy(model_file("policies/holosoma/ppo_g1_29dof.onnx")), g1)
    pair = ("left_wrist_yaw_link", "right_wrist_yaw_link")
    own = replace(found.model, may_touch=(pair,))
    gates = [gate_for(Policy(replace(found, model=m), g1)) for m in (found.model, own)]
    links = {s.name: s.link for s in g1.shapes}
    names = [frozenset(links[n] for n in gates[0]._monitor.name(k)) for k in range(gates[0]._monitor.count)]
    meant = np.array([n == frozenset(pair) for n in names])
    assert meant.any() and not meant.all() and not gates[0]._exempt.any() and np.array_equal(gates[1]._exempt, meant)
    assert set(gates[1]._arrays.record.pairs.place) == set(np.flatnonzero(~meant))


@pytest.mark.parametrize(("sides", "most"), [(("left",), 0.0), (("left", "right"), 0.015)])
@pytest.mark.parametrize("engine", ["multibody", "mujoco"])
def test_an_arm_that_is_driven_into_the_body_stays_apart_from_it(g1, engine, sides, most):
    """Closed loop: one arm, or both, are asked to where they would be inside the trunk."""
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    least = {}
    for name, limiter in (("gate", gate_of(g1)), ("none", Unlimited(g1))):
        world, monitor = policy_engine(g1, engine), g1.collision_monitor()
        start = g1.joints(g1.q()).copy()
        world.reset(start)
        goal = start.copy()
        for side in sides:
            goal[g1.index[f"{side}_shoulder_roll_joint"]] = -0.9 if side == "left" else 0.9
            goal[g1.index[f"{side}_elbow_joint"]] = 1.2
        least[name] = np.inf
        for _ in range(400):
            tau = limiter.torque(targets_of(g1, goal, 20.0, 2.0), world.joints, world.joint_velocity)
            world.command(efforts=tau)
            world.step(2)
            near = monitor.update(world.q, 0.1)
            least[name] = min(least[name], near.distance.min() if len(near) else 0.1)
    assert least["none"] < -0.08 and least["gate"] > -most, least


@pytest.mark.parametrize("engine", ["multibody", "mujoco"])
def test_a_joint_that_is_asked_beyond_its_range_stops_at_its_end(g1, engine):
    """Closed loop with the base held up by nothing: wrists and elbows are thrown at the ends of their ranges."""
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    excess = {}
    for name, limiter in (("gate", gate_of(g1, NO_PAIRS)), ("none", Unlimited(g1))):
        world = policy_engine(g1, engine)
        world.reset(g1.joints(g1.q()))
        goal = g1.joints(g1.q()).copy()
        for joint in ("left_elbow_joint", "right_elbow_joint"):
            goal[g1.index[joint]] = 6.0
        speed = excess[name] = 0.0
        for _ in range(200):
            tau = limiter.torque(targets_of(g1, goal, 40.0, 0.5), world.joints, world.joint_velocity)
            world.command(efforts=tau)
            world.step(2)
            excess[name] = max(excess[name], (world.joints - g1.upper).max(), (g1.lower - world.joints).max())
            speed = max(speed, (np.abs(world.joint_velocity) / g1.velocity).max())
        assert name == "none" or speed <= 1.0
    assert excess["gate"] <= 0.02 and excess["gate"] <= excess["none"] + 1e-9, excess


def test_an_observer_counts_each_rule_and_starts_anew(g1):
    gate = gate_of(g1, NO_PAIRS)
    q = g1.joints(g1.q()).copy()
    q[0] = g1.upper[0] + 0.01
    gate.torque(targets_of(g1, q + 1.0), q, np.zeros(g1.n))
    a = gate.activity
    assert (a.steps, a.active, a.range, a.speed, a.pairs, a.joints[0]) == (1, 1, 1, 0, 0, 1) and a.share == 1.0
    gate.reset()
    assert gate.activity.steps == 0 and gate.activity.share == 0.0


def test_a_torque_that_brakes_enough_by_itself_is_not_counted(g1):
    """Near an end of the range, at high speed, and with a pair that closes: rules look, and have nothing to change."""
    rng, arms = np.random.default_rng(8), np.flatnonzero(arm_joints(g1))
    gate = gate_of(g1, GateSettings(range=False, speed=False))
    gate.torque_limit[:] = 1e6
    q, v, _, J, _ = near_posture(g1, gate, arms, rng)
    gate.torque(targets_of(g1, q, 0.0, 0.0)._replace(tau=1e5 * J), q, v)
    assert gate.activity.steps == 1 and gate.activity.active == 0
    gate.torque(targets_of(g1, q, 0.0, 0.0)._replace(tau=-1e5 * J), q, v)
    assert gate.activity.pairs == gate.activity.active == 1
    gate, q, v = gate_of(g1, NO_PAIRS), g1.joints(g1.q()).copy(), np.zeros(g1.n)
    q[0], v[0] = g1.upper[0] - 0.001, 0.9 * g1.velocity[0]
    brake = np.where(np.arange(g1.n) == 0, -1e4, 0.0)
    assert gate.torque(targets_of(g1, q, 0.0, 0.0)._replace(tau=brake), q, v)[0] == -g1.effort[0]
    assert gate.activity.steps == 1 and gate.activity.active == 0


# -------- Baselines


def test_the_rate_limit_keeps_targets_within_its_speed_and_acceleration(hrp2):
    limiter = TargetRateLimit(hrp2, LOOP, 20.0, 0.5)
    q = hrp2.joints(hrp2.q()).copy()
    rng, seen = np.random.default_rng(6), [q]
    for k in range(600):
        goal = q + (0.5 if k < 300 else -0.3) + 0 * rng.normal(size=hrp2.n)
        limiter.torque(targets_of(hrp2, goal), q, np.zeros(hrp2.n))
        seen.append(limiter._q.copy())
    v = np.diff(seen, axis=0) / LOOP
    assert (np.abs(v) <= 0.5 * hrp2.velocity + 1e-9).all() and (np.abs(np.diff(v, axis=0)) <= 20.0 * LOOP + 1e-6).all()
    assert np.allclose(seen[300], q + 0.5, atol=0.02)


def test_a_freeze_holds_the_posture_for_good(hrp2):
    limiter, q = FreezeOnSpeed(hrp2), hrp2.joints(hrp2.q()).copy()
    t, v = targets_of(hrp2, q + 0.2), np.zeros(hrp2.n)
    assert np.array_equal(limiter.torque(t, q, v), Unlimited(hrp2).torque(t, q, v)) and not limiter.frozen
    v[2] = 0.51 * hrp2.velocity[2]
    limiter.torque(t, q, v)
    assert limiter.frozen
    assert np.allclose(limiter.torque(t, q + 0.1, 0 * v), np.clip(-10.0, -hrp2.effort, hrp2.effort))
