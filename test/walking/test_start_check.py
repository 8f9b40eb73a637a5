"""Before the first step: what contradicts a robot at rest on its feet is found and named. Measured in the simulator."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.start_check import ShiftCheck, StartCheck

DT = 0.004


@pytest.fixture(scope="module")
def standing():
    """A robot that has stood for half a second, and what its sensors say."""
    engine = SimulationConfig("hrp2", "floating").build()
    engine.step(500)
    robot = load_robot("hrp2", "floating")
    return robot, Feet(robot), engine.read()


def problem_of(standing, **changes):
    robot, feet, measured = standing
    check = StartCheck(robot, feet)
    for _ in range(200):
        if check.ready(measured._replace(**changes), DT):
            return ""
    return "; ".join(check.problems)


def test_a_robot_that_stands_still_is_ready_after_the_time_and_not_before(standing):
    robot, feet, measured = standing
    check = StartCheck(robot, feet)
    ready = [check.ready(measured, DT) for _ in range(100)]
    due = round(check.limits.steady / DT)
    assert not any(ready[: due - 2]) and all(ready[due + 2 :])


def test_wrenches_that_cannot_be_are_named(standing):
    _, _, measured = standing
    wrenches = dict(measured.foot_wrenches)
    left, right = sorted(wrenches)
    assert "no ground under the feet" in problem_of(standing, foot_wrenches={k: np.zeros(6) for k in wrenches})
    assert "both feet must stand" in problem_of(
        standing, foot_wrenches={left: 2 * wrenches[left], right: 0.1 * wrenches[right]}
    )
    assert "the robot weighs" in problem_of(standing, foot_wrenches={k: 1.2 * w for k, w in wrenches.items()})
    pushed = {k: w + [0, 0, 0, 0, 0.05 * w[2], 0] for k, w in wrenches.items()}
    assert "off the centre of mass" in problem_of(standing, foot_wrenches=pushed)
    uneven = {left: 1.4 * wrenches[left], right: 0.6 * wrenches[right]}
    assert "feet swapped" in problem_of(standing, foot_wrenches=uneven), "nobody stands so in the middle"


def test_an_imu_that_is_mounted_otherwise_and_a_robot_that_moves_are_named(standing):
    robot, _, measured = standing
    x, y, z, w = measured.imu.orientation
    R = pin.Quaternion(w, x, y, z).toRotationMatrix() @ pin.rpy.rpyToMatrix(0.0, np.pi / 2, 0.0)
    o = pin.Quaternion(R)
    turned = measured.imu._replace(orientation=np.array([o.x, o.y, o.z, o.w]))
    assert "against the IMU" in problem_of(standing, imu=turned)
    assert "not at rest" in problem_of(standing, imu=measured.imu._replace(angular_velocity=np.array([0.0, 0.3, 0.0])))
    moving = measured.joints._replace(v=np.full(robot.n, 0.3))
    assert "not at rest" in problem_of(standing, joints=moving)


def test_forces_that_come_and_go_are_waited_for(standing):
    robot, feet, measured = standing
    check = StartCheck(robot, feet)
    for k in range(200):
        wave = 1 + 0.12 * np.sin(0.5 * k)  # within the error of the weight, but not steady
        sway = {n: (wave if n.startswith("l") else 2 - wave) * w for n, w in measured.foot_wrenches.items()}
        assert not check.ready(measured._replace(foot_wrenches=sway), DT)


@pytest.mark.parametrize(("every", "told"), [(1, True), (4, False)], ids=["in time", "late"])
def test_a_turned_shift_is_told_only_where_ticks_came_in_time(standing, every, told):
    """On a machine that is too busy commands are late, and the weight goes where nobody asked for."""
    robot, _, measured = standing
    check, asked, forces = ShiftCheck(robot.mass * 9.81), np.array([0.0, 0.4]), np.full(2, 200.0)
    felt = measured.imu._replace(orientation=np.array([0, 0, 0, 1.0]), linear_acceleration=np.array([0.4, 0.1, 9.81]))
    for k in range(100):
        m = measured._replace(imu=felt, joints=measured.joints._replace(stamp=k * every * DT))
        check.update(m, asked, forces, forces, DT)
    assert ("rotated" in check.problem) == told


@pytest.mark.parametrize("sign", [1, -1])
def test_weight_that_goes_to_the_other_foot_is_told_after_a_while_and_not_for_a_moment(standing, sign):
    robot, _, measured = standing
    weight = robot.mass * 9.81
    wanted, small = weight * np.array([0.5 + 0.2 * sign, 0.5 - 0.2 * sign]), weight * np.array([0.52, 0.48])

    def after(seconds, forces, begun=None):
        check = begun or ShiftCheck(weight)
        for _ in range(round(seconds / DT)):
            check.update(measured, np.zeros(2), forces, wanted, DT)
        return check

    assert "swapped" in after(0.06, wanted[::-1]).problem
    assert not after(0.6, wanted).problem and not after(0.6, small[::sign]).problem
    check = after(0.04, wanted[::-1])
    assert not check.problem
    for _ in range(3):  # again and again for a moment
        check = after(0.04, wanted[::-1], after(DT, wanted, check))
        assert not check.problem


@pytest.mark.parametrize("turn", [-170, -120, -60, 0, 30, 60, 100, 150, 180])
def test_an_imu_that_is_turned_is_told_by_its_angle(standing, turn):
    """The acceleration is felt turned about the vertical, at 4 ms and at 8 ms a tick alike."""
    robot, _, measured = standing
    R = pin.rpy.rpyToMatrix(0.0, 0.0, np.radians(turn))
    for dt in (DT, 2 * DT):
        check, forces = ShiftCheck(robot.mass * 9.81), np.full(2, 200.0)
        for k in range(round(0.8 / dt)):
            asked = np.array([0.1, 0.3 - 0.2 * k * dt])
            felt = R @ [*asked, 9.81]
            imu = measured.imu._replace(orientation=np.array([0, 0, 0, 1.0]), linear_acceleration=felt)
            m = measured._replace(imu=imu, joints=measured.joints._replace(stamp=k * dt))
            check.update(m, asked, forces, forces, dt)
        told = f"shifts {turn} deg away" in check.problem or (abs(turn) == 180 and "180 deg away" in check.problem)
        assert told == (abs(turn) > 45), check.problem


def test_a_shift_in_which_the_imu_feels_less_than_was_asked_for_is_not_judged(standing):
    """A third of it, across: commands were not followed, and no direction can be told from that."""
    robot, _, measured = standing
    for share, told in ((0.3, False), (0.5, True)):
        check, forces = ShiftCheck(robot.mass * 9.81), np.full(2, 200.0)
        imu = measured.imu._replace(orientation=np.array([0, 0, 0, 1.0]))
        for k in range(200):
            felt = imu._replace(linear_acceleration=np.array([share * 0.4, 0.0, 9.81]))
            m = measured._replace(imu=felt, joints=measured.joints._replace(stamp=k * DT))
            check.update(m, np.array([0.0, 0.4]), forces, forces, DT)
        assert bool(check.problem) == told


def test_a_push_during_the_shift_is_not_a_turned_imu(standing):
    """8 N s on 62 kg in 0.1 s, across the shift and against it, then the reaction to it."""
    robot, _, measured = standing
    for push in ((1.3, 0.0), (-1.3, 0.0), (0.0, -1.3), (0.0, 1.3), (0.9, -0.9)):
        check, forces = ShiftCheck(robot.mass * 9.81), np.full(2, 200.0)
        for k in range(220):
            asked = np.array([0.03, 0.32 - 0.0027 * k])
            a = asked + (push if 190 <= k < 215 else (0.0, 0.0))
            felt = measured.imu._replace(orientation=np.array([0, 0, 0, 1.0]), linear_acceleration=np.array([*a, 9.81]))
            m = measured._replace(imu=felt, joints=measured.joints._replace(stamp=k * DT))
            check.update(m, asked, forces, forces, DT)
            assert not check.problem, (push, k)
