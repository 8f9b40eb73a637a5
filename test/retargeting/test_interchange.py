"""Layouts of other programs: MuJoCo, and the loaders of GMR, ProtoMotions and BeyondMimic, read back what was written.

Those loaders are run from their own files, where `HUMANOID_TEST_PEERS` names a folder with GMR/data_loader.py,
whole_body_tracking/csv_to_npz.py and ProtoMotions/{convert_pyroki_...py,retargeting_fps.py}. They need torch only to
hold arrays: here arrays of numpy take that part.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import pickle
import resource
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.cli.retarget import write_trajectory
from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.trajectory_bag import write_joint_commands
from humanoid_control.retargeting import INTERCHANGE, WholeBodyTrajectory
from humanoid_control.retargeting.interchange import moving_links, tree_order
from humanoid_control.robots import load_robot
from humanoid_control.session.recording import robot_in

T = 40


@pytest.fixture(scope="module", params=["hrp2", "wabian2"])
def robot(request):
    return load_robot(request.param, "floating")


@pytest.fixture(scope="module")
def trajectory(robot):
    rng = np.random.default_rng(3)
    angles = np.clip(np.cumsum(rng.normal(0, 0.02, (T, robot.n)), axis=0), robot.lower, robot.upper)
    for row in angles if robot.mimic else ():
        robot.follow(row)
    velocities = np.zeros_like(angles)
    velocities[:-1] = np.diff(angles, axis=0) * 50
    turns = [pin.exp3(v) for v in np.cumsum(rng.normal(0, 0.05, (T, 3)), axis=0) + [0.0, 0.0, 2.0]]
    quaternions = np.array([pin.Quaternion(R).coeffs() for R in turns])
    place = np.cumsum(rng.normal(0, 0.01, (T, 3)), axis=0) + [0.3, -0.2, 0.8]
    errors, none = np.zeros((T, 20)), np.zeros(T)
    contacts = rng.random((T, 4)) < 0.5
    return WholeBodyTrajectory(
        robot.joint_names, 50.0, angles, velocities, errors, none, none, none.astype(int), place, quaternions, contacts
    )


@pytest.fixture(scope="module")
def mujoco_model(robot):
    """The robot in MuJoCo, made from its URDF by MuJoCo's own reader, with a free root."""
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec.from_string(robot.urdf.replace("<robot ", "<robot ", 1))
    spec.compiler.fusestatic = False
    spec.compiler.discardvisual = True
    spec.bodies[1].add_freejoint()
    return mujoco, spec


def write(name, tmp_path, trajectory, robot):
    path = tmp_path / f"walk{INTERCHANGE[name].suffix}"
    INTERCHANGE[name].write(path, trajectory, robot)
    return path


def by_name(arrays, robot, key):
    """Columns of an array in the order of the robot's joints."""
    names = [str(n) for n in arrays["joint_names"]]
    return arrays[key][:, [names.index(n) for n in robot.joint_names]]


def test_the_order_is_that_of_mujocos_reader(robot, mujoco_model):
    model = mujoco_model[1].compile()
    names = [model.joint(k).name for k in range(model.njnt) if model.joint(k).name in robot.index]
    assert tuple(names) == tree_order(robot)
    assert set(tree_order(robot)) == set(robot.joint_names)


def test_qpos_puts_every_link_where_pinocchio_has_it(robot, trajectory, mujoco_model, tmp_path):
    mujoco, spec = mujoco_model
    model = spec.compile()
    data = mujoco.MjData(model)
    with np.load(write("mujoco", tmp_path, trajectory, robot)) as arrays:
        qpos, qvel, dt = arrays["qpos"], arrays["qvel"], float(arrays["timestep"])
    assert qpos.shape == (T, model.nq)
    bodies = {model.body(k).name for k in range(model.nbody)}
    for k in range(0, T, 7):
        data.qpos[:] = qpos[k]
        mujoco.mj_kinematics(model, data)
        poses = robot.link_poses(trajectory.q()[k])
        for link in (link for link in moving_links(robot) if link in bodies):
            np.testing.assert_allclose(data.body(link).xpos, poses[link].translation, atol=1e-6)
            np.testing.assert_allclose(data.body(link).xmat.reshape(3, 3), poses[link].rotation, atol=1e-6)
        if k + 1 < T:
            v = np.zeros(model.nv)
            mujoco.mj_differentiatePos(model, v, dt, qpos[k], qpos[k + 1])
            np.testing.assert_allclose(qvel[k], v, atol=1e-9)


def test_keyframes_are_included_into_a_model(robot, trajectory, mujoco_model, tmp_path):
    mujoco, spec = mujoco_model
    path = write("keyframes", tmp_path, trajectory, robot)
    spec.compile()
    (tmp_path / "robot.xml").write_text(spec.to_xml().replace("</mujoco>", f'<include file="{path.name}"/></mujoco>'))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    assert model.nkey == T
    assert model.key(3).time[0] == pytest.approx(0.06)
    with np.load(write("mujoco", tmp_path, trajectory, robot)) as arrays:
        np.testing.assert_allclose(model.key_qpos, arrays["qpos"], atol=1e-8)


def test_too_many_keyframes_are_refused(robot, trajectory, tmp_path, monkeypatch):
    monkeypatch.setattr("humanoid_control.retargeting.interchange.KEYFRAMES", 10)
    with pytest.raises(ConfigError, match="--format mujoco"):
        write("keyframes", tmp_path, trajectory, robot)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["csv", "npz", "mcap", *INTERCHANGE])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(robot, trajectory, tmp_path, name):
    layout = INTERCHANGE.get(name)
    path = tmp_path / f"walk{layout.suffix if layout else f'.{name}'}"
    path.write_text("before")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))  # no file may grow beyond it: as good as a full disk
    try:
        with pytest.raises(ConfigError, match=r"cannot (be written|write)") as caught:
            write_trajectory(path, trajectory, np.zeros((T, 7, 3)), robot, name if layout else "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if hard < 0 else hard, hard))
    assert str(caught.value).isprintable()
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# --- Loaders of other programs


@pytest.fixture(scope="session")
def peer():
    """Return a function that gives the path of another program's file, or skips where it is absent."""

    def find(relative):
        path = Path(os.environ.get("HUMANOID_TEST_PEERS", "/nowhere")) / relative
        if not path.is_file():
            pytest.skip(f"needs {relative} of another program: set HUMANOID_TEST_PEERS to the folder that holds it")
        return path

    return find


class Tensor(np.ndarray):
    """What torch gives those loaders: an array with `to`."""

    def to(self, *_):
        return self


TORCH = SimpleNamespace(from_numpy=lambda a: a.view(Tensor), float32=np.float32, Tensor=Tensor, device=str)


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def run_definition(path, name, scope):
    """A function or a class of a file that cannot be imported here, defined in `scope`."""
    tree = ast.parse(path.read_text())
    body = [node for node in tree.body if getattr(node, "name", "") == name]
    exec(compile(ast.Module(body, []), str(path), "exec"), scope)
    return scope[name]


def test_gmr_reads_its_fields(robot, trajectory, peer, tmp_path):
    path = write("gmr", tmp_path, trajectory, robot)
    with np.load(path) as arrays:  # no pickle in it; the one that its loader wants is made as the docs say
        motion = {key: arrays[key] for key in arrays.files}
    (tmp_path / "walk.pkl").write_bytes(pickle.dumps(motion))
    loaded = module(peer("GMR/data_loader.py")).load_robot_motion(tmp_path / "walk.pkl")
    _, fps, root_pos, root_wxyz, dof_pos, local, links = loaded
    assert fps == 50
    np.testing.assert_array_equal(root_pos, trajectory.root_position)
    for quaternion, xyzw in zip(root_wxyz, trajectory.root_quaternion, strict=True):
        w, x, y, z = quaternion
        np.testing.assert_allclose(pin.Quaternion(w, x, y, z).coeffs(), xyzw, atol=1e-12)
    np.testing.assert_array_equal(by_name(motion | {"dof_pos": dof_pos}, robot, "dof_pos"), trajectory.positions)
    assert tuple(links) == moving_links(robot)
    moved = [robot.model.frames[robot.model.getFrameId(str(link))].parentJoint for link in links[1:]]
    assert [robot.model.names[k] for k in moved] == list(tree_order(robot)), "the link that each joint moves"
    poses = robot.link_poses(trajectory.q()[5])
    root = poses[robot.root_link]
    for k, link in enumerate(links):
        np.testing.assert_allclose(root.act(local[5, k]), poses[str(link)].translation, atol=1e-9)


def test_protomotions_reads_its_arrays(robot, trajectory, peer, tmp_path):
    path = write("protomotions", tmp_path, trajectory, robot)
    scope = {"np": np, "torch": TORCH, **vars(module(peer("ProtoMotions/retargeting_fps.py")))}
    source = peer("ProtoMotions/convert_pyroki_retargeted_robot_motions_to_proto.py")
    process = run_definition(source, "process_npz_file", scope)
    root_pos, root_wxyz, angles, fps = process(path, 30, None, "cpu", np.float64)
    assert fps == 50
    np.testing.assert_array_equal(root_pos, trajectory.root_position)
    np.testing.assert_array_equal(root_wxyz[:, [1, 2, 3, 0]], trajectory.root_quaternion)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(by_name(dict(arrays) | {"q": angles}, robot, "q"), trajectory.positions)
        left = trajectory.contacts[:, :2].any(axis=1)
        np.testing.assert_array_equal(arrays["foot_contacts"][:, 0] > 0.5, left)


def test_beyondmimic_reads_its_table(robot, trajectory, peer, tmp_path):
    path = write("beyondmimic", tmp_path, trajectory, robot)
    loader = run_definition(
        peer("whole_body_tracking/csv_to_npz.py"), "MotionLoader", {"np": np, "torch": TORCH, "tuple": tuple}
    )
    motion = loader.__new__(loader)
    motion.motion_file, motion.frame_range, motion.device, motion.input_dt = str(path), None, "cpu", 0.02
    motion._load_motion()
    assert motion.input_frames == T
    np.testing.assert_allclose(motion.motion_base_poss_input, trajectory.root_position, atol=1e-8)
    np.testing.assert_allclose(motion.motion_base_rots_input[:, [1, 2, 3, 0]], trajectory.root_quaternion, atol=1e-8)
    names = tree_order(robot)
    columns = [names.index(n) for n in robot.joint_names]
    np.testing.assert_allclose(motion.motion_dof_poss_input[:, columns], trajectory.positions, atol=1e-8)


def test_a_bag_of_a_whole_body_is_played_by_itself(robot, trajectory, tmp_path):
    path = tmp_path / "walk.mcap"
    write_joint_commands(path, trajectory, robot)
    bag = BagReader(path)
    assert {topic: count for topic, (_, count) in bag.topics.items()} == {
        "/robot_description": 1, "/joint_commands": T, "/joint_states": T, "/odom": T, "/tf": T
    }  # fmt: skip
    assert bag.latched("/robot_description")
    assert robot_in(bag) == robot.name
    assert len(list(bag.messages({"/odom"}))) == T


def test_a_bag_of_a_whole_body_shows_its_root(robot, trajectory, tmp_path):
    reader = pytest.importorskip("mcap.reader")
    decoder = pytest.importorskip("mcap_ros2.decoder")
    path = tmp_path / "walk.mcap"
    write_joint_commands(path, trajectory, robot)
    found: dict[str, list] = {}
    with path.open("rb") as file:
        bag = reader.make_reader(file, decoder_factories=[decoder.DecoderFactory()])
        for _, channel, record, message in bag.iter_decoded_messages():
            found.setdefault(channel.topic, []).append((record.log_time, message))
    assert {t: len(m) for t, m in found.items()} == {
        "/robot_description": 1, "/joint_commands": T, "/joint_states": T, "/odom": T, "/tf": T
    }  # fmt: skip
    assert found["/robot_description"][0][1].data == robot.urdf
    for k in (0, 11, T - 1):
        time, odometry = found["/odom"][k]
        p, x = odometry.pose.pose.position, odometry.pose.pose.orientation
        assert time == k * 20_000_000
        np.testing.assert_array_equal([p.x, p.y, p.z], trajectory.root_position[k])
        np.testing.assert_array_equal([x.x, x.y, x.z, x.w], trajectory.root_quaternion[k])
        assert odometry.child_frame_id == robot.root_link
        transform = found["/tf"][k][1].transforms[0]
        assert transform.transform.translation.x == trajectory.root_position[k, 0]
        assert transform.child_frame_id == robot.root_link
        np.testing.assert_array_equal(found["/joint_states"][k][1].position, trajectory.positions[k])
    twist = found["/odom"][11][1].twist.twist
    q, q_next = trajectory.q()[11:13]
    v = 50 * pin.difference(robot.model, q, q_next)[:6]  # screw motion: nearly that of the origin for a small turn
    np.testing.assert_allclose([twist.angular.x, twist.angular.y, twist.angular.z], v[3:], atol=1e-9)
    np.testing.assert_allclose([twist.linear.x, twist.linear.y, twist.linear.z], v[:3], atol=0.1)
