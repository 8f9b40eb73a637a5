"""Standard frames on a page: where pinocchio has them, whatever pose the root has."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("viser")

from humanoid_control.robots import load_robot
from humanoid_control.robots.standard_frames import standard_frames
from humanoid_control.viewer.scene import Scene


@pytest.fixture(scope="module")
def scene(server):
    return Scene(server, load_robot("hrp2", "floating"))


def handle_pose(handle):
    w, x, y, z = handle.wxyz
    return pin.SE3(pin.Quaternion(w, x, y, z).matrix(), np.array(handle.position))


def test_frames_are_drawn_where_pinocchio_has_them(scene):
    robot = scene.robot
    rng = np.random.default_rng(3)
    q = robot.q(rng.uniform(-0.3, 0.3, robot.n))
    q[:7] = pin.SE3ToXYZQUAT(pin.SE3(pin.rpy.rpyToMatrix(0.2, -0.1, 2.5), np.array([3.0, -1.0, 0.9])))
    scene.show("frames", True)
    scene.move_robot(robot.link_poses(q))
    model = pin.buildModelFromXML(robot.urdf, pin.JointModelFreeFlyer())
    for name, f in standard_frames(robot).items():
        model.addFrame(
            pin.Frame(
                f"standard {name}",
                model.frames[model.getFrameId(f.link)].parentJoint,
                0,
                model.frames[model.getFrameId(f.link)].placement * f.X_link_frame,
                pin.FrameType.OP_FRAME,
            )
        )
    data = model.createData()
    order = [model.joints[model.getJointId(n)].idx_q for n in robot.joint_names]
    x = pin.neutral(model)
    x[:7], x[order] = q[:7], q[7:]
    pin.framesForwardKinematics(model, data, x)
    handles = scene.frames.handles
    assert {"base_link", "l_sole", "r_sole", "l_wrist", "r_wrist", "torso", "gaze", "base_footprint"} <= set(handles)
    for name in standard_frames(robot):
        X = data.oMf[model.getFrameId(f"standard {name}")]
        assert np.allclose(handle_pose(handles[name]).homogeneous, X.homogeneous, atol=1e-6), name
    left, right, base, floor = (handle_pose(handles[n]) for n in ("l_sole", "r_sole", "base_link", "base_footprint"))
    assert np.allclose(floor.translation[:2], (left.translation + right.translation)[:2] / 2)
    assert floor.translation[2] == pytest.approx(min(left.translation[2], right.translation[2]))
    assert np.allclose(floor.rotation[:, 2], [0, 0, 1])
    assert floor.rotation[:2, 0] @ base.rotation[:2, 0] == pytest.approx(np.linalg.norm(base.rotation[:2, 0]))


def test_hidden_frames_stay_and_the_others_move(scene):
    robot = scene.robot
    scene.show("frames", False)
    before = np.array(scene.frames.handles["l_sole"].position)
    q = robot.q(robot.postures["neutral"])
    q[:3] = 9.0, 9.0, 9.0
    scene.move_robot(robot.link_poses(q))
    assert np.array_equal(scene.frames.handles["l_sole"].position, before)
    assert not any(h.visible for h in scene.frames.handles.values())
    scene.show("frames", True)
    scene.move_robot(robot.link_poses(q))
    assert np.linalg.norm(scene.frames.handles["l_sole"].position - q[:3]) < 1.5


def test_a_robot_without_legs_has_no_footprint(server):
    handles = Scene(server, load_robot("we4rii")).frames.handles
    assert "base_footprint" not in handles and {"base_link", "gaze", "l_wrist"} <= set(handles)
