"""d distance / d v against finite differences through pinocchio: outside, at contact and inside."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.ssv.model import PoseArray
from humanoid_control.collision.ssv.segments import Volume
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.robots.volumes import build_volumes, segment_pairs, volumes_of
from test.robots_under_test import by_kind

EPSILON = 1e-6


def inflated(robot, model, by):
    """The same volumes with all radii larger by a length: the distance of every pair is smaller by twice that."""

    def grow(v: Volume) -> Volume:
        return replace(v, radius=v.radius + by)

    segments = [replace(s, volumes=tuple(grow(v) for v in s.volumes)) for s in model.segments]
    return build_volumes(robot, segments, model.pairs)


def directional(robot, calculator, poses, data, q, dv):
    out = []
    for e in (EPSILON, -EPSILON):
        pin.forwardKinematics(robot.model, data, pin.integrate(robot.model, q, e * dv))
        calculator.place(poses.rows())
        out.append(calculator.nearest().distance)
    return out


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_gradient_is_the_finite_difference(name):
    """To 1e-6 in all coordinates of a floating robot; pairs with two equally near places are ignored."""
    robot, rng = load_robot(name, "floating"), np.random.default_rng(3)
    model, data = volumes_of(robot), robot.model.createData()
    calculator, poses = segment_pairs(robot, model), PoseArray(data)
    outside = inside = kinks = 0
    for _ in range(40):
        X = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
        q, dv = robot.q(rng.uniform(robot.lower, robot.upper), X), rng.normal(size=robot.nv)
        pin.computeJointJacobians(robot.model, data, q)
        calculator.place(poses.rows())
        near = calculator.nearest()
        predicted = near.gradient(data.J) @ dv
        plus, minus = directional(robot, calculator, poses, data, q, dv)
        clear = near.core > 0.005
        smooth = np.abs(plus + minus - 2 * near.distance) < 1e-10
        use = clear & smooth
        assert np.allclose(predicted[use], (plus - minus)[use] / (2 * EPSILON), atol=1e-6)
        outside, inside = outside + (near.distance[use] > 0).sum(), inside + (near.distance[use] < 0).sum()
        kinks += (clear & ~smooth).sum()
    assert outside > 1000 and inside > 10 and kinks < 0.05 * (outside + inside)


@pytest.mark.parametrize("target", [1e-3, 1e-9, 0.0, -1e-9, -1e-3, -0.02])
def test_gradient_holds_at_contact_and_just_inside(target):
    """Each pair is brought to the same small distance by thicker volumes; one normal, no division by d."""
    robot, rng = load_robot("lola", "floating"), np.random.default_rng(4)
    model, data = volumes_of(robot), robot.model.createData()
    poses, checked = PoseArray(data), 0
    for _ in range(3):
        q = robot.q(robot.postures["neutral"] + 0.1 * rng.normal(size=robot.n))
        pin.computeJointJacobians(robot.model, data, q)
        calculator = segment_pairs(robot, model)
        calculator.place(poses.rows())
        d = calculator.nearest().distance
        for k in np.flatnonzero((d > 0.01) & (d < 0.4))[::5]:
            thick = segment_pairs(robot, inflated(robot, model, (d[k] - target) / 2))
            pin.computeJointJacobians(robot.model, data, q)
            thick.place(poses.rows())
            near = thick.nearest()
            assert near.distance[k] == pytest.approx(target, abs=1e-12)
            rows = near.gradient(data.J)
            for _ in range(2):
                dv = rng.normal(size=robot.nv)
                plus, minus = directional(robot, thick, poses, data, q, dv)
                if abs(plus[k] + minus[k] - 2 * near.distance[k]) < 1e-10:
                    assert (plus[k] - minus[k]) / (2 * EPSILON) == pytest.approx(rows[k] @ dv, abs=1e-6)
                    checked += 1
    assert checked > 40


def test_no_pair_depends_on_where_the_robot_stands():
    """Columns of the base are zero, as those of every joint that carries both or none of the segments."""
    robot = load_robot("lola", "floating")
    model, data = volumes_of(robot), robot.model.createData()
    calculator, poses = segment_pairs(robot, model), PoseArray(data)
    pin.computeJointJacobians(robot.model, data, robot.q("neutral", pin.SE3(pin.exp3(np.ones(3)), 50 * np.ones(3))))
    calculator.place(poses.rows())
    near = calculator.nearest()
    rows = near.gradient(data.J)
    assert np.abs(rows[:, :6]).max() == 0.0
    names = [model.names(k) for k in near.pair]
    k = names.index(("l_shank", "r_shank"))
    moved = {robot.joint_names[j] for j in np.flatnonzero(np.abs(rows[k, 6:]) > 1e-12)}
    assert moved and all("hip" in n or "knee" in n for n in moved)


def test_the_same_with_and_without_scratch_and_for_a_few_pairs():
    robot = load_robot("hrp2", "floating")
    model, data = volumes_of(robot), robot.model.createData()
    calculator, poses = segment_pairs(robot, model, 0.1), PoseArray(data)
    pin.computeJointJacobians(robot.model, data, robot.q("neutral"))
    calculator.place(poses.rows())
    near = calculator.nearest()
    rows = near.gradient(data.J)
    assert rows.shape == (len(near), robot.nv)
    assert np.array_equal(rows, near.gradient(np.ascontiguousarray(data.J)))
