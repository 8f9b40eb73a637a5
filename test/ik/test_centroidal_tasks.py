"""Momentum as a task of the solver: the momentum asked for is the momentum had, and the hands stay where they are."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.ik import FrameTask, IkSettings, PostureTask, WholeBodyIk
from humanoid_control.ik.tasks.centroidal import AngularMomentumTask, LinearMomentumTask
from humanoid_control.kinematics.centroidal import centroidal_momentum_map, inertia_about_center
from humanoid_control.robots import load_robot
from humanoid_control.walking import MomentumReference

DT = 0.004


@pytest.fixture(scope="module")
def robot():
    return load_robot("lola", "floating")


def standing(robot, weight=30.0):
    """Both soles held, and the chest upright."""
    pin.framesForwardKinematics(robot.model, robot.data, robot.q("neutral"))
    tasks = []
    for point in ("l_foot_tcp", "r_foot_tcp"):
        task = FrameTask(robot, robot.points[point], weight=weight, gain=40.0, orientation_weight=1.0, name=point)
        task.X_target = pin.SE3(robot.data.oMf[robot.points[point]])
        tasks.append(task)
    return tasks


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("kind", [AngularMomentumTask, LinearMomentumTask])
def test_rows_are_the_momentum_along_the_chosen_axes(kind, base):
    robot = load_robot("hrp2", base)
    rng = np.random.default_rng(1)
    q = robot.q(rng.uniform(np.maximum(robot.lower, -1), np.minimum(robot.upper, 1)))
    v = rng.normal(size=robot.nv)
    m = centroidal_momentum_map(robot.model, robot.data, q)
    whole = (m.angular if kind is AngularMomentumTask else m.linear) @ v
    for axes in ((True, True, True), (False, False, True), (True, False, True)):
        task = kind((1.0, 2.0, 3.0), axes, 2.0)
        J, wanted = task.rows(robot, robot.data, q)
        assert np.allclose(J @ v, whole[list(axes)]) and np.allclose(wanted, np.array([1.0, 2.0, 3.0])[list(axes)])


@pytest.mark.parametrize("kind", [AngularMomentumTask, LinearMomentumTask])
def test_drift_is_the_rate_of_the_momentum_while_the_joints_do_not_accelerate(kind):
    robot, h = load_robot("hrp2", "floating"), 1e-5
    rng = np.random.default_rng(4)
    q, v, task = robot.q(), rng.normal(size=robot.nv), kind(axes=(True, False, True))

    def momentum(s):
        return task.rows(robot, robot.data, pin.integrate(robot.model, q, s * v))[0] @ v

    assert np.allclose(task.drift(robot, robot.data, q, v), (momentum(h) - momentum(-h)) / (2 * h), atol=1e-5)


def test_a_standing_robot_has_the_momentum_of_a_curve_with_its_arms(robot):
    """The reference of a small turn is tracked within 2 %, and the soles do not move."""
    solver = WholeBodyIk(robot, IkSettings(damping=0.003, smoothing=0.003))
    inertia = inertia_about_center(robot.model, robot.data, robot.q("neutral"))[2, 2]
    reference = MomentumReference(inertia)
    reference.begin_step(0.0, 0.6, np.radians(8))
    task, soles, q = AngularMomentumTask(weight=3.0), standing(robot), robot.q("neutral")
    chest = FrameTask(robot, robot.points["sternum"], weight=30.0, gain=40.0, orientation_weight=1.0, name="chest")
    pin.framesForwardKinematics(robot.model, robot.data, q)
    chest.X_target = pin.SE3(robot.data.oMf[robot.points["sternum"]])
    start = robot.point_positions(q, ["l_foot_tcp", "r_foot_tcp"])
    rest = PostureTask(robot, weight=0.003)
    for k in range(150):
        task.reference = [0.0, 0.0, reference.value(k * DT)]
        result = solver.step(q, [*soles, chest, task, rest], DT)
        L = centroidal_momentum_map(robot.model, robot.data, q).angular[2] @ result.v
        assert result.ok and abs(L - task.reference[2]) < 0.02 * reference.inertia * np.radians(8) / 0.6
        q = result.q
    assert reference.value(0.6) > 0.15
    assert np.abs(robot.point_positions(q, ["l_foot_tcp", "r_foot_tcp"]) - start).max() < 1e-4


def test_linear_momentum_takes_the_center_of_mass_to_a_place(robot):
    """With M k (c_ref - c) as its reference, and the soles held."""
    solver, q = WholeBodyIk(robot), robot.q("neutral")
    goal = centroidal_momentum_map(robot.model, robot.data, q).center + [0.02, -0.03, -0.04]
    task = LinearMomentumTask(weight=10.0 / robot.mass)
    start, held, posture = robot.point_positions(q, ["l_foot_tcp", "r_foot_tcp"]), standing(robot), PostureTask(robot)
    for _ in range(250):
        task.reference = robot.mass * 8.0 * (goal - centroidal_momentum_map(robot.model, robot.data, q).center)
        q = solver.step(q, [*held, task, posture], DT).q
    assert np.abs(centroidal_momentum_map(robot.model, robot.data, q).center - goal).max() < 1e-3
    assert np.abs(robot.point_positions(q, ["l_foot_tcp", "r_foot_tcp"]) - start).max() < 1e-3


@pytest.mark.parametrize("bad", [(0, 0), (0, 0, np.nan), 1.0])
def test_a_reference_that_is_not_three_numbers_is_refused(bad):
    with pytest.raises(ConfigError, match="three finite numbers"):
        AngularMomentumTask().reference = bad


def test_axes_must_be_three():
    with pytest.raises(ConfigError, match="three truth values"):
        LinearMomentumTask(axes=(True, False))
