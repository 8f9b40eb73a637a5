"""The safe solver: bad starts are left within all limits, rows come without a jump, braking is always possible."""

import itertools
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.studies.bad_starts import bad_starts, recover
from humanoid_control.collision.pair_distance import NearPairs, PairsFound
from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import HumanoidError, RobotError
from humanoid_control.ik import IkSettings, IkStatus, PointsTask, PostureTask, WholeBodyIk
from humanoid_control.ik.free_velocities import Bounds, DofSelection
from humanoid_control.ik.limits.collision_recovery import CollisionRecovery, homing_gain
from humanoid_control.ik.limits.limit import SoftRows
from humanoid_control.ik.limits.self_collision import (
    BRAKING_SHARE,
    INSIDE_SCALE,
    CollisionLaw,
    SelfCollisionLimit,
    distance_per_speed,
    fill_pair_rows,
    max_closing_speed,
)
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.robots.robot import joint_columns
from humanoid_control.robots.self_collision import VolumePairs
from test.robots_under_test import KINDS, by_kind, nightly


@pytest.mark.parametrize("name", ["armar3", pytest.param("lola", marks=pytest.mark.thorough)])
def test_bad_starts_are_left_within_every_limit(name):
    """In collision and outside ranges, with targets and without: `humanoid study safety` in small."""
    robot = load_robot(name, "fixed")
    solver = WholeBodyIk(robot)
    runs = [recover(solver, start) for start in bad_starts(robot, 12, seed=1)]
    assert (
        sum(r.start.penetration_depth > 0.01 for r in runs) >= 4
        and sum(r.start.limit_violation > 0.01 for r in runs) >= 4
    )
    for r in runs:
        assert r.recovered is not None, f"still inside: {r.blocking}"
        assert r.closest > 0 and r.limit_violation < 1e-9 and r.failures == 0
        assert r.recovery_speed <= solver.settings.recovery_joint_speed + 1e-9
        assert r.speed <= 1 + 1e-9 and r.acceleration <= 1 + 1e-6
        assert r.stage > 0 or r.touched <= 1, "what was apart stays apart, unless there is no other way"


def test_where_gradients_lead_nowhere_the_robot_is_led_home():
    """Arms through the neck: without a time-out they stay there; with it they home to neutral."""
    robot = load_robot("we4rii", "fixed")
    solver, stuck = WholeBodyIk(robot), WholeBodyIk(robot, IkSettings(recovery_timeout=np.inf))
    runs = (recover(solver, start) for start in bad_starts(robot, 40))
    led = list(itertools.islice((r for r in runs if r.stage > 0), 2))
    assert led
    assert any(recover(stuck, r.start, seconds=4.0).recovered is None for r in led)


def test_every_collision_has_its_whole_time_whatever_the_one_before_was():
    """One that was shallow and over must not set the mark for a deep one that is being left."""
    robot = load_robot("armar3", "fixed")
    s, dt, monitor = IkSettings(), 0.02, VolumePairs(robot)
    limit = SelfCollisionLimit(robot, monitor)
    solver, found = WholeBodyIk(robot, s, [limit]), PairsFound.buffer(1)
    found.pair[:], found.normal[:], found.point_1[:], found.point_2[:] = 0, [0.0, 0.0, 1.0], 0.0, 0.0
    monitor.update = lambda q, activation: NearPairs(found, monitor.joints)

    rest = PostureTask(robot)

    def tick(distance):
        found.distance[0] = distance
        return solver.step(robot.q(), [rest], dt).report

    for distance in [-0.002] * int(0.9 * s.recovery_timeout / dt) + [0.001] * 3:
        assert tick(distance).penetration_depth == max(0.0, -distance)
    for distance in np.arange(-0.2, 0.0, 0.0015):
        tick(distance)
        assert not limit.recovery.is_homing, "it comes out by itself"
    for _ in range(int(1.1 * s.recovery_timeout / dt)):
        report = tick(distance)
    assert limit.recovery.is_homing and report.status is IkStatus.HOMING, "now it is stuck"
    for stage in (2, 3, 3):
        for _ in range(int(1.1 * s.recovery_timeout / dt)):
            tick(distance)
        assert limit.recovery.stage == stage, "nor does it come home"
    limit.recovery.reset()
    assert limit.recovery.stage == 0, "its history is forgotten"
    for _ in range(int(1.1 * s.recovery_timeout / dt)):
        tick(distance)
    assert tick(0.001).status is IkStatus.OPTIMAL and not limit.recovery.is_homing


@pytest.mark.parametrize(("away", "gain"), [(2.0, 0.25), (0.2, 2.5), (0.1, 5.0), (0.01, 5.0)])
def test_homing_moves_the_farthest_joint_at_one_speed_and_slows_down_near_home(away, gain):
    robot = load_robot("hrp2", "floating")
    recovery, joints = CollisionRecovery(robot), robot.postures["neutral"].copy()
    joints[[3, 5]] -= away, 0.5 * away
    assert homing_gain(recovery.packed.table, robot.q(joints), 0.5) == pytest.approx(gain)


def test_each_stage_lets_through_what_it_says_and_pairs_that_are_inside_cost_less():
    """Every row is the gradient of its distance, above the speed that the law of the pair asks for."""
    robot, rng, seen = load_robot("we4rii", "fixed"), np.random.default_rng(3), set()
    limit, s, dofs, data = SelfCollisionLimit(robot), IkSettings(), DofSelection(robot), robot.model.createData()
    wide, rows = np.full(robot.nv, 1e3), limit.max_rows(robot)
    out = SoftRows(np.zeros((rows, robot.nv)), np.zeros(rows), np.zeros(rows))
    packed = Packed(limit.pair_rows(dofs, Bounds(-wide, wide), out))
    table, kept_apart = packed.table, (s.margin, s.barrier_gain, s.pair_recovery_speed)
    while len(seen) < 3:
        q = robot.q(rng.uniform(robot.lower, robot.upper))
        prepare(robot, data, q)
        limit.near = limit.monitor.update(q, np.full(limit.monitor.count, 0.1))
        d, G = limit.near.distance, limit.near.gradient(joint_columns(data))
        ends = np.stack([limit.monitor.joints.record.first, limit.monitor.joints.record.second], axis=1)[
            limit.near.pair
        ]
        both = np.isin(ends, ends[d < 0]).all(axis=1)
        seen |= {"inside"} if (d < 0).any() else set()
        seen |= {"between"} if (both & (d >= 0)).any() else set()
        seen |= {"beside"} if (~both & (d < 0.05)).any() and (d < 0).any() else set()
        acceleration, J = rng.uniform(5.0, 300.0, robot.nv), np.ascontiguousarray(joint_columns(data))
        can_change = np.abs(G).max(axis=1, initial=0.0) > 1e-9
        for stage, held_apart in enumerate((d < np.inf, d >= 0, ~both, d > np.inf)):
            kept, law = held_apart & can_change, CollisionLaw(*kept_apart, acceleration, stage)
            k = fill_pair_rows(table, limit.near.found, J, law, 0)
            assert k == kept.sum()
            scale, x = np.where(d < 0, INSIDE_SCALE, 1.0)[kept], d[kept] - s.margin
            brake = BRAKING_SHARE * np.abs(G[kept]) @ acceleration
            closing = [max_closing_speed(max(a, 0.0), s.barrier_gain, b) for a, b in zip(x, brake, strict=True)]
            asked = np.where(x <= 0, np.minimum(-s.barrier_gain * x, s.pair_recovery_speed), -np.array(closing))
            assert out.scale[:k] == pytest.approx(scale)
            assert out.A[:k] == pytest.approx(scale[:, None] * G[kept], abs=1e-12)
            assert out.b[:k] == pytest.approx(scale * asked)


@pytest.mark.parametrize("name", by_kind(["hrp2", "suralp"]))
def test_a_row_that_appears_allows_the_present_velocity_and_no_tick_exceeds_the_acceleration(name):
    """Wild targets in ticks of changing length: rows come and go, and none asks for a jump when it comes."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(5)
    s = IkSettings(acceleration=60.0)
    ik, most = WholeBodyIk(robot, s), np.minimum(s.acceleration, robot.acceleration_limits)
    assert most.min() < 50.0, "a joint that is slower than the setting"
    hands = [robot.point_frame(p) for p in ("l_wrist", "r_wrist", "l_elbow", "r_elbow")]
    points, q, v = PointsTask(robot, hands, gain=30.0), robot.q(), np.zeros(robot.nv)
    points.set_target_from(q)
    home, known, came, fastest, closest = points.targets.copy(), set(), 0, 0.0, np.inf
    apart = robot.collision_monitor("shapes")
    rest = PostureTask(robot)
    for k in range(1200):
        if k % 60 == 0:
            points.targets = home + rng.uniform(-0.5, 0.5, home.shape)
        dt = rng.uniform(0.001, 0.006)
        result = ik.step(q, [points, rest], dt)
        assert (np.abs(result.v - v) <= most * dt * (1 + 1e-9)).all()
        near = result.near
        pin.computeJointJacobians(robot.model, robot.data, q)
        g = near.gradient(robot.data.J)
        for i, p in enumerate(near.pair):
            x = near.distance[i] - s.margin
            if p not in known and x > 0 and k > 0:
                allowed = max_closing_speed(x, s.barrier_gain, BRAKING_SHARE * np.abs(g[i]) @ most)
                turned = 0.1 * np.abs(g[i]) @ most * dt  # its normal may have
                assert g[i] @ v >= -allowed - turned
                came, fastest = came + 1, max(fastest, -(g[i] @ v))
        if k % 2 == 0:  # what is no row will still be none at the end of the tick, as far as its normal stays
            every = apart.update(q, np.inf)
            rate, g = -(every.gradient(robot.data.J) @ result.v), every.gradient(robot.data.J)
            for i in np.setdiff1d(np.arange(apart.count), near.pair):
                brake = BRAKING_SHARE * np.abs(g[i]) @ most
                x = every.distance[i] - s.margin - max(rate[i], 0.0) * dt
                assert rate[i] <= max_closing_speed(x, s.barrier_gain, brake) + 1e-9
        known, q, v = set(near.pair), result.q, result.v
        closest = min(closest, near.distance.min(initial=np.inf))
    assert came > 50 and fastest > 0.3, "rows must have come, some of them at speed"
    assert 0 < closest < s.margin + 0.02


@pytest.mark.parametrize(("name", "base"), [("lola", "floating"), ("wabian2", "fixed"), ("we4rii", "fixed")])
def test_pairs_that_are_passed_over_close_no_faster_than_their_rows_would_let_them(name, base):
    """Any posture, any velocity: every pair that is no row could be one after the tick without asking for a jump."""
    robot, rng, s, dt = load_robot(name, base), np.random.default_rng(2), IkSettings(), 0.02
    limit, every, tightest = SelfCollisionLimit(robot), SelfCollisionLimit(robot), np.inf
    n, passed_over, rows, by_levers = limit.monitor.count, 0, 0, 0
    for share in (0.03, 0.1, None, None) * 30:
        q = robot.q(rng.uniform(robot.lower, robot.upper))
        near = every.monitor.update(q, np.inf)
        pin.computeJointJacobians(robot.model, robot.data, q)
        g = near.gradient(robot.data.J)
        most = rng.choice([20.0, 200.0], robot.nv)
        if share is None:  # the worst for one pair: straight towards each other, about as fast as its row lets them
            one = rng.choice(np.flatnonzero((near.distance > 0.15) & (near.distance < 0.5)))
            most[:] = rng.choice([2.0, 20.0, 2e3])
            brake = BRAKING_SHARE * np.abs(g[one]) @ most
            fast = max_closing_speed(near.distance[one] - s.margin, s.barrier_gain, brake)
            v = -(g[one] if rng.random() < 0.5 else np.sign(g[one]) / np.maximum(np.abs(g[one]), 0.05))
            v *= rng.uniform(0.8, 1.2) * fast / -(g[one] @ v)
        else:
            v = np.concatenate([np.zeros(robot.iv), share * rng.uniform(-1, 1, robot.n) * robot.velocity])
        v[: robot.iv] = rng.normal(size=robot.iv)
        most[: robot.iv] = 1e-3  # the base is no joint: it moves both sides
        found = set(limit.active_pairs(q, v, s, most, v, dt).pair.tolist())
        d, speed = np.empty(n), np.empty(n)
        d[near.pair], speed[near.pair] = near.distance, -(g @ v)
        brake = np.zeros(n)
        brake[near.pair] = BRAKING_SHARE * np.abs(g) @ most
        outside = [i for i in range(n) if i not in found]
        assert all(d[i] >= s.activation for i in outside)
        for i in outside:
            allowed = max_closing_speed(d[i] - s.margin - dt * max(speed[i], 0.0), s.barrier_gain, brake[i])
            assert speed[i] <= allowed + 1e-9
            tightest = min(tightest, allowed / speed[i]) if speed[i] > 0.05 else tightest
        passed_over, rows = passed_over + len(outside), rows + len(found)
        levers = s.margin + limit.monitor.motion_bound @ (np.abs(v) / s.barrier_gain + v * v / most)
        by_levers += int((d < np.maximum(s.activation, levers)).sum())
    assert passed_over > 300 and rows > 300 and tightest < 1.8, f"{tightest}: the bound is near to what is needed"
    assert rows < 0.97 * by_levers, "fewer than by the levers of the joints"


@given(st.floats(0.5, 50), st.floats(1, 200), st.floats(1e-4, 2))
def test_the_closing_speed_is_smooth_and_never_brakes_harder_than_it_may(barrier_gain, deceleration, x):
    c = max_closing_speed(x, barrier_gain, deceleration)
    h = 1e-6 * x
    slope = (
        max_closing_speed(x + h, barrier_gain, deceleration) - max_closing_speed(x - h, barrier_gain, deceleration)
    ) / (2 * h)
    assert 0 < c <= barrier_gain * x * (1 + 1e-9)
    assert c * slope <= deceleration * (1 + 1e-4)


@given(st.floats(0.1, 10.0), st.floats(1.0, 40.0), st.floats(0.01, 1.0))
def test_a_pair_at_the_distance_for_its_speed_may_close_with_that_speed(speed, barrier_gain, stop):
    x = speed * distance_per_speed(barrier_gain, stop)
    assert np.isclose(max_closing_speed(x, barrier_gain, speed / stop), speed, rtol=1e-9)


def test_a_safety_stop_brakes_holds_and_says_so():
    robot = load_robot("hrp2", "fixed")
    start = next(s for s in bad_starts(robot, 30) if s.penetration_depth > 0.05 and s.limit_violation == 0)
    ik = WholeBodyIk(robot, IkSettings(on_penetration="stop", acceleration=50.0))
    most = np.minimum(50.0, robot.acceleration_limits)
    rng = np.random.default_rng(0)
    q = start.q
    ik.v = v = rng.uniform(-0.5, 0.5, robot.nv) * (np.minimum(q - robot.lower, robot.upper - q) > 0.1)
    rest = PostureTask(robot, robot.postures["zero"], weight=5.0)
    for _ in range(20):
        result = ik.step(q, [rest], 0.004)
        report = result.report
        assert report.penetration_depth > 0 and report.speed_scale == 0
        assert report.status is IkStatus.STOPPED_BY_PENETRATION and "stops" in report.note
        assert np.allclose(result.v, np.sign(v) * np.maximum(np.abs(v) - 0.004 * most, 0), atol=1e-12)
        q, v = result.q, result.v
    assert (v == 0).all()
    leaving = WholeBodyIk(robot, replace(ik.settings, on_penetration="recover"))
    assert recover(leaving, replace(start, q=q)).recovered is not None


def test_settings_that_make_no_sense_are_refused():
    for bad in (
        {"acceleration": 0.0},
        {"barrier_gain": -1.0},
        {"slack_weight": float("nan")},
        {"velocity_scale": 2.0},
        {"margin": float("nan")},
        {"recovery_timeout": -1.0},
        {"on_penetration": "flee"},
    ):
        with pytest.raises(HumanoidError):
            IkSettings(**bad)


def test_a_robot_that_cannot_touch_itself_is_told_and_not_searched_for_ever(monkeypatch):
    with pytest.raises(RobotError, match="kengoro_upper has no pairs of shapes to keep apart"):
        next(bad_starts(load_robot("kengoro_upper", "fixed"), 1))
    monkeypatch.setattr("evidence.studies.bad_starts.MOST_TRIED", 1)
    with pytest.raises(RobotError, match="wabian2: none of 1 postures inside its ranges is in collision"):
        list(bad_starts(load_robot("wabian2", "fixed"), 60))


@pytest.mark.parametrize(
    ("name", "margin"),
    [*((n, 0.08) if n in KINDS else nightly(n, 0.08) for n in CATALOGUE), ("hrp2", 0.02)],
)
def test_nothing_pushes_at_rest_and_what_is_near_there_comes_no_nearer(name, margin):
    """Pairs that are nearer than the margin in the neutral posture keep what they have: it is a posture to rest in."""
    robot = load_robot(name, "fixed")
    ik, home = WholeBodyIk(robot, IkSettings(margin=margin, activation=0.15)), robot.postures["neutral"]
    at_rest = robot.pair_distances(robot.q())
    q = robot.q()
    rest = PostureTask(robot)
    for _ in range(100):
        q = ik.step(q, [rest], 0.004).q
    assert np.abs(robot.joints(q) - home).max() < 1e-9
    hands = [robot.point_frame(p) for p in ("l_wrist", "r_wrist", "l_elbow", "r_elbow")]
    points = PointsTask(robot, hands)
    points.set_target_from(q)
    points.targets = points.targets * [1.0, 0.0, 1.0]  # all to the middle of the body
    rest = PostureTask(robot)
    for _ in range(250):
        q = ik.step(q, [points, rest], 0.004).q
    now = robot.pair_distances(q)
    assert (now > np.minimum(margin, at_rest) - 2e-3).all() and now.min() < at_rest.min() + 0.05
