"""A policy that runs: observations beside those of plain code, joints by name, the IMU's link, faults."""

from collections import deque

import numpy as np
import pinocchio as pin
import pytest
import yaml

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")

from pathlib import Path

from humanoid_control.errors import PolicyError
from humanoid_control.policy import Command, RobotState, load_motion, load_policy
from humanoid_control.policy.reference import MotionFrame
from humanoid_control.policy.runner import LinkState
from humanoid_control.robots import load_robot
from test.policy.networks import beyondmimic_network, deploy_yaml, linear_network

TWIST2 = Path(__file__).parents[2] / "config" / "policies" / "twist2.yaml"


def state(robot, rng, tilt=0.3):
    """A state at random."""
    q = rng.uniform(robot.lower, robot.upper)
    orientation = pin.Quaternion(pin.rpy.rpyToMatrix(*(tilt * rng.normal(size=3)))).coeffs()
    v, w = rng.normal(size=robot.n), rng.normal(size=3)
    return RobotState(q, v, orientation, w, np.array([0.0, 0.0, 0.8]), rng.normal(size=3))


def gravity_of(s):
    x, y, z, w = s.orientation
    return np.array([-2 * (x * z - w * y), -2 * (y * z + w * x), -(1 - 2 * (x * x + y * y))])


def fed(policy, monkeypatch):
    """Inputs of the network, kept at each step."""
    kept, run = [], policy._session.run
    monkeypatch.setattr(policy._session, "run", lambda feeds: kept.append(feeds) or run(feeds))
    return kept


def test_unitrees_observation_is_that_of_plain_code(model_file, g1, monkeypatch):
    path = model_file("policies/unitree_rl_lab_g1_velocity/params/deploy.yaml")
    d = yaml.load(path.read_text().replace("!!python/object/apply:builtins.slice", ""), yaml.SafeLoader)
    policy, rng = load_policy(path, g1), np.random.default_rng(1)
    kept = fed(policy, monkeypatch)
    order = [g1.index[j] for j in policy.model.joints]
    names, command = list(d["observations"]), np.array([0.4, -0.1, 0.15])
    history = dict.fromkeys(names)
    action = np.zeros(29)
    for _ in range(8):
        s = state(g1, rng)
        values = {
            "base_ang_vel": s.angular_velocity, "projected_gravity": gravity_of(s), "velocity_commands": command,
            "joint_pos_rel": s.q[order] - d["default_joint_pos"], "joint_vel_rel": s.v[order], "last_action": action,
        }  # fmt: skip
        for n in names:
            row = np.array(values[n]) * d["observations"][n]["scale"]
            history[n] = deque([row] * 5, maxlen=5) if history[n] is None else history[n]
            history[n].append(row)
        targets = policy.step(s, Command(command))
        assert np.allclose(kept[-1]["obs"][0], np.concatenate([np.concatenate(history[n]) for n in names]), atol=1e-5)
        action = policy.action
        expected = np.array(d["actions"]["JointPositionAction"]["offset"]) + 0.25 * action
        assert np.allclose(targets.q[order], expected) and np.isfinite(targets.kp).all()


def test_holosomas_observation_is_that_of_plain_code(model_file, g1, monkeypatch):
    policy, rng = load_policy(model_file("policies/holosoma/ppo_g1_29dof.onnx"), g1), np.random.default_rng(2)
    kept, action, phase = fed(policy, monkeypatch), np.zeros(29), np.array([np.pi, np.pi])
    standing = True
    for k in range(6):
        s, command = state(g1, rng), np.array([0.5, 0.1, -0.2]) * (k > 2)
        parts = [action, 0.25 * s.angular_velocity, command[2:], command[:2], np.cos(phase)]
        parts += [s.q - policy.model.default, 0.05 * s.v, gravity_of(s), np.sin(phase)]
        policy.step(s, Command(command))
        assert np.allclose(kept[-1]["actor_obs"][0], np.concatenate(parts), atol=1e-5)
        action = policy.action
        phase = phase + 2 * np.pi * 0.02
        if not command.any():
            phase = np.array([np.pi, np.pi])
        elif standing:
            phase, standing = np.array([0.0, np.pi]), False


def test_twist2s_observation_is_that_of_plain_code(model_file, g1, monkeypatch):
    policy = load_policy(TWIST2, g1, model_file("policies/twist2/twist2_1017_20k.onnx"))
    kept, rng, action = fed(policy, monkeypatch), np.random.default_rng(3), np.zeros(29)
    history, default = deque([np.zeros(127)] * 10, maxlen=10), policy.model.default
    policy.reference.advance(2.0)  # the blend from the idle posture is over
    for _ in range(13):
        s = state(g1, rng, 0.1)
        frame = MotionFrame(rng.normal(size=2), 0.7, 0.1, -0.05, 0.3, default + 0.1 * rng.normal(size=29))
        policy.reference.give(frame)
        m = np.array([*frame.velocity, frame.height, frame.roll, frame.pitch, frame.yaw_rate, *frame.joints])
        roll, pitch, _ = pin.rpy.matrixToRpy(pin.Quaternion(s.orientation).toRotationMatrix())
        v = 0.05 * s.v
        v[[4, 5, 10, 11]] = 0.0
        own = np.array([*(0.25 * s.angular_velocity), roll, pitch, *(s.q - default), *v, *action])
        targets = policy.step(s)
        expected = np.concatenate([m, own, *history, m])
        assert expected.shape == (1432,) and np.allclose(kept[-1]["input"][0], expected, atol=1e-5)
        history.append(np.concatenate([m, own]))
        action = policy.action
        assert np.allclose(targets.q, default + 0.5 * np.clip(action, -10, 10))


def test_leapps_outputs_are_fed_back(model_file, g1, monkeypatch):
    policy = load_policy(model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml"), g1)
    kept, rng = fed(policy, monkeypatch), np.random.default_rng(4)
    s = state(g1, rng)
    targets = policy.step(s)
    assert not kept[0]["joint_vel_history" if "joint_vel_history" in kept[0] else "actions_history"].any()
    assert np.allclose(kept[0]["root_link_quat_w"][0], s.orientation[[3, 0, 1, 2]], atol=1e-6)
    policy.step(s)
    assert kept[1]["base_ang_vel_history"].any() and kept[1]["last_actions"].any()
    arms = [
        k for k, j in enumerate(g1.joint_names) if "shoulder" in j or "elbow" in j or "wrist" in j or "waist_yaw" in j
    ]
    assert np.isnan(targets.kp[arms]).all() and np.isfinite(np.delete(targets.kp, arms)).all()
    policy.reset()
    policy.step(s)
    assert not kept[2]["last_actions"].any()


def test_joints_are_taken_by_name_whatever_the_order(g1, tmp_path):
    """The same controller with its joints in two orders gives the same targets."""
    rng, n = np.random.default_rng(5), 29
    orders = [np.arange(n), rng.permutation(n)]
    gain, policies = 0.3, []
    for k, order in enumerate(orders):
        folder = tmp_path / str(k)
        folder.mkdir()
        W = np.zeros((n, 9 + 3 * n))
        W[:, 9 : 9 + n] = gain * np.eye(n)  # action = gain * (q - default)
        linear_network(folder / "policy.onnx", {"obs": 9 + 3 * n}, {"actions": n}, weights=W)
        d = deploy_yaml(n, joint_ids_map=order.tolist())
        d["stiffness"] = np.arange(10.0, 10.0 + n).tolist()
        d["default_joint_pos"] = (0.01 * order).tolist()
        d["actions"]["JointPositionAction"]["offset"] = (0.01 * order).tolist()
        (folder / "deploy.yaml").write_text(yaml.safe_dump(d, sort_keys=False))
        policies.append(load_policy(folder / "deploy.yaml", g1))
    s = state(g1, rng)
    first, second = (p.step(s) for p in policies)
    assert np.allclose(first.q, second.q, atol=1e-6) and np.allclose(first.kp, second.kp)
    assert np.allclose(first.q, 0.01 * orders[0] + 0.25 * gain * (s.q - 0.01 * orders[0]), atol=1e-6)


def test_the_imu_may_be_in_another_link_than_the_policy_wants(g1):
    """Rotation and angular velocity of the torso, from the pelvis' and the waist's: against finite differences."""
    rng, links, h = np.random.default_rng(6), LinkState(g1), 1e-6
    s = state(g1, rng)
    q = g1.q(s.q, pin.SE3(pin.Quaternion(s.orientation).toRotationMatrix(), np.array([0.1, 0.2, 0.8])))
    v = np.concatenate([np.zeros(3), s.angular_velocity, s.v])
    frame = g1.model.getFrameId("torso_link", pin.FrameType.BODY)
    poses = []
    for t in (0.0, h):
        pin.framesForwardKinematics(g1.model, g1.data, pin.integrate(g1.model, q, t * v))
        poses.append(g1.data.oMf[frame].rotation.copy())
    links.place(s, "torso_link", "torso_link")
    assert np.allclose(links.imu_rotation, poses[0]) and np.allclose(links.anchor_rotation, poses[0])
    assert np.allclose(links.imu_angular_velocity, pin.log3(poses[0].T @ poses[1]) / h, atol=1e-4)
    assert not np.allclose(links.imu_angular_velocity, s.angular_velocity, atol=0.1)
    links.place(s, "", "")
    assert np.array_equal(links.imu_angular_velocity, s.angular_velocity)


def test_commands_outside_the_trained_range_are_clipped(model_file, g1, monkeypatch):
    policy = load_policy(model_file("policies/unitree_rl_lab_g1_velocity/params/deploy.yaml"), g1)
    kept = fed(policy, monkeypatch)
    policy.step(state(g1, np.random.default_rng(7)), Command((5.0, -5.0, 5.0)))
    assert np.allclose(kept[0]["obs"][0][30:33], [1.0, -0.3, 0.2])


@pytest.mark.parametrize("field", ["q", "v", "orientation"])
def test_a_state_that_is_no_number_stops_the_policy_and_moves_no_target(model_file, g1, field):
    policy, s = load_policy(model_file("policies/holosoma/ppo_g1_29dof.onnx"), g1), state(g1, np.random.default_rng(8))
    before = policy.step(s).q.copy()
    values = getattr(s, field).copy()
    values[1] = np.nan
    with pytest.raises(PolicyError, match="the state of the robot is not a number"):
        policy.step(s._replace(**{field: values}))
    assert np.array_equal(policy._targets.q, before)


def test_an_output_that_is_no_number_stops_the_policy(g1, tmp_path):
    W = np.zeros((29, 96))
    W[3, 9] = 3e38
    linear_network(tmp_path / "policy.onnx", {"obs": 96}, {"actions": 29}, weights=W)
    (tmp_path / "deploy.yaml").write_text(yaml.safe_dump(deploy_yaml(29), sort_keys=False))
    policy, s = load_policy(tmp_path / "deploy.yaml", g1), state(g1, np.random.default_rng(9))
    s.q[0] = 10.0
    with pytest.raises(PolicyError, match="the output 'actions' is not a number: the policy is stopped"):
        policy.step(s)
    assert np.isfinite(policy._targets.q).all()


def test_a_velocity_that_nobody_estimates_stops_a_policy_that_needs_it(model_file, g1):
    path = Path(__file__).parent / "descriptions" / "mujoco_playground.yaml"
    policy = load_policy(path, g1, model_file("policies/mujoco_playground/g1_policy.onnx"))
    s = state(g1, np.random.default_rng(10))
    policy.step(s)
    with pytest.raises(PolicyError, match="is not a number"):
        policy.step(s._replace(linear_velocity=None))


def test_what_contradicts_or_does_not_fit_is_not_run(model_file, g1, g1_urdf, tmp_path):
    with pytest.raises(PolicyError, match="TorchScript"):
        load_policy(model_file("policies/rl_sar/dance_102/config.yaml"), g1)
    good = model_file("policies/holosoma/ppo_g1_29dof.onnx")
    with pytest.raises(PolicyError, match="of its 29 joints are not joints of lola"):
        load_policy(good, load_robot("lola", "floating"))
    with pytest.raises(PolicyError, match="has a base that is fixed"):
        load_policy(good, load_robot(g1_urdf, "fixed"))


def test_a_step_of_a_motion_may_be_an_integer(g1, tmp_path):
    joints = tuple(j for j in g1.joint_names if "knee" in j or "hip_pitch" in j)
    policy = load_policy(beyondmimic_network(tmp_path / "p.onnx", joints, integers="time_step"), g1)
    for k in range(3):
        policy.step(state(g1, np.random.default_rng(12)))
        assert policy._feeds["time_step"].dtype == np.int64 and policy._feeds["time_step"][0, 0] == k + 1


def test_what_the_runtime_refuses_stops_the_policy(model_file, g1):
    policy = load_policy(model_file("policies/holosoma/ppo_g1_29dof.onnx"), g1)
    with pytest.raises(PolicyError, match="the runtime rejects its inputs"):
        policy._session.run({"actor_obs": np.zeros((1, 99), np.float32)})


def test_the_anchor_of_a_given_motion_is_where_kinematics_has_it(g1, tmp_path):
    rng, T = np.random.default_rng(13), 5
    q = rng.uniform(-0.3, 0.3, size=(T, 29))
    turned = np.array([pin.Quaternion(pin.exp3(0.3 * rng.normal(size=3))).coeffs() for _ in range(T)])
    np.savez(tmp_path / "m.npz", fps=50.0, root_pos=rng.normal(size=(T, 3)), root_rot=turned, dof_pos=q)
    motion = load_motion(tmp_path / "m.npz", g1, g1.joint_names, "torso_link")
    for k in range(T):
        pose = pin.SE3(pin.Quaternion(turned[k]).toRotationMatrix(), np.zeros(3))
        pin.framesForwardKinematics(g1.model, g1.data, g1.q(q[k], pose))
        X = g1.data.oMf[g1.model.getFrameId("torso_link", pin.FrameType.BODY)]
        assert np.allclose(motion.R_anchor[k], X.rotation)
    frames = motion.frames()
    assert np.allclose(frames[2].joint_velocity, (q[3] - q[1]) * 25.0)


@pytest.mark.timed
@pytest.mark.parametrize("name", ["holosoma/ppo_g1_29dof.onnx", "unitree_rl_lab_g1_velocity/params/deploy.yaml"])
def test_a_step_takes_a_small_share_of_a_period(model_file, g1, name):
    """CPU time of this thread, so that other processes do not count."""
    import time

    policy, s = load_policy(model_file(f"policies/{name}"), g1), state(g1, np.random.default_rng(11))
    times = []
    for _ in range(600):
        begin = time.thread_time()
        policy.step(s)
        times.append(time.thread_time() - begin)
    assert np.percentile(times[100:], 50) < 400e-6, np.percentile(times, [50, 99])
