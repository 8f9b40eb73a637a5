"""Limits are listed, replaced, extended: a wall for a hand as rows, a bound of one's own, and each only its part."""

import numpy as np
import pytest

from humanoid_control.ik import (
    AccelerationLimit,
    ConfigurationLimit,
    DofSelection,
    IkSettings,
    JointSideLimit,
    Limit,
    PointsTask,
    PostureTask,
    SelfCollisionLimit,
    VelocityLimit,
    WholeBodyIk,
    clamp_bounds,
    default_limits,
)
from humanoid_control.ik.free_velocities import Bounds, DofMap
from humanoid_control.ik.limits.limit import fill_braking
from humanoid_control.ik.tasks.points import FramePoint
from humanoid_control.robots import load_robot
from humanoid_control.robots.self_collision import VolumePairs
from test.robots_under_test import by_kind, nightly

DT = 0.004
INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'


class Wall(Limit):
    """A point of the robot stays behind x = wall: it may come nearer by a share of the distance each second."""

    def __init__(self, robot, frame, wall, gain=8.0, weight=None):
        self.point, self.wall, self.gain, self.weight = FramePoint(robot, frame), wall, gain, weight

    def max_rows(self, robot):
        return 1

    def rows(self, state, A, b, slack_weight):
        assert A.shape == (1, state.robot.nv) and (A == 0).all()
        assert slack_weight[0] == state.settings.slack_weight
        if self.weight is not None:
            slack_weight[0] = self.weight
        A[0] = -self.point.jacobian(state.robot, state.data)[0]
        b[0] = -self.gain * (self.wall - self.point.position(state.robot, state.data)[0])
        return 1


class OwnSides(JointSideLimit):
    """A class that the compiled tick does not know."""


class Slow(Limit):
    """No joint is faster than some speed; counts how often it was asked."""

    def __init__(self, speed):
        self.speed, self.asked, self.resets = speed, 0, 0

    def tighten(self, state, lower, upper):
        self.asked += 1
        clamp_bounds(lower[state.robot.iv :], upper[state.robot.iv :], -self.speed, self.speed)

    def reset(self):
        self.resets += 1


def reach(robot, limits, dx=0.35, ticks=600, settings=None):
    """Reach forwards with the left hand: every x of the wrist [m], every velocity, and the last result."""
    wrist = robot.point_frame("l_wrist")
    hand, q = PointsTask(robot, [wrist], gain=10.0), robot.q()
    hand.targets = robot.frame_positions(q, [wrist]) + [dx, 0.0, 0.15]
    solver = WholeBodyIk(robot, settings, limits)
    xs, vs = [], []
    rest = PostureTask(robot, weight=0.01)
    for _ in range(ticks):
        result = solver.step(q, [hand, rest], DT)
        q = result.q
        xs.append(robot.frame_positions(q, [wrist])[0][0])
        vs.append(result.v)
    return np.array(xs), np.array(vs), result


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


@pytest.mark.parametrize("first", [False, nightly(True)], ids=["last", "first"])
def test_a_wall_of_ones_own_is_not_passed(robot, first):
    """Rows beside those of the shapes, before them or after them; without the wall the hand goes well beyond it."""
    start = robot.point_positions(robot.q(), ["l_wrist"])[0][0]
    free, _, _ = reach(robot, None)
    wall = Wall(robot, robot.point_frame("l_wrist"), start + 0.1)
    others = default_limits(robot)
    walled, _, result = reach(robot, [wall, *others] if first else [*others, wall])
    assert free.max() > start + 0.2
    assert walled.max() < start + 0.1 + 1e-3 and walled[-1] > start + 0.09
    assert result.ok and result.report.slack < 1e-3


def test_a_cheap_slack_is_used(robot):
    """A row that costs little gives way to the task; its slack is reported in its own unit, whatever it costs."""
    start = robot.point_positions(robot.q(), ["l_wrist"])[0][0]
    frame = robot.point_frame("l_wrist")
    cheap, _, result = reach(robot, [*default_limits(robot), Wall(robot, frame, start + 0.1, weight=1e-4)])
    assert cheap.max() > start + 0.2
    assert result.report.slack == pytest.approx(8.0 * (cheap[-1] - start - 0.1), rel=0.05)


@pytest.mark.nightly
def test_a_bound_of_ones_own_holds_beside_the_others(robot):
    slow = Slow(0.05)
    _, v, _ = reach(robot, [slow, *default_limits(robot)])
    assert np.abs(v).max() <= 0.05 + 1e-12
    assert slow.asked == 601 and slow.resets == 2, "once a tick, and in the step that compiles"
    _, free, _ = reach(robot, None)
    assert np.abs(free).max() > 0.5


def test_the_last_limit_comes_first():
    """Where two limits cannot both be kept, the bounds collapse to what the later allows nearest to the earlier."""
    robot = load_robot("hrp2", "fixed")
    slow, fast = IkSettings(acceleration=10.0), 1.0
    for last in (True, False):
        limits = [Slow(0.01), AccelerationLimit()] if last else [AccelerationLimit(), Slow(0.01)]
        solver = WholeBodyIk(robot, slow, limits)
        solver.v = np.full(robot.nv, fast)
        v = solver.step(robot.q(), [PostureTask(robot)], DT).v
        assert v == pytest.approx(np.full(robot.nv, fast - 10.0 * DT if last else 0.01), abs=1e-12)


def test_each_default_limit_does_its_part(robot):
    """Without one of them exactly its quantity is exceeded, with all of them none is.

    Acceleration is kept also by the range, which brakes in time; that its own limit comes last is the test above.
    """
    rng, home = np.random.default_rng(0), robot.q()
    wrists = [robot.point_frame("l_wrist"), robot.point_frame("r_wrist")]
    names = {VelocityLimit: "speed", ConfigurationLimit: "range"}
    settings = IkSettings(acceleration=30.0, velocity_scale=0.2, smoothing=0.001, damping=0.005, swept=False)
    goals = robot.frame_positions(home, wrists) + rng.uniform(-0.6, 0.6, (6, 2, 3))
    for left_out in (None, *names):
        limits = [m for m in default_limits(robot, self_collision=False) if type(m) is not left_out]
        solver, q, before = WholeBodyIk(robot, settings, limits), home, np.zeros(robot.nv)
        hands, worst = PointsTask(robot, wrists, gain=100.0), dict.fromkeys(("speed", "range", "acceleration"), 0.0)
        for k in range(300):
            hands.targets = goals[k // 50]
            v = solver.step(q, [hands], DT).v
            joints = q + v * DT
            worst["speed"] = max(worst["speed"], float(np.max(np.abs(v) / robot.velocity)) / 0.2)
            worst["acceleration"] = max(worst["acceleration"], float(np.abs(v - before).max()) / (30.0 * DT))
            excess = np.maximum(robot.lower - joints, joints - robot.upper).max()
            worst["range"] = max(worst["range"], 1.0 + float(excess))
            q, before = robot.q(np.clip(joints, robot.lower, robot.upper)), v
        exceeded = {name for name, value in worst.items() if value > 1 + 1e-6}
        assert exceeded == ({names[left_out]} if left_out else set())


def test_shapes_are_kept_apart_only_by_their_limit(robot):
    hands = [robot.point_frame("l_wrist"), robot.point_frame("r_wrist")]
    closest = {}
    for name, limits in (("with", default_limits(robot)), ("without", default_limits(robot, self_collision=False))):
        points, q = PointsTask(robot, hands, gain=10.0), robot.q()
        points.set_target_from(q)
        points.targets = points.targets[::-1].copy()
        solver = WholeBodyIk(robot, limits=limits)
        for _ in range(300):
            q = solver.step(q, [points], DT).q
        closest[name] = robot.shape_clearance(q).min()
    assert closest["with"] > 0.005 and closest["without"] < 0


@pytest.mark.nightly
def test_volumes_can_be_kept_apart_in_place_of_shapes():
    """The limit takes any monitor: here the robot's swept-sphere volumes, by rows alone."""
    robot = load_robot("lola", "fixed")
    monitor = VolumePairs(robot)
    limits = [VelocityLimit(), SelfCollisionLimit(robot, monitor), ConfigurationLimit(), AccelerationLimit()]
    hands = [robot.point_frame("l_wrist"), robot.point_frame("r_wrist")]
    points, q, solver = PointsTask(robot, hands, gain=4.0), robot.q(), WholeBodyIk(robot, limits=limits)
    points.set_target_from(q)
    points.targets = points.targets[::-1].copy()
    start = monitor.update(q, 10.0).distance.min()
    rest = PostureTask(robot)
    for _ in range(300):
        result = solver.step(q, [points, rest], DT)
        q = result.q
    assert len(result.near) and min(start, 0.0) - 1e-6 < monitor.update(q, 10.0).distance.min() < 0.05


def beyond(robot, q, v, before, dt, limits):
    """Largest shares of the joints' own limits that a tick used; braking is that before the end of the range."""
    joints, u, room = robot.joints(q), v[robot.iv :], 1e-9
    span = robot.upper - robot.lower
    change = np.abs(u - before[robot.iv :]) / (limits.acceleration * dt + room)
    left = np.maximum(np.where(u > 0, robot.upper - joints, joints - robot.lower), 0.0)
    stop = u**2 / (2 * limits.braking) / (left + np.abs(u) * dt + room)
    middle = np.abs(joints - (robot.lower + robot.upper) / 2) / (span / 2 + room)
    return {
        "range": middle.max(),
        "speed": (np.abs(u) / robot.velocity).max(),
        "acceleration": change.max(),
        "braking": stop.max(),
    }


@pytest.mark.parametrize("name", by_kind(["hrp2", "wabian2"]))
@pytest.mark.parametrize("most", [nightly(200.0), 15.0])
def test_every_command_keeps_range_speed_and_acceleration_of_each_joint_and_uses_them(name, most):
    """Wild targets, ticks of any length, a measured posture to begin with: no joint beyond its own."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(11)
    limits = robot.accelerations_within(most)
    assert len(np.unique(limits.acceleration)) > 3 or most < 20.0
    solver = WholeBodyIk(robot, IkSettings(acceleration=most), default_limits(robot, self_collision=False))
    wrists = [robot.point_frame("l_wrist"), robot.point_frame("r_wrist")]
    hands = PointsTask(robot, wrists, gain=60.0)
    q = robot.q(np.clip(robot.postures["neutral"] + rng.uniform(-0.2, 0.2, robot.n), robot.lower, robot.upper))
    home, v, worst = robot.frame_positions(q, wrists), np.zeros(robot.nv), dict[str, float]()
    used = np.zeros(robot.n)
    rest = PostureTask(robot, weight=0.01)
    for k in range(900):
        if k % 60 == 0:
            hands.targets = home + rng.uniform(-0.8, 0.8, home.shape)
        dt = rng.uniform(0.002, 0.006)
        result = solver.step(q, [hands, rest], dt)
        for what, share in beyond(robot, result.q, result.v, v, dt, limits).items():
            worst[what] = max(worst.get(what, 0.0), float(share))
        used = np.maximum(used, np.abs(result.v - v)[robot.iv :] / (limits.acceleration * dt))
        q, v = result.q, result.v
    assert all(share <= 1 + 1e-6 for share in worst.values()), worst
    arms = [k for k in robot.imitation_joints if "wrist" not in robot.joint_names[k]]
    assert (used[arms] > 0.98).mean() > 0.7, "joints use their own limits, not the smallest of all"


def test_limits_that_change_while_it_runs_hold_from_the_next_tick_on(robot):
    solver, before = WholeBodyIk(robot, IkSettings(acceleration=200.0)), np.zeros(robot.nv)
    hand, q = PointsTask(robot, [robot.point_frame("l_wrist")], gain=60.0), robot.q()
    hand.targets = robot.frame_positions(q, [robot.point_frame("l_wrist")]) + [0.2, 0.2, 0.3]
    for scale in (1.0, 0.1, np.inf):
        solver.settings = IkSettings(acceleration=200.0, acceleration_scale=scale, swept=False)
        most, used = np.minimum(200.0, scale * robot.acceleration_limits), 0.0
        for k in range(40):
            hand.targets[0, 2] *= -1 if k % 10 == 0 else 1
            result = solver.step(q, [hand], DT)
            share = np.abs(result.v - before) / (most * DT)
            used = max(used, share.max())
            q, before = result.q, result.v
        assert 0.99 < used <= 1 + 1e-6


def test_a_free_velocity_is_limited_by_all_that_it_moves(tmp_path):
    """A leader whose mimic may change by 4 rad/s^2 and moves half as fast may change by 8, however much its own is."""
    links = "".join(
        f'<link name="{name}"><inertial><mass value="1"/>{INERTIA}</inertial></link>'
        for name in ("one", "two", "three")
    )
    joint = '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><axis xyz="0 1 0"/>{}{}</joint>'
    limit = '<limit lower="-1" upper="1" velocity="3" effort="50"/>'
    text = f'<robot name="two"><link name="base"/>{links}' + joint.format("a", "base", "one", limit, "")
    text += joint.format("b", "one", "two", limit, '<mimic joint="a" multiplier="-0.5"/>')
    (tmp_path / "two.urdf").write_text(text + joint.format("c", "two", "three", limit, "") + "</robot>")
    robot, rng = load_robot(tmp_path / "two.urdf", "fixed"), np.random.default_rng(0)
    for held in ((), ("c",)):
        dofs = DofSelection(robot, held)
        for _ in range(20):
            own = rng.uniform(1.0, 20.0, robot.nv)
            found = dofs.reduce_limits(own)
            for k in range(dofs.k):
                moved = np.abs(dofs.expand(np.eye(dofs.k)[k]))
                assert found[k] == pytest.approx(min(own[c] / moved[c] for c in np.flatnonzero(moved)))


@pytest.mark.parametrize("base", ["floating", "fixed"])
@pytest.mark.parametrize("kind", [JointSideLimit, OwnSides], ids=["compiled", "custom"])
def test_joints_stay_on_one_side_of_an_angle_and_come_back_to_it_slowly(base, kind):
    robot = load_robot("hrp2", base)
    joints = [robot.joint_index(f"{side}_elbow_flexion") for side in "lr"]
    limit = kind(joints, [0.4, 0.7], [1.0, -1.0], gain=20.0)
    limits = default_limits(robot, False)
    solver = WholeBodyIk(robot, IkSettings(), [*limits[:-2], limit, *limits[-2:]])
    posture, q, angles = PostureTask(robot, weight=10.0, gain=50.0), robot.q(), []

    def run(ticks):
        nonlocal q
        for _ in range(ticks):
            q = solver.step(q, [posture], DT).q
            angles.append(q[[robot.iq + k for k in joints]])

    posture.posture = robot.postures["neutral"].copy()
    posture.posture[joints] = 0.1, 1.2
    run(400)
    assert np.min(angles, axis=0)[0] > 0.4 - 1e-9 and np.max(angles, axis=0)[1] < 0.7 + 1e-9
    assert np.allclose(angles[-1], [0.4, 0.7], atol=1e-3), "as near as they may"
    limit.packed.record.angle[:] = 0.6, 0.5  # now both are on the wrong side, and are to go on into it
    angles.clear()
    run(400)
    speed = np.abs(np.diff(angles, axis=0)) / DT
    assert np.allclose(angles[-1], [0.6, 0.5], atol=1e-3) and 0.49 < speed.max() < 0.5 + 1e-6
    limit.packed.record.gain[0] = 1.0
    posture.posture[joints] = 1.0, 0.1  # away from their angles as fast as ever, and back no faster than the gain says
    run(200)
    posture.posture[joints] = 0.1, 1.2
    angles.clear()
    run(50)
    room = np.array([1.0, -1.0]) * (np.array(angles) - [0.6, 0.5])
    assert (room[1:] > room[:-1] * (1 - 1.001 * DT)).all()


def test_a_later_limit_cuts_the_side_of_a_joint(robot):
    """Without room to brake a joint passes its angle, rather than that its acceleration does not hold."""
    joint = robot.joint_index("l_elbow_flexion")
    limits = default_limits(robot, False)
    solver = WholeBodyIk(robot, IkSettings(), [*limits[:-2], JointSideLimit([joint], [0.6], [1.0], 20.0), *limits[-2:]])
    posture = PostureTask(robot, weight=10.0, gain=50.0)
    solver.v[robot.iv + joint] = -3.0
    q = robot.q()
    q[robot.iq + joint] = 0.61
    before, least = solver.v.copy(), np.inf
    own = robot.accelerations_within(IkSettings().acceleration, IkSettings().acceleration_scale)
    for _ in range(200):
        q, v, _ = solver.step(q, [posture], DT)
        assert (np.abs(v - before)[robot.iv :] <= own.acceleration * DT * (1 + 1e-9)).all()
        before, least = v.copy(), min(least, q[robot.iq + joint])
    assert least < 0.6 and q[robot.iq + joint] > 0.6 - 1e-3


def test_the_hardest_braking_moves_no_joint_that_is_held():
    dofs = DofMap(np.array([0, -1, 1]), np.array([1.0, 1.0, -0.5]))
    bounds, out = Bounds(np.full(2, -10.0), np.full(2, 10.0)), np.full(3, np.nan)
    fill_braking(np.array([2.0, 3.0, -1.0]), 0, np.full(3, 10.0), 0.05, dofs, bounds, out)
    assert np.allclose(out, [1.5, 0.0, -0.5])
