"""Models of robots, their meshes, limits and tendons, as other people wrote them."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.hardware.can.cia402 import State, state_of
from humanoid_control.hardware.can.mit import share
from humanoid_control.hardware.dynamixel.frames import decode_samples, write_packet
from humanoid_control.ik import FrameTask, JointTask, OrientationTask, PostureTask, WholeBodyIk
from humanoid_control.robots import load_robot
from humanoid_control.robots.description.meshes import load_mesh
from humanoid_control.simulation import SimulationConfig
from humanoid_control.tendons import read_mjcf

DT = 0.002  # [s]


def fault(name, right):
    return pytest.mark.fault(name, right)


def refusal(function):
    """The message with which a call is refused; empty where it is not."""
    try:
        function()
    except HumanoidError as e:
        return str(e)
    return ""


def bodies(robot, q):
    """Origins of the bodies of a robot by their names."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.q(robot.follow(q)))
    frames = [f for f in robot.model.frames if f.type == pin.FrameType.BODY]
    return {f.name: data.oMf[robot.model.getFrameId(f.name)].translation.copy() for f in frames}


@fault("B07", "limits in degrees are said or refused; the control is silent")
def test_limits_in_degrees(folder, result):
    degrees, radians = (load_robot(str(folder / f"{n}.urdf"), "fixed").notes for n in ("degrees", "radians"))
    said = [str(n) for n in degrees if "degree" in str(n)]
    result(f"{said[:1]}; control: {len([n for n in radians if 'degree' in str(n)])} notes")
    assert said and not any("degree" in str(n) for n in radians)


@fault("B08", "finger at 0.03: right finger at y = -0.02 (a, c), -0.03 with a note (i)")
def test_limits_of_a_follower_bind_nobody(folder, result):
    found = {}
    for name in ("a_follower_limit_zero", "c_follower_good", "i_gripper_same_range_opposite_sign"):
        robot = load_robot(str(folder / f"{name}.urdf"), "fixed")
        q = np.zeros(robot.n)
        q[next(k for k, n in enumerate(robot.joint_names) if n.startswith("finger"))] = 0.03
        found[name[0]] = float(bodies(robot, q)["right_finger"][1]), robot.notes
    result(*[f"{k}: {y:+.4f}, {len(notes)} notes;" for k, (y, notes) in found.items()])
    assert [y for y, _ in found.values()] == pytest.approx([-0.02, -0.02, -0.03], abs=1e-9)
    assert found["i"][1]


@fault("B09", "a cube of 0.2 m in both units; the robot is mapped in both")
def test_the_unit_of_a_collada_file(folder, result, humanoid):
    sizes, codes = [], []
    for name in ("box_metres", "box_centimetres"):
        sizes.append(float(np.ptp(load_mesh(folder / f"{name}.dae").vertices, axis=0).max()))
    codes = [
        humanoid("robots", "map", folder / f"robot_{u}.urdf", "-o", f"{u}.yaml")[0] for u in ("metres", "centimetres")
    ]
    result(f"{sizes[0]:g} m and {sizes[1]:g} m; the command ends with {codes}")
    assert sizes == pytest.approx([0.2, 0.2], abs=1e-6) and codes == [0, 0]


@fault("B11", "equal to MuJoCo's length of the tendon everywhere on the slide")
def test_a_tendon_around_a_drum(folder, result):
    mujoco = pytest.importorskip("mujoco")
    worst = 0.0
    for name in ("on_the_surface", "on_the_surface_side", "pulley"):
        geometry = read_mjcf(folder / f"{name}.xml").geometry()
        model = mujoco.MjModel.from_xml_path(str(folder / f"{name}.xml"))
        data, q = mujoco.MjData(model), np.zeros(len(geometry.joint_names))
        for q[0] in np.linspace(-0.1, 0.1, 401):
            data.qpos[:] = 0.0
            data.qpos[0] = q[0]
            mujoco.mj_forward(model, data)
            worst = max(worst, np.abs(np.asarray(geometry.lengths(q)) + geometry.zero - data.ten_length).max())
    result(f"within {worst:.1e} m of MuJoCo")
    assert worst < 1e-9


@fault("B13", "29 distances derived by hand, normals of length 1")
def test_distances_of_touching_nested_and_flat_shapes(script, result):
    out = script("col.py")
    wrong = [line for line in out.splitlines() if "<-----" in line]
    result(f"{out.count('want')} pairs, {len(wrong)} wrong")
    assert out.count("want") >= 29 and not wrong


@fault("B14", "back into the range at the speed limit; half turns are reached; bad steps and rotations are refused")
def test_starts_outside_half_turns_and_bad_steps(folder, result):
    robot = load_robot("hrp2")
    solver, posture = WholeBodyIk(robot), PostureTask(robot, weight=1.0)
    posture.set_target_from(robot.q())
    row = list(robot.joint_names).index("r_elbow_flexion")
    q = robot.q()
    q[robot.iq + row] = robot.upper[row] + 0.3
    speed = 0.0
    for _ in range(500):
        done = solver.step(q, [posture], DT)
        q, speed = done.q, max(speed, float((np.abs(done.v[robot.iv :]) / robot.velocity).max()))
    left = half_turn_left(robot, solver)
    refused = [bad_step(robot, d) for d in (0.0, -DT, np.nan)]
    refused += [bad_rotation(robot, M) for M in (1.05 * np.eye(3), np.diag([1, 1, -1.0]), np.zeros((3, 3)))]
    result(
        f"speed {speed:.4f} of the limit; {left:.2f} deg of a half turn left; {sum(map(bool, refused))} of 6 refused"
    )
    assert robot.lower[row] <= q[robot.iq + row] <= robot.upper[row] + 1e-9 and speed <= 1.0 + 1e-9
    assert left < 0.5 and all(refused)


def half_turn_left(robot, solver):
    """The greatest angle [deg] that is left of a wrist's half turn, about each axis."""
    left = []
    for axis in np.eye(3):
        solver.reset()
        task, q = OrientationTask(robot, "r_wrist"), robot.q()
        goal = rotation(robot, task.frame, q) @ pin.exp3(np.pi * axis)
        task.set_target(goal)
        for _ in range(2500):
            q = solver.step(q, [task, PostureTask(robot, weight=0.001)], DT).q
        left.append(np.degrees(np.linalg.norm(pin.log3(rotation(robot, task.frame, q).T @ goal))))
    return float(max(left))


def rotation(robot, frame, q):
    pin.framesForwardKinematics(robot.model, robot.data, q)
    return robot.data.oMf[frame].rotation.copy()


def bad_step(robot, dt):
    task = FrameTask(robot, "r_wrist")
    task.set_target_from(robot.q())
    return refusal(lambda: WholeBodyIk(robot).step(robot.q(), [task], dt))


def bad_rotation(robot, M):
    task = FrameTask(robot, "r_wrist")
    task.set_target_from(robot.q())
    X = pin.SE3(task.X_target.rotation @ M, task.X_target.translation)

    def step():
        task.set_target(X)
        WholeBodyIk(robot).step(robot.q(), [task], DT)

    return refusal(step)


@fault("B25", "floating under world: 24 joints; with a camera: read with a note, or what to take out; planar: rejected")
def test_joints_under_the_world(folder, result):
    plain = load_robot(str(folder / "a_floating_under_world.urdf")).n
    camera = load_robot(str(folder / "b_world_has_a_camera_too.urdf"))
    planar = refusal(lambda: load_robot(str(folder / "d_planar_base.urdf")))
    notes = [str(n) for n in camera.notes if "camera" in str(n)]
    result(f"{plain} joints; {camera.n} joints, {notes}; {planar.replace(f'{folder}/', '')}")
    assert plain == camera.n == 24 and notes and "planar" in planar


@fault("B29", "a wheel turns on for 15,000 rad in inverse kinematics, and at 50 rad/s in the simulator")
def test_a_continuous_joint_has_no_ends(folder, result):
    path = str(folder / "wheel.urdf")
    robot = load_robot(path, "fixed")
    row = next(k for k in range(robot.n) if not np.isfinite(robot.upper[k]) or robot.upper[k] > 1e6)
    solver, task = WholeBodyIk(robot), JointTask(robot, [robot.joint_names[row]])
    q = robot.q()
    for k in range(30_000):
        task.set_target([0.5 * k])
        q = solver.step(q, [task], 0.01).q
    engine = SimulationConfig(path, "fixed").build()
    at, moving = np.zeros(robot.n), np.zeros(robot.n)
    at[row], moving[row] = 990.0, 50.0
    engine.set_state(joints=at, velocities=moving)
    engine.command(efforts=np.zeros(robot.n))
    engine.step(1000)
    at, speed = engine.joints[row], engine.joint_velocity[row]
    result(f"{q[robot.iq + row]:.0f} rad; in the simulator {speed:.2f} rad/s at {at:.0f} rad")
    assert q[robot.iq + row] == pytest.approx(15_000, rel=1e-3)
    assert speed > 45.0 and at > 1000.0


@fault("B30", "energy of links and rotors -1.645 J throughout; dropped robots stay on the ground, none diverges")
def test_energy_stays_and_robots_stay_on_the_ground(folder, result):
    engine = SimulationConfig(str(folder / "pendulum_even.urdf"), "fixed", step=0.001).build()
    engine.set_state(joints=np.array([1.2, 0.8]), velocities=np.zeros(2))
    energies = []
    for _ in range(40):
        engine.command(efforts=np.zeros(2))
        engine.step(50)
        energies.append(engine.stored_energy() + 0.5 * float(np.sum(engine.joint_velocity**2)))  # rotors: 1 kg m^2
    lowest = {}
    for step in (0.001, 0.005, 0.01):
        engine = SimulationConfig("lola", "floating", step=step).build()
        engine.set_state(X_world_root=pin.SE3(np.eye(3), engine.base_state()[0][:3] + [0.0, 0.0, 3.0]))
        engine.step(round(4.0 / step))
        assert not engine.diverged, engine.failure
        lowest[step] = min(X.translation[2] for X in engine.robot.link_poses(engine.q).values())
    result(f"{min(energies):.3f} to {max(energies):.3f} J; at rest the lowest link origin", *lowest.values(), "m")
    assert energies == pytest.approx([-1.645] * 40, abs=0.02)
    assert min(lowest.values()) > -0.01, "link origins lie 20 to 30 mm above the soles"


@fault("B31", "24 joints in every encoding that the file states")
def test_a_model_states_its_encoding(folder, result):
    names = ("a_latin1_declared", "c_utf16_bom", "e_cp932_declared", "f_names_with_spaces_and_umlauts")
    joints = [load_robot(str(folder / f"{n}.urdf")).n for n in names]
    result(joints)
    assert joints == [24] * 4


@fault("B35", "bodies where MuJoCo has them; a without limits, b -1.247 to 1.571 rad, c = 0.1 + 0.5 (b - ref b)")
def test_references_and_equalities_of_an_mjcf(folder, result):
    mujoco = pytest.importorskip("mujoco")
    robot = load_robot(str(folder / "limits.xml"), "fixed")
    model = mujoco.MjModel.from_xml_path(str(folder / "limits.xml"))
    data, worst, rng = mujoco.MjData(model), 0.0, np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.uniform(-3, 3), rng.uniform(robot.lower[1], robot.upper[1])
        q = np.array([a, b, 0.0])
        data.qpos[:] = a, b, 0.1 + 0.5 * (b - model.qpos0[1])
        mujoco.mj_kinematics(model, data)
        worst = max(worst, *(np.abs(x - data.body(n).xpos).max() for n, x in bodies(robot, q).items() if n != "world"))
    result(
        f"a {robot.lower[0]:.4g} to {robot.upper[0]:.4g}, b {robot.lower[1]:.4g} to {robot.upper[1]:.4g}; {worst:.1e} m"
    )
    assert list(robot.joint_names) == ["a", "b", "c"] and worst < 1e-12 and robot.upper[0] > 1e6
    assert (robot.lower[1], robot.upper[1]) == pytest.approx((-1.247, 1.571), abs=1e-3)
    assert list(robot.effort[:2]) == [20.0, 50.0]


@fault("B38", "files with names like `yes` and `1e3` are written so that they are read again")
def test_names_that_yaml_takes_for_something_else(folder, result, humanoid, tmp_path):
    codes = []
    for name in ("yes_no", "numbers"):
        path = folder / f"{name}.urdf"
        new = humanoid("hardware", "new", "--robot", path, "--bus", "loopback", "-o", f"{name}.hardware.yaml")
        check = humanoid("hardware", "check", f"{name}.hardware.yaml")
        map_ = humanoid("robots", "map", path, "--bare", "-o", name)
        codes.append((new[0], check[0], map_[0]))
        assert codes[-1] == (0, 0, 0), (new[2], check[2], map_[2])
    result(f"the commands end with {codes}")


WORDS = {  # status word: state, CiA 402
    0x1617: "QUICK_STOP_ACTIVE",
    0x0240: "SWITCH_ON_DISABLED",
    0x0231: "READY_TO_SWITCH_ON",
    0x0233: "SWITCHED_ON",
    0x0237: "OPERATION_ENABLED",
    0x0218: "FAULT",
    0x003F: "FAULT_REACTION_ACTIVE",
}


@fault("HW", "signed positions of servos; states of CiA 402 by their status words; gains at the end of their range")
def test_words_of_drives(folder, result):
    found = []
    for value in (-1, -4096, -2, 2**31 - 1, -(2**31)):
        data, out = np.zeros((1, 10), np.uint8), np.zeros((1, 3))
        data[0, 6:] = np.frombuffer(value.to_bytes(4, "little", signed=True), np.uint8)
        decode_samples(data, np.array([True]), np.array([[0.0, 1.0, 1.0, 1.0]]), out)
        found.append(out[0, 0] == value)
    ends = [int(share(np.array([x]), np.array([0.0]), np.array([500.0]), 12)[0]) for x in (5100.0, -5.0)]
    right = sum(State(state_of(word)).name == name for word, name in WORDS.items())
    packet = write_packet(1, 116, (512).to_bytes(4, "little")).hex()
    result(f"{sum(found)} of 5 positions; {right} of {len(WORDS)} states; gains {ends}; {packet}")
    assert all(found) and ends == [4095, 0]
    assert packet == "fffffd00010900037400000200" + "00ca89"
    assert right == len(WORDS)
