"""The tick: the optimum of a program written out with pinocchio and daqp, also in collisions and with custom limits."""

import copy

import daqp
import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.ik import (
    AngularMomentumTask,
    CenterOfMassTask,
    FrameTask,
    IdleJointLimit,
    IkSettings,
    IkStatus,
    JointSideLimit,
    JointTask,
    Limit,
    LinearMomentumTask,
    OrientationTask,
    PointsTask,
    PointTask,
    PostureTask,
    SelfCollisionLimit,
    Task,
    WholeBodyIk,
)
from humanoid_control.ik.integrate import integrate_base
from humanoid_control.ik.limits import clamp_bounds, default_limits
from humanoid_control.ik.tasks import prepare
from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.kinematics.joint_twists import LinkInertias, fill_centroidal_map, fill_twists
from humanoid_control.robots import load_robot
from test.robots_under_test import nightly

DT = 0.004


class HandsLevel(Task):
    """Both wrists at the same height, and beyond 0.1 m also at the same depth: a task of the user's own."""

    def __init__(self, robot):
        super().__init__("hands_level", 0.3, 40.0)
        self.frames = [robot.point_frame(p) for p in ("l_wrist", "r_wrist")]

    def _axes(self, data):
        apart = np.subtract(*(data.oMf[f].translation for f in self.frames))
        return [0, 2] if abs(apart[0]) > 0.1 else [2]

    def error(self, robot, data, q):
        return np.subtract(*(data.oMf[f].translation for f in self.frames[::-1]))[self._axes(data)]

    def rows(self, robot, data, q):
        left, right = (pin.getFrameJacobian(robot.model, data, f, pin.LOCAL_WORLD_ALIGNED) for f in self.frames)
        return (left - right)[self._axes(data)], self.gain * self.error(robot, data, q)


def all_tasks(robot):
    tasks = [
        PointsTask(robot, ["l_wrist", "sternum"], gain=40.0),
        PointTask(robot, "r_wrist", "sternum", "sternum", weight=0.7),
        CenterOfMassTask(robot, weight=0.5),
        OrientationTask(robot, "sternum", weight=0.3),
        FrameTask(robot, "r_elbow", weight=0.2, orientation_weight=0.5),
        JointTask(robot, robot.joint_names[1:3], weight=0.4),
        PostureTask(robot, weight=0.02),
    ]
    for task in tasks:
        task.set_target_from(robot.q())
    return [*tasks, AngularMomentumTask(weight=0.1), LinearMomentumTask(axes=(True, False, True), weight=0.01)]


def sweep(tasks, home, k, size):
    """Targets through the robot's own body, sizes [m] beyond its reach too."""
    phase = 0.03 * k
    tasks[0].targets = home[0] + size * np.array([[np.sin(phase), -np.sin(1.3 * phase), 0.3], [0.0, 0.05, 0.0]])
    tasks[0].velocities = 0.1 * np.cos(phase) * np.ones((2, 3))
    tasks[1].target[:] = home[1] + size * np.array([0.2, np.sin(0.9 * phase), np.cos(phase)])  # in place
    tasks[3].target = pin.exp3(np.array([0.0, 0.1, 0.3 * np.sin(phase)]))
    tasks[4].X_target.translation += 0.001 * np.cos(phase)
    tasks[5].weight = 0.2 + 0.1 * np.sin(phase)
    tasks[7].reference = [0.0, 0.0, 0.2 * np.sin(phase)]


def limits_of(robot, collisions, idle):
    limits = default_limits(robot, collisions)
    apart = next((m for m in limits if isinstance(m, SelfCollisionLimit)), None)
    if idle:
        held = IdleJointLimit(robot, robot.postures["neutral"], 2.0, apart)
        held.follow([robot.point_frame(p) for p in ("l_wrist", "r_wrist", "sternum")])
        limits.insert(-2, held)
        elbows = [robot.joint_index(f"{side}_elbow_flexion") for side in "lr"]
        limits.insert(-2, JointSideLimit(elbows, [0.3, 0.6], [1.0, -1.0], 20.0))
    return limits


def own_limits(limits):
    """Limits of the same effect, of classes that are not known: each has its turn in Python."""
    for limit in limits:
        if not isinstance(limit, SelfCollisionLimit):
            limit.__class__ = type("Own" + type(limit).__name__, (type(limit),), {})
    return limits


@pytest.mark.parametrize(
    ("name", "base", "collisions", "idle", "size"),
    [
        ("lola", "floating", True, False, 0.4),  # saturated, and arms through the body
        ("hrp2", "fixed", True, True, 0.4),
        nightly("wabian2", "floating", True, True, 0.15),  # mimicking joints
        nightly("lola", "fixed", False, False, 0.5),
    ],
)
def test_custom_limits_have_their_turn_in_the_order_of_the_list(name, base, collisions, idle, size):
    """The same limits, compiled and each as a custom one: every bit of every tick is the same, also in collisions."""
    robot, settings = load_robot(name, base), IkSettings(smoothing=0.02, recovery_timeout=0.08)
    one, own = (WholeBodyIk(robot, settings, f(limits_of(robot, collisions, idle))) for f in (list, own_limits))
    tasks, inside, outside, bound = [*all_tasks(robot), HandsLevel(robot)], 0, 0, 0
    home = tasks[0].targets.copy(), tasks[1].target.copy()
    rng, q = np.random.default_rng(3), robot.q()
    for k in range(300):
        if k == 200:  # settings and tasks that change on the way
            one.settings = own.settings = IkSettings(margin=0.03, acceleration=100.0, barrier_gain=12.0)
            tasks = [*tasks[:7], *tasks[9:]]
        if k in (120, 250) and collisions:  # a jump into a collision
            q = colliding(robot, rng)
        if k == 50:
            q[robot.iq] = robot.upper[0] + 0.05
        sweep(tasks, home, min(k, 199), size)
        a, b = one.step(q, tasks, DT), own.step(q, tasks, DT)
        assert np.array_equal(a.q, b.q) and np.array_equal(a.v, b.v)
        x, y = a.report, b.report
        assert (x.status, x.rows, x.slack, x.iterations) == (y.status, y.rows, y.slack, y.iterations)
        assert (x.limit_violation, x.penetration_depth) == (y.limit_violation, y.penetration_depth)
        if k % 10 == 0:
            assert np.array_equal(a.near.pair, b.near.pair)
        low, high = one._memory.record.bounds
        bound += int(((one._memory.record.x <= low) | (one._memory.record.x >= high)).sum())
        q, inside, outside = a.q, inside + (x.penetration_depth > 0.0), outside + (x.limit_violation > 0.01)
    assert bound > 300, "limits should have held it back, or this shows nothing"
    assert outside > 5 and (inside > 20 or not collisions)


def test_limits_that_the_kernel_cannot_serve_are_custom():
    """Idle joints without the pairs of the solver, and a second limit of a kind, do their part all the same."""
    robot = load_robot("hrp2", "fixed")
    idle = IdleJointLimit(robot, robot.postures["neutral"])
    idle.follow([robot.point_frame("r_wrist")])
    elbows = [robot.joint_index(f"{side}_elbow_flexion") for side in "lr"]
    sides = [JointSideLimit([joint], [0.5], [1.0], 20.0) for joint in elbows]
    limits = default_limits(robot)
    solver, q = WholeBodyIk(robot, limits=[*limits[:-2], *sides, idle, *limits[-2:]]), robot.q()
    assert solver._tick._custom_limits == [sides[1], idle]
    posture = PostureTask(robot, "zero", weight=10.0)
    for _ in range(300):
        q = solver.step(q, [posture], DT).q
    joints, away = robot.joints(q), np.abs(robot.joints(q) - robot.postures["neutral"])
    assert idle.idle.any() and away[idle.idle].max() < 1e-9 < away[~idle.idle].max()
    assert joints[elbows].min() > 0.5 - 1e-9


def colliding(robot, rng):
    while True:
        q = robot.q(robot.follow(rng.uniform(robot.lower, robot.upper)))
        if -0.05 < robot.shape_clearance(q).min() < -0.01:
            return q


def test_custom_limits_see_the_pairs_of_their_tick():
    class Watch(Limit):
        def update(self, state):
            apart = solver.self_collision
            self.near = apart.monitor.name(int(apart.near.pair[0])) if len(apart.near) else None

        def tighten(self, state, lower, upper):
            self.seen = self.near, solver.self_collision.penetration_depth

    robot, watch = load_robot("hrp2", "fixed"), Watch()
    solver, q, known = WholeBodyIk(robot), colliding(robot, np.random.default_rng(3)), robot.collision_monitor("shapes")
    solver.limits.append(watch)
    solver.step(robot.q(), [PostureTask(robot)], DT)
    result = solver.step(q, [PostureTask(robot)], DT)
    near = known.update(q, solver.settings.activation)
    assert watch.seen[0] == known.name(int(near.pair[0])) and watch.seen[1] == pytest.approx(-near.distance.min())
    assert result.report.penetration_depth == watch.seen[1]


def test_a_solver_keeps_pairs_apart_once():
    robot = load_robot("hrp2", "fixed")
    with pytest.raises(ConfigError, match="at most one SelfCollisionLimit, got 2"):
        WholeBodyIk(robot, limits=[*default_limits(robot), SelfCollisionLimit(robot)])


@pytest.mark.parametrize("rows", [0, 1])
def test_a_subclass_adds_to_what_keeps_pairs_apart(rows):
    """Its bounds and its row count beside those of the pairs: the result is that of two limits."""

    class Added(SelfCollisionLimit):
        def max_rows(self, robot):
            return super().max_rows(robot) + rows

        def tighten(self, state, lower, upper):
            wall.tighten(state, lower, upper)

        def rows(self, state, A, b, slack_weight):
            return wall.rows(state, A, b, slack_weight)

    robot = load_robot("hrp2", "floating")
    wall, limits, tasks, count, held = Wall(robot), default_limits(robot), all_tasks(robot), 0, 0
    if not rows:
        wall.max_rows = lambda robot: 0
    one = WholeBodyIk(robot, limits=[limits[0], Added(robot), *limits[2:]])
    two = WholeBodyIk(robot, limits=[*limits[:2], wall, *limits[2:]])
    home, q = (tasks[0].targets.copy(), tasks[1].target.copy()), robot.q()
    for k in range(100):
        sweep(tasks, home, 3 * k, 0.3)
        a, b = one.step(q, tasks, DT), two.step(q, tasks, DT)
        assert np.array_equal(a.v, b.v) and a.report.rows == b.report.rows
        q, count, held = a.q, count + a.report.rows, held + (np.abs(a.v[6:]).max() > wall.speed - 1e-9)
    assert count > 30 and held > 30


def test_a_limit_with_rows_that_comes_late_is_refused():
    robot = load_robot("hrp2", "fixed")
    solver = WholeBodyIk(robot, limits=default_limits(robot, False))
    solver.limits.append(Wall(robot))
    with pytest.raises(ConfigError, match="limits with 1 rows in a solver created for 0"):
        solver.step(robot.q(), [PostureTask(robot)], DT)


def test_a_foreign_task_alone_is_solved():
    robot = load_robot("hrp2", "fixed")
    posture = robot.postures["neutral"].copy()
    posture[robot.joint_index("l_elbow_flexion")] += 0.5
    solver, q, task = WholeBodyIk(robot), robot.q(posture), HandsLevel(robot)
    for _ in range(800):
        q = solver.step(q, [task], DT).q
    left, right = robot.point_positions(q, ["l_wrist", "r_wrist"])
    assert abs(left[2] - right[2]) < 1e-3


def test_a_foreign_task_that_is_not_a_number_brakes_and_is_forgotten():
    class Broken(HandsLevel):
        good = True

        def rows(self, robot, data, q):
            J, v = super().rows(robot, data, q)
            return J, v if self.good else np.full(len(v), np.nan)

    robot = load_robot("hrp2", "fixed")
    task, solver, q = Broken(robot), WholeBodyIk(robot), robot.q()
    for k in range(30):
        task.good = not 10 <= k < 20
        result = solver.step(q, [task, PostureTask(robot, weight=0.01)], DT)
        assert np.isfinite(result.v).all() and np.isfinite(result.q).all()
        assert (result.status is IkStatus.NO_SOLUTION) == (10 <= k < 20)
        q = result.q


def test_pairs_that_are_looked_at_again_change_rows_only():
    """Limits with a memory, as that of idle joints, must not take a tick for two."""

    class Once(Limit):
        ticks = near = 0

        def max_rows(self, robot):
            return 1

        def tighten(self, state, lower, upper):
            self.ticks += 1
            self.near = len(solver.self_collision.near)

        def rows(self, state, A, b, slack_weight):
            A[0, -1], b[0] = 1.0, -100.0
            return 1

    robot, once, again = load_robot("lola", "floating"), Once(), 0
    solver = WholeBodyIk(robot)  # for the tick of the constructor
    solver = WholeBodyIk(robot, IkSettings(smoothing=0.02), [*default_limits(robot), once])
    tasks, found = all_tasks(robot), solver.self_collision.monitor.arrays.found.pair
    home, q, once.ticks = (tasks[0].targets.copy(), tasks[1].target.copy()), robot.q(), 0
    for k in range(300):
        sweep(tasks, home, 3 * k, 0.2)
        found[:] = -1
        result = solver.step(q, tasks, DT)
        seen, count = found.copy(), np.count_nonzero(found >= 0)
        again += count > once.near
        assert set(result.near.pair) <= set(seen[:count]), "the report has pairs of both looks"
        q = result.q
    assert again > 0, "no pair was found at the second look, or this shows nothing"
    assert once.ticks == 300


class Wall(Limit):
    """The sternum stays behind a plane close before it, and no joint is faster than some speed."""

    def __init__(self, robot, speed=0.6):
        self.frame, self.speed = robot.point_frame("sternum"), speed
        self.wall = robot.point_positions(robot.q(), ["sternum"])[0][0] + 0.005

    def max_rows(self, robot):
        return 1

    def tighten(self, state, lower, upper):
        clamp_bounds(lower[state.robot.iv :], upper[state.robot.iv :], -self.speed, self.speed)

    def row(self, robot, data):
        J = pin.getFrameJacobian(robot.model, data, self.frame, pin.LOCAL_WORLD_ALIGNED)[0]
        return -J, -8.0 * (self.wall - data.oMf[self.frame].translation[0])

    def rows(self, state, A, b, slack_weight):
        A[0], b[0] = self.row(state.robot, state.data)
        return 1


@pytest.mark.parametrize(
    ("name", "base", "kind"),
    [
        ("hrp2", "floating", "free"),
        ("hrp2", "floating", "custom"),
        ("hrp2", "fixed", "collision"),
        ("lola", "floating", "collision"),
        nightly("wabian2", "fixed", "collision"),  # mimicking joints
    ],
)
def test_a_tick_is_the_optimum_of_the_program_that_it_claims_to_solve(name, base, kind):
    """Rows of pinocchio, all pairs measured anew, limits by their formulas, daqp with the slack written out."""
    robot = load_robot(name, base)
    s = IkSettings(recovery_timeout=0.1) if kind == "collision" else IkSettings()
    wall = [Wall(robot)] * (kind == "custom")
    limits = default_limits(robot)
    solver, tasks = WholeBodyIk(robot, s, [*limits[:2], *wall, *limits[2:]]), all_tasks(robot)
    home, q, data = (tasks[0].targets.copy(), tasks[1].target.copy()), robot.q(), robot.model.createData()
    monitor, at_rest, rng = robot.collision_monitor("shapes"), robot.largest_margins(), np.random.default_rng(3)
    own = robot.accelerations_within(s.acceleration, s.acceleration_scale)
    compared, with_rows, stages = 0, 0, set()
    stuck = [PostureTask(robot, weight=100.0), PointTask(robot, "l_wrist", weight=3.0)]
    for k in range(300):
        sweep(tasks, home, k, 0.4)
        if kind == "collision" and k % 100 == 0:  # a posture that is to be kept
            q = colliding(robot, rng)
            for task in stuck:
                task.set_target_from(q)
            solver.reset()
        asked = stuck if kind == "collision" else tasks
        before = solver.v.copy()
        result = solver.step(q, asked, DT)
        assert solver.self_collision.recovery.stage < 2 or result.report.speed_scale == 1.0, "pairs are let through"
        if k % 3 == 0 and result.status in (IkStatus.OPTIMAL, IkStatus.HOMING) and result.report.speed_scale == 1.0:
            prepare(robot, data, q)
            near, stage = monitor.update(q, 1.0), solver.self_collision.recovery.stage
            inside = near.distance.min() < 0.0
            A, b = task_rows(robot, s, q, data, homing(robot, s, q) if stage else asked)
            H = A.T @ A + (s.damping**2 + s.smoothing**2) * np.eye(robot.nv)
            g = -A.T @ b - s.smoothing**2 * before
            slowest = min([s.recovery_joint_speed] * bool(inside) + [0.6] * len(wall), default=np.inf)
            low, high = bounds(robot, s, q, before, own, slowest)
            G, h = pair_rows(solver, near, at_rest, data.J, own, (low, high), stage)
            for each in wall:
                row, least = each.row(robot, data)
                G, h = np.vstack([row, G]), np.append(least, h)
            v = optimum(solver.dofs, H, g, low, high, G, h, 2 * s.slack_weight)
            assert np.abs(v - result.v).max() < 2e-4 * (1 + np.abs(v).max())
            compared += 1
            with_rows += len(h) > 0
            stages |= {stage} if inside else set()
        q = result.q
    assert compared > 30 and with_rows > 20
    assert kind != "collision" or {0, 1, 2} <= stages, "recovery in stages"


def task_rows(robot, s, q, data, tasks):
    A, b = [], []
    for task in tasks:
        J, v = task.rows(robot, data, q)
        v = v - max(task.gain - s.max_gain / DT, 0.0) * task.error(robot, data, q)
        A.append(task.weight * J)
        b.append(task.weight * v)
    return np.vstack(A), np.concatenate(b)


def homing(robot, s, q):
    """The neutral posture: the farthest joint moves there at `joint_recovery_speed`."""
    farthest = np.abs(robot.postures["neutral"] - q[robot.iq :]).max()
    return [PostureTask(robot, weight=1.0, gain=s.joint_recovery_speed / max(farthest, 0.1))]


def bounds(robot, s, q, before, own, slowest):
    """Speed, range with room to brake, acceleration: each clipped to what is left, written out."""
    iv, high = robot.iv, np.concatenate([np.full(robot.iv, s.base_velocity), np.minimum(robot.velocity, slowest)])
    low, joints, v, a, b = -high, q[robot.iq :], before[robot.iv :], DT * own.acceleration, own.braking
    room = np.maximum([joints - robot.lower, robot.upper - joints], 0.0)
    ease = np.minimum(s.range_ease, 0.05 * (robot.upper - robot.lower))
    late = np.sqrt((b * DT) ** 2 + 2 * b * np.maximum(room - ease / 2, 0.0)) - b * DT
    stop = np.where(room < ease, room / (np.sqrt(ease / b) + DT), late)
    down, up = np.maximum(low[iv:], -room[0] / DT), np.minimum(high[iv:], room[1] / DT)
    least, most = np.clip(v - a, down, up), np.clip(v + a, down, up)
    down, up = np.clip(np.maximum(down, -stop[0]), least, most), np.clip(np.minimum(up, stop[1]), least, most)
    low[iv:], high[iv:] = np.clip(down, v - a, v + a), np.clip(up, v - a, v + a)
    return low, high


def pair_rows(solver, near, at_rest, J, own, limits, stage):
    """Barrier of each pair, scaled where shapes are inside each other; homing lets pairs through."""
    robot, s, dofs = solver.robot, solver.settings, solver.dofs
    links = [robot.model.getFrameId(shape.link, pin.FrameType.BODY) for shape in robot.shapes]
    joint = [robot.model.frames[link].parentJoint for link in links]
    G, h, ends = [], [], [{joint[i], joint[j]} for i, j in robot.pairs[near.pair]]
    deep = set().union(*(e for e, d in zip(ends, near.distance, strict=True) if d < 0.0))
    a = np.concatenate([np.full(robot.iv, s.acceleration), own.acceleration])
    for k, d, row, links in zip(near.pair, near.distance, near.gradient(J), ends, strict=True):
        if stage == 3 or (stage and d < 0.0) or (stage == 2 and links <= deep):
            continue
        x = d - min(s.margin, at_rest[k])
        braking = 0.5 * np.abs(dofs.reduce(row)) @ dofs.reduce_limits(a)
        knee = braking / s.barrier_gain**2
        close = s.barrier_gain * x if x <= knee else np.sqrt(2 * braking * (x - knee / 2))
        bound = -close if x > 0 else min(-s.barrier_gain * x, s.pair_recovery_speed)
        if np.minimum(row * limits[0], row * limits[1]).sum() < bound:
            G.append(row * (0.1 if d < 0.0 else 1.0))
            h.append(bound * (0.1 if d < 0.0 else 1.0))
    return np.array(G).reshape(-1, robot.nv), np.array(h)


def optimum(dofs, H, g, low, high, G, h, rho):
    """Solve for the free velocities: a follower bounds its leader."""
    S = np.array([dofs.expand(u) for u in np.eye(dofs.k)]).T
    ends = np.stack([low / dofs.factor, high / dofs.factor])
    H, g, G = S.T @ H @ S, S.T @ g, G @ S
    low, high = (
        np.array([f(ends[:, dofs.column_of == c]) for c in range(dofs.k)])
        for f in (lambda x: x.min(axis=0).max(), lambda x: x.max(axis=0).min())
    )
    n, k = len(g), len(h)
    big = np.zeros((n + k, n + k))
    big[:n, :n], big[n:, n:] = H, rho * np.eye(k)
    free = np.full(k, 1e30)
    rows = np.ascontiguousarray(np.hstack([G, np.eye(k)]))
    upper, lower = np.concatenate([high, free, free]), np.concatenate([low, -free, h])
    x, _, flag, _ = daqp.solve(big, np.concatenate([g, np.zeros(k)]), rows, upper, lower, np.zeros(n + 2 * k, np.int32))
    assert flag > 0
    return S @ x[:n]


def test_what_a_task_is_told_counts_at_once_also_in_a_copy_of_the_solver():
    robot = load_robot("lola", "floating")
    solver, hand, q = WholeBodyIk(robot), PointTask(robot, "l_wrist"), robot.q()
    hand.set_target_from(q)
    still = solver.step(q, [hand], DT).v.copy()
    assert np.abs(still).max() < 1e-9
    hand.target[0] += 0.05
    solver.reset()
    moved = solver.step(q, [hand], DT).v.copy()
    assert np.abs(moved).max() > 1e-3
    other, theirs = copy.deepcopy((solver, hand), {id(robot): robot})
    other.reset()
    assert np.allclose(other.step(q, [theirs], DT).v, moved)
    theirs.target[0] -= 0.05
    other.reset()
    assert np.abs(other.step(q, [theirs], DT).v).max() < 1e-9
    solver.reset()
    assert np.allclose(solver.step(q, [hand], DT).v, moved)


def test_a_report_that_is_looked_at_late_is_that_of_its_tick():
    robot = load_robot("hrp2", "fixed")
    solver, tasks, q = WholeBodyIk(robot), all_tasks(robot), robot.q()
    first = solver.step(q, tasks, DT)
    now = WholeBodyIk(robot).step(q, tasks, DT).near.distance.copy()
    for k in range(50):
        sweep(tasks, (tasks[0].targets.copy(), tasks[1].target.copy()), k, 0.1)
        q = solver.step(q, tasks, DT).q
    assert np.array_equal(first.near.distance, now)
    q, v, report = first
    assert report is first.report and len(first) == 3 and first[1] is v


@pytest.mark.parametrize("name", ["lola", "wabian2"])
@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_twists_and_centroidal_map_are_those_of_pinocchio(name, base):
    robot, rng = load_robot(name, base), np.random.default_rng(0)
    poses, links, J = JointPoses(robot.model), LinkInertias.of(robot.model), np.empty((6, robot.nv))
    for far in (0.0, 1000.0):
        q = pin.integrate(robot.model, robot.q(), rng.normal(size=robot.nv))
        q[: min(3, robot.iq)] += far
        poses.update(q)
        fill_twists(poses.tree, poses.world, J)
        fill_centroidal_map(poses.tree, poses.world, links)
        assert np.allclose(J, pin.computeJointJacobians(robot.model, robot.data, q), atol=1e-12 * (1 + far))
        assert np.allclose(links.momentum, pin.computeCentroidalMap(robot.model, robot.data, q), atol=1e-9 * (1 + far))


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 0.99e-4, 1e-3, 0.3, 3.0, 6.0])
def test_a_base_moves_as_pinocchio_moves_it(size):
    robot, rng = load_robot("lola", "floating"), np.random.default_rng(1)
    for _ in range(20):
        q = pin.integrate(robot.model, robot.q(), rng.normal(size=robot.nv))
        v, out = rng.normal(size=robot.nv), np.empty(7)
        v[3:6] *= size / np.linalg.norm(v[3:6])
        integrate_base(q, v, 1.0, out)
        there = pin.integrate(robot.model, q, v)[:7]
        assert np.allclose(out[:3], there[:3], atol=1e-12)
        assert min(np.abs(out[3:] - there[3:]).max(), np.abs(out[3:] + there[3:]).max()) < 1e-12


def test_a_target_that_is_no_number_is_noticed_also_when_every_joint_is_at_a_bound():
    """What held the last solution is tried first: a guess must not hide that there is none."""
    robot = load_robot("hrp2", "fixed")
    solver, hand, posture, q = WholeBodyIk(robot), PointTask(robot, "l_wrist"), PostureTask(robot, gain=50.0), robot.q()
    hand.set_target_from(q)
    posture.posture = robot.upper
    for _ in range(5):
        q = solver.step(q, [hand, posture], DT).q
    assert np.count_nonzero(solver._memory.record.guess.side) > robot.n // 2
    hand.target[1] = np.nan
    result = solver.step(q, [hand, posture], DT)
    assert not result.ok and result.status is IkStatus.NO_SOLUTION and np.isfinite(result.q).all()
    hand.set_target_from(q)
    assert solver.step(q, [hand, posture], DT).ok
