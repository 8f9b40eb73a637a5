"""Continuous joints have no ends: inverse kinematics, simulators, drivers and retargeting stop them nowhere."""

import shutil

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.estimation.plausibility import JointPlausibility
from humanoid_control.evaluation import score_clip
from humanoid_control.evaluation.report import score_page
from humanoid_control.hardware.commands.drive_modes import torque_bounds
from humanoid_control.hardware.commands.limiter import CommandLimits, LimiterReference, limit_step
from humanoid_control.hardware.hardware_file import read_hardware_file
from humanoid_control.ik import IkSettings, JointTask, PostureTask, WholeBodyIk
from humanoid_control.ik.null_space.objectives import JointLimitCost
from humanoid_control.ik.position import ConstrainedGoals
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.multibody import FourBar, HarmonicDrive
from humanoid_control.paths import share_dir
from humanoid_control.reaching.goals import GoalSampler
from humanoid_control.retargeting import RetargetSettings, retarget_clip, retarget_whole_body, scale_to_robot
from humanoid_control.robots import load_robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.simulation import SimulationConfig
from test.robots_under_test import nightly
from test.walking_person import walking_person

WHEEL = """<robot name="wheel">
<link name="base"><inertial><mass value="5"/><inertia ixx="0.05" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/>
</inertial></link>
<link name="rim"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
</inertial></link>
<joint name="spin" type="continuous"><parent link="base"/><child link="rim"/><origin xyz="0 0.2 0"/><axis xyz="0 1 0"/>
<limit velocity="60" effort="10"/></joint></robot>"""
PASSED = 1200.0  # [rad] more than 1000, where the wheel stopped once
FREED = ("l_elbow_flexion", "r_hip_rotation")


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "wheel.urdf"
    path.write_text(WHEEL)
    return path


@pytest.fixture(scope="module")
def freed(tmp_path_factory):
    """HRP-2, one elbow and one hip of which turn without end."""
    folder, whole = tmp_path_factory.mktemp("freed"), load_robot("hrp2", "fixed")
    for part in ("hrp2.urdf", "hrp2.yaml"):
        shutil.copy(share_dir() / "urdf" / part, folder)
    text = (folder / "hrp2.urdf").read_text()
    for meaning in FREED:
        name = whole.joint_for(meaning)
        assert name and text.count(f'<joint name="{name}" type="revolute"') == 1
        text = text.replace(f'<joint name="{name}" type="revolute"', f'<joint name="{name}" type="continuous"')
    (folder / "hrp2.urdf").write_text(text)
    return folder / "hrp2.urdf"


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_continuous_joint_has_infinite_ends_and_is_published_as_what_it_is(wheel, base):
    robot = load_robot(wheel, base)
    assert (robot.lower, robot.upper) == (-np.inf, np.inf) and robot.n == 1 and robot.nq == robot.iq + 1
    assert 'type="continuous"' in robot.urdf and "lower" not in robot.urdf and "inf" not in robot.urdf
    assert pin.buildModelFromXML(robot.urdf).nq == 2, "for others too it turns without end"
    again = parse_urdf(robot.urdf, "published").model()
    assert again.nq == 1 and again.upperPositionLimit[0] == np.inf


@pytest.mark.parametrize(
    ("limit", "ends"),
    [
        ('lower="-inf" upper="inf"', (-np.inf, np.inf)),
        ('lower="0" upper="inf"', (0.0, np.inf)),
        ('lower="-1e300" upper="2"', (-np.inf, 2.0)),
        ('lower="-5000" upper="5000"', (-5000.0, 5000.0)),
    ],
)
def test_each_end_that_is_infinite_is_none_and_each_that_is_not_is_kept(limit, ends):
    text = WHEEL.replace("continuous", "revolute").replace("<limit ", f"<limit {limit} ")
    tree = parse_urdf(text, "wheel")
    for found in (tree, parse_urdf(tree.text(), "published")):
        assert (*found.model().lowerPositionLimit, *found.model().upperPositionLimit) == ends


@pytest.mark.parametrize("multiplier", [1.0, -0.5, 0.0])
@pytest.mark.parametrize("leads", [True, False])
def test_followers_of_and_beside_continuous_joints(multiplier, leads):
    """A follower without ends leaves its leader alone; one with ends narrows a leader without them."""
    kinds = ("continuous", "revolute") if leads else ("revolute", "continuous")
    text = WHEEL.replace("</robot>", "") + (
        '<link name="hub"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
        f'<joint name="hub" type="{kinds[1]}"><parent link="rim"/><child link="hub"/><axis xyz="0 1 0"/>'
        f'<limit lower="-1" upper="2" velocity="5" effort="1"/><mimic joint="spin" multiplier="{multiplier}"/></joint>'
        "</robot>"
    )
    text = text.replace('name="spin" type="continuous"', f'name="spin" type="{kinds[0]}"')
    text = text.replace('<limit velocity="60"', '<limit lower="-3" upper="3" velocity="60"')
    model = parse_urdf(text, "two").model()
    low, high = model.lowerPositionLimit[0], model.upperPositionLimit[0]
    if not leads:
        assert (low, high) == (-3.0, 3.0)
    elif multiplier == 0.0:
        assert (low, high) == (-np.inf, np.inf)
    else:
        assert sorted((multiplier * low, multiplier * high)) == [-1.0, 2.0]


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("acceleration", [np.inf, 400.0])
def test_inverse_kinematics_passes_a_thousand_radians(wheel, base, acceleration):
    robot, dt = load_robot(wheel, base), 0.004
    solver = WholeBodyIk(robot, IkSettings(acceleration=acceleration))
    task, q, at, end = JointTask(robot, ["spin"]), robot.q(np.array([990.0])), 990.0, 1010.0
    rest = PostureTask(robot)
    while at < end:
        at += 50.0 * dt
        task.target = np.array([at])
        result = solver.step(q, [task, rest], dt)
        assert result.ok, result
        q = result.q
    assert q[robot.iq] == pytest.approx(end, abs=5.0)


def test_a_posture_far_round_is_found(wheel):
    robot = load_robot(wheel)
    task = JointTask(robot, ["spin"])
    task.target = np.array([PASSED])
    found = ConstrainedGoals(robot).solve(robot.q(), [task])
    assert found.q[0] == pytest.approx(PASSED)


@pytest.mark.parametrize("engine", ["multibody", "mujoco"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_simulated_wheel_passes_a_thousand_radians(wheel, engine, sign):
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    world = SimulationConfig(robot=str(wheel), base="fixed", engine=engine).build()
    world.set_state(np.array([sign * 990.0]), np.array([sign * 50.0]))
    for k in range(500):
        at = sign * np.array([990.0 + 50.0 * 0.001 * k])
        world.command(at, np.array([sign * 50.0]))
        world.step()
    assert not world.diverged and sign * world.joints[0] > 1010.0
    assert sign * world.joint_velocity[0] == pytest.approx(50.0, rel=0.02)


def test_a_command_far_round_is_the_reference_of_a_simulated_drive(wheel):
    world = SimulationConfig(robot=str(wheel), base="fixed").build()
    world.set_state(np.array([PASSED]))
    world.command(np.array([PASSED + 1.0]))
    assert world.drives.q_ref[0] == PASSED + 1.0


def test_last_limits_of_a_driver_do_not_stop_it():
    one = np.ones(1)
    limits = CommandLimits(-np.inf * one, np.inf * one, 60.0 * one, 500.0 * one, 10.0 * one)
    ref, dt = LimiterReference(990.0 * one, 50.0 * one, np.zeros(1, dtype=bool)), 0.002
    for k in range(2000):
        limit_step(990.0 + 50.0 * dt * (k + 1) * one, 50.0 * one, ref, limits, dt)
    assert ref.q[0] == pytest.approx(1190.0) and not ref.clipped[0]
    low, high = torque_bounds(PASSED * one, 50.0 * one, limits)
    assert (low[0], high[0]) == (-10.0, 10.0)


def test_the_driver_of_a_wheel_has_no_range_and_takes_a_narrower_one(wheel, tmp_path):
    def file(limits):
        path = tmp_path / "wheel.hardware.yaml"
        path.write_text(
            f"schema: humanoid_hardware/1\nrobot: {wheel}\nbuses: {{sim: {{transport: loopback}}}}\n"
            f"joints: {{spin: {{bus: sim, id: 1{limits}}}}}\n"
        )
        return path

    driven = read_hardware_file(file(""))
    assert (driven.column("lower")[0], driven.column("upper")[0]) == (-np.inf, np.inf)
    driven = read_hardware_file(file(", limits: {lower: -4000, upper: 4000}"))
    assert (driven.column("lower")[0], driven.column("upper")[0]) == (-4000.0, 4000.0)


def test_samples_of_a_wheel_are_believed_after_thousands_of_turns():
    judge = JointPlausibility(("spin",), np.array([-np.inf]), np.array([np.inf]), np.array([60.0]))
    for k, q in enumerate(np.arange(99_990.0, 100_050.0, 0.2)):
        assert judge.check(np.array([0]), np.array([q]), 0.004 * k).all(), judge.problem(0.004 * k)
    assert not judge.check(np.array([0]), np.array([1e12]), 2.0).any()
    bounded = JointPlausibility(("reel",), np.array([-7.0]), np.array([7.0]), np.array([60.0]))
    assert bounded.check(np.array([0]), np.array([6.2]), 0.0).all()
    assert not bounded.check(np.array([0]), np.array([0.0]), 0.004).any(), "a joint with ends has not wrapped"


def test_no_cost_draws_an_endless_joint_anywhere(wheel):
    robot, cost = load_robot(wheel), JointLimitCost()
    assert cost.gradient(robot, robot.data, robot.q(np.array([PASSED])))[0] == 0.0


@pytest.mark.parametrize("drive", ["harmonic", "four_bar"])
def test_a_drive_of_an_endless_joint(drive):
    from humanoid_control.multibody.mechanisms import FourBarGeometry

    ends = ("wheel", -np.inf, np.inf)
    parallelogram = FourBarGeometry(0.1, 0.35, 0.1, 0.35, 0.3)
    made = HarmonicDrive(*ends, 50.0, 0.1) if drive == "harmonic" else FourBar(*ends, parallelogram)
    if drive == "harmonic":
        made.check()
        assert made.joint(made.motor(np.array([PASSED])), np.array([PASSED - 0.1]))[0] == pytest.approx(PASSED)
        assert made.joint(made.motor(np.array([PASSED])))[0] == pytest.approx(PASSED)
    else:
        assert np.isfinite(made.turn).all()


@pytest.mark.parametrize("method", ["constrained", nightly("pinv"), "weighted_dls"])
def test_a_clip_on_a_robot_whose_elbow_turns_without_end(freed, method):
    """By optimisation it comes nearer than the robot whose elbow has ends; the others stay near it."""
    body, errors = find_body_points(load_clip("dance").crop(6, 12)), []
    for path in ("hrp2", freed):
        robot = load_robot(path, "fixed")
        t = retarget_clip(scale_to_robot(body, robot), robot, RetargetSettings(method=method))
        assert np.isfinite(t.positions).all() and (np.abs(t.velocities) <= robot.velocity * (1 + 1e-9)).all()
        errors.append(np.sqrt(np.mean(t.errors**2)))
    assert errors[1] < (1.0 if method == "constrained" else 1.3) * errors[0]


@pytest.mark.parametrize("method", ["live", "clip"])
def test_a_whole_body_one_leg_of_which_turns_without_end(freed, method):
    body, slips = walking_person()[0], []
    for path in ("hrp2", freed):
        t = retarget_whole_body(body, load_robot(path, "floating"), method=method)
        assert np.isfinite(t.positions).all() and np.abs(t.positions).max() < np.pi
        slips.append(np.nanmax(t.errors))
    assert slips[1] < slips[0] + 0.01


def test_goals_for_hands_of_such_a_robot(freed):
    robot = load_robot(freed, "fixed")
    goal = GoalSampler(robot).sample("reachable", np.random.default_rng(0))
    assert np.isfinite(goal.points).all() and np.abs(goal.posture).max() <= np.pi


@pytest.mark.nightly
def test_tables_and_plots_of_such_a_robot(freed):
    page = score_page([score_clip(find_body_points(load_clip("dance")), load_robot(freed, "fixed"))])
    assert "no end" in page and ">inf<" not in page
