"""Avoidance in the null space: gradient by finite differences, sign, the laws in motion, and what tasks leave of it."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.ik import DofSelection, FramePoint, PlaneTask, PointTask
from humanoid_control.ik.null_space import (
    Objective,
    ResolvedRate,
    SelfCollisionCost,
    SolverSettings,
    activation_distances,
)
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import CATALOGUE, load_robot
from test.robots_under_test import by_kind

LIGHT = -0.025  # [m] penetration up to which a swept sphere's core stays outside, so that the distance is smooth


def lightly_touching(robot, cost, rng, count):
    """Random configurations in which no pair is deep inside another and some are near."""
    found = []
    while len(found) < count:
        q = robot.q(rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5)))
        near = cost.pairs.update(q, 0.02)
        if len(near) and near.distance.min() > LIGHT:
            found.append((q, near))
    return found


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_gradient_is_the_finite_difference_outside_at_contact_and_inside(name):
    """T-10, to 1e-6 of the potential's scale."""
    robot, rng, h = load_robot(name, "floating"), np.random.default_rng(4), 1e-6
    cost, data = SelfCollisionCost(robot, 0.06, 2.0), robot.model.createData()
    inside = outside = wrong = 0
    for q, near in lightly_touching(robot, cost, rng, 40):
        inside, outside = inside + int((near.distance < 0).sum()), outside + int((near.distance > 0).sum())
        dv = rng.normal(size=robot.nv)
        dv /= np.linalg.norm(dv)
        prepare(robot, data, q)
        slope = cost.gradient(robot, data, q) @ dv
        H = [cost.cost(robot, data, pin.integrate(robot.model, q, s * h * dv)) for s in (1, -1)]
        wrong += abs(slope - (H[0] - H[1]) / (2 * h)) > 1e-6
    assert inside > 5 and outside > 5, "both cases must have been seen"
    assert wrong <= 1, "where two witness points are equally near the distance has a kink; seldom is one hit"


def test_gradient_is_exact_at_contact():
    """A pair driven to a distance of zero to the last digits, then the finite difference."""
    robot, h = load_robot("hrp2", "fixed"), 1e-6
    cost, data = SelfCollisionCost(robot, 0.06, 2.0), robot.model.createData()
    j = robot.joint_index("l_shoulder_abduction")
    low, high = -0.5, 0.2
    for _ in range(60):
        q = robot.q(robot.from_mapping({"l_shoulder_abduction": 0.5 * (low + high)}))
        touching = cost.pairs.update(q, 0.5).distance.min() < 0
        low, high = (0.5 * (low + high), high) if touching else (low, 0.5 * (low + high))
    assert abs(cost.pairs.update(q, 0.5).distance.min()) < 1e-12
    prepare(robot, data, q)
    g = cost.gradient(robot, data, q)
    assert abs(g[j]) > 0.1
    for k in range(robot.nv):
        dv = np.eye(robot.nv)[k]
        H = [cost.cost(robot, data, pin.integrate(robot.model, q, s * h * dv)) for s in (1, -1)]
        assert g[k] == pytest.approx((H[0] - H[1]) / (2 * h), abs=1e-6)


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_standing_at_rest_no_pair_is_pushed(name):
    robot = load_robot(name, "floating")
    cost, data, q = SelfCollisionCost(robot), robot.model.createData(), robot.q("neutral")
    prepare(robot, data, q)
    assert np.all(cost.gradient(robot, data, q) == 0) and cost.cost(robot, data, q) == 0
    assert (activation_distances(robot) >= 0.01).all() and (activation_distances(robot) <= 0.05).all()


class Reversed(Objective):
    """An objective with the sign that Schwienbacher 2014 prints."""

    def __init__(self, inner):
        self.inner = inner

    def cost(self, robot, data, q):
        return -self.inner.cost(robot, data, q)

    def gradient(self, robot, data, q):
        return -self.inner.gradient(robot, data, q)


ARM = ("l_elbow_flexion", "l_shoulder_abduction", "l_shoulder_rotation", "l_shoulder_flexion")
# Robot, start of the arm [rad], way of the hand [m]: without avoidance the arm goes through the body.
ROOM = [
    ("wabian2", (1.2, 0.21, -0.2, 0.33), (-0.178, -0.243, -0.033)),
    ("wabian2", (1.56, 0.12, -0.43, -0.27), (0.083, -0.14, 0.038)),
    ("hrp2", (1.41, 0.33, -0.45, 0.42), (-0.244, -0.224, -0.238)),
    ("hrp2", (1.06, 0.27, -0.01, 0.15), (-0.119, -0.213, 0.237)),
]
INTO_THE_CHEST = ("hrp2", (0.92, 0.17, -0.13, -0.04), (-0.248, -0.234, 0.245))


def led(case, objectives):
    """Lead a hand along its way with the four joints of the arm; smallest clearance, and the hand's last error [m]."""
    name, arm, way = case
    robot = load_robot(name, "fixed")
    q = robot.q(robot.from_mapping(dict(zip(ARM, arm, strict=True))))
    frame, cost = robot.point_frame("l_wrist"), SelfCollisionCost(robot, contact=15.0)
    task = PointTask(robot, FramePoint(robot, frame), gain=20.0, name="hand")
    held = [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow"))]
    solver = ResolvedRate(robot, objectives(cost), dofs=DofSelection(robot, held))
    start, smallest = robot.frame_positions(q, [frame])[0], np.inf
    for k in range(600):
        task.target = start + min(1.0, k / 400) * np.array(way)
        q = solver.step(q, [task], 0.005)[0]
        smallest = min(smallest, cost.pairs.update(q, np.inf).distance.min())
    return smallest, np.linalg.norm(robot.frame_positions(q, [frame])[0] - task.target)


@pytest.mark.parametrize("case", ROOM, ids=lambda c: f"{c[0]} {c[2]}")
def test_pairs_that_tasks_drive_together_are_pushed_apart_and_the_printed_sign_attracts(case):
    """T-11: three runs of the same task, off, corrected, as printed."""
    off, error_off = led(case, lambda cost: [])
    on, error_on = led(case, lambda cost: [cost])
    printed, _ = led(case, lambda cost: [Reversed(cost)])
    assert off < -0.015 and on > 0.003 and printed < off - 0.01
    assert error_off < 1e-4 and error_on < 1e-4, "the null space leaves the task alone"


def test_avoidance_does_not_help_where_the_task_itself_leads_into_the_body():
    """Only what the task leaves free is used: a hand that is told to enter the chest enters it."""
    off, _ = led(INTO_THE_CHEST, lambda cost: [])
    on, error = led(INTO_THE_CHEST, lambda cost: [cost])
    assert off < -0.05 and on < -0.05 and error < 1e-4


def test_without_redundancy_avoidance_changes_nothing():
    robot, rng = load_robot("hrp2", "fixed"), np.random.default_rng(5)
    held = [n for n in robot.joint_names if n not in ARM]
    points = [robot.point_frame("l_wrist"), robot.point_frame("l_elbow")]
    tasks = [PointTask(robot, FramePoint(robot, f), name=str(f)) for f in points]
    tasks[1] = PlaneTask(
        robot, FramePoint(robot, points[1]), (0, 0, 1), (0, 0, 1), name="elbow"
    )  # 3 + 1 rows for 4 joints
    cost = SelfCollisionCost(robot, 0.3, 15.0)
    q = robot.q(robot.from_mapping(dict(zip(ARM, (1.2, 0.3, 0.2, 0.3), strict=True))))
    tasks[0].target = robot.frame_positions(q, points[:1])[0] + 0.02 * rng.normal(size=3)
    v = [ResolvedRate(robot, o, dofs=DofSelection(robot, held)).velocity(q, tasks, 0.01)[0] for o in ([], [cost])]
    assert np.abs(v[0]).max() > 0.01 and np.allclose(v[0], v[1], atol=1e-9)
    free = ResolvedRate(robot, [cost], dofs=DofSelection(robot, held)).velocity(q, tasks[:1], 0.01)[0]
    assert np.abs(free - v[0]).max() > 0.01, "one row less, and it acts"


class Draw(Objective):
    """A steady pull on one joint."""

    def __init__(self, joint, speed):
        self.joint, self.speed = joint, speed

    def cost(self, robot, data, q):
        return self.speed * float(robot.joints(q)[self.joint])

    def gradient(self, robot, data, q):
        out = np.zeros(robot.nv)
        out[robot.iv + self.joint] = self.speed
        return out


def restlessness(blend, steepness, depth):
    """Peak joint acceleration [rad/s^2] of an arm drawn to the chest against the law, after it should have settled.

    Args:
        blend: of the law.
        steepness: alpha_N dt m s_0 / d_a, how much of a distance d_a one step at contact corrects.
        depth: share of the push at contact that the pull needs: 0.05 rests far out (slow), 0.8 near contact (fast).
    """
    robot, dt, a = load_robot("hrp2", "fixed"), 0.005, 0.05
    j = robot.joint_index("l_shoulder_abduction")
    dofs = DofSelection(robot, [n for n in robot.joint_names if n != "l_shoulder_abduction"])
    cost, q = SelfCollisionCost(robot, a, 0.0, blend), robot.q(robot.from_mapping({"l_shoulder_abduction": -0.05}))
    prepare(robot, robot.data, q)
    near = cost.pairs.update(q, 0.1)
    row = [cost.pairs.name(int(p)) for p in near.pair].index(("upper_torso", "l_lower_arm"))
    m = float(near.gradient(robot.data.J)[row, robot.iv + j] ** 2)
    s0 = steepness * a / (dt * m)
    cost.contact[near.pair[row]] = s0  # only this pair pushes
    pull = Draw(j, 0.0)
    solver = ResolvedRate(robot, [cost, pull], SolverSettings(clamp=False), dofs)
    v = []
    for k in range(700):
        pull.speed = min(1.0, k / 500) * depth * s0 * np.sqrt(m)
        q, velocity, _ = solver.step(q, [], dt)
        v.append(velocity[robot.iv + j])
    return np.abs(np.diff(v[-100:])).max() / dt


def test_linear_law_chatters_at_the_kink_and_quadratic_at_speed_where_the_blend_is_calm():
    """T-12: slow contact with a steep law, and fast contact."""
    assert restlessness(1.0, 2.2, 0.05) > 1.0
    assert restlessness(0.5, 2.2, 0.05) < 1e-3 and restlessness(0.0, 2.2, 0.05) < 1e-3
    assert restlessness(0.0, 1.3, 0.8) > 1.0
    assert restlessness(0.5, 1.3, 0.8) < 1e-3


@pytest.mark.parametrize(("share", "calm"), [(0.9, True), (1.8, True), (2.3, False)])
def test_a_pair_of_a_robot_is_stable_up_to_twice_the_rule(share, calm):
    """The rule of section 3.4 on a robot: near contact, where the law is steepest."""
    assert (restlessness(0.5, share * 1.5 / 2, 0.8) < 1e-3) == calm


def test_contact_gradients_from_the_rule_keep_all_pairs_together_stable():
    robot, dt = load_robot("wabian2", "fixed"), 0.004
    cost, data, rng = SelfCollisionCost(robot), robot.model.createData(), np.random.default_rng(6)
    cost.limit_contact(robot, dt, share=0.2)
    assert (cost.contact > 0).all()
    worst = 0.0
    for _ in range(200):
        q = robot.q(rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5)))
        prepare(robot, data, q)
        worst = max(worst, dt * cost.stiffness(data, q))
    assert 0.05 < worst < 2


@pytest.mark.parametrize(
    "arguments", [{"activation": 0.0}, {"contact": -1.0}, {"blend": 1.5}], ids=["activation", "contact", "blend"]
)
def test_a_value_out_of_range_is_refused_in_one_line(arguments):
    with pytest.raises(ConfigError, match="activation > 0, contact >= 0 and a blend from 0 to 1"):
        SelfCollisionCost(load_robot("lola", "fixed"), **arguments)


def test_the_law_is_blended_half_and_half_where_nothing_else_is_asked():
    robot = load_robot("lola", "fixed")
    costs = [SelfCollisionCost(robot, 0.06), SelfCollisionCost(robot, 0.06, blend=0.5)]
    q = robot.q("neutral")
    prepare(robot, robot.data, q)
    default, half = (cost.gradient(robot, robot.data, q) for cost in costs)
    np.testing.assert_array_equal(default, half)
    assert np.abs(half - SelfCollisionCost(robot, 0.06, blend=1.0).gradient(robot, robot.data, q)).max() > 1e-3
