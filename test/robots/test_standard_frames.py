"""Names and axes of REP 120's frames on every robot, beside the REP's own list and pinocchio's kinematics."""

import re

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.robots import CATALOGUE, Robot, load_robot
from humanoid_control.robots.description.mjcf import read_description
from humanoid_control.robots.description.robot_file import read_robot_file
from humanoid_control.robots.humanoids import found_humanoids, humanoids
from humanoid_control.robots.standard_frames import standard_frames

# "Frame Hierarchy" of REP 120, public domain: github.com/ros-infrastructure/rep, rep-0120.rst at commit 11ca24a.
HIERARCHY = """
- base_link
   - base_footprint
   - ... - (l|r)_ankle - (l_r)_sole - (l|r)_toe
   - ... - torso
      - ... - gaze
      - ... - (l|r)_wrist - (l|r)_gripper
"""
MOVING = {"base_footprint"}  # REP 120: "not rigid on humanoid robots and is broadcasted by an external node"
ROBOTS = sorted(CATALOGUE)
MAPPED = sorted(n for n in found_humanoids() if humanoids()[n].robot_file is not None)


def rep_chains(side):
    """Chains of names from the root outwards, of one side of the body."""
    text = HIERARCHY.replace("(l_r)", "(l|r)").replace("(l|r)", side)
    chains, above = [], {}
    for line in text.strip().splitlines():
        names = re.findall(r"[a-z_]+", line)
        depth = (len(line) - len(line.lstrip())) // 3
        above[depth] = [*(above[depth - 1] if depth else []), *names]
        chains.append(above[depth])
    return chains


REP_NAMES = {name for side in "lr" for chain in rep_chains(side) for name in chain}


def test_the_list_of_the_rep_is_read_as_it_is_meant():
    assert rep_chains("l")[2] == ["base_link", "l_ankle", "l_sole", "l_toe"]
    assert rep_chains("r")[5] == ["base_link", "torso", "r_wrist", "r_gripper"]
    assert len(REP_NAMES) == 14


def poses(robot, q):
    model, data = robot.model, robot.model.createData()
    pin.framesForwardKinematics(model, data, q)
    return {n: data.oMf[model.getFrameId(f.link)] * f.X_link_frame for n, f in standard_frames(robot).items()}


def check(robot):
    frames, at = standard_frames(robot), poses(robot, robot.q("neutral"))
    assert set(frames) <= REP_NAMES - MOVING, "a name that the REP does not have"
    assert {"base_link", "torso", "l_wrist", "r_wrist"} <= set(frames)
    model = robot.model
    joint = {n: model.frames[model.getFrameId(f.link)].parentJoint for n, f in frames.items()}
    if robot.base == "floating":  # of a held robot the tree may begin elsewhere
        for side in "lr":
            for chain in rep_chains(side):
                here = [n for n in chain if n in frames]
                for outer, inner in zip(here[1:], here, strict=False):
                    assert joint[inner] in list(model.supports[joint[outer]]), (inner, outer)
    if not frames["base_link"].own:
        assert np.allclose(at["base_link"].rotation, np.eye(3), atol=1e-6)  # REP 103: x forward, z up
    assert at["base_link"].rotation[2, 2] > 0.99
    assert at["l_wrist"].translation[1] > at["r_wrist"].translation[1], "y is to the left"
    if "gaze" in frames and not frames["gaze"].own:
        assert np.allclose(at["gaze"].rotation, np.eye(3), atol=1e-6)
        assert at["gaze"].translation[2] > at["torso"].translation[2]
    feet = {f.name: f for f in robot.feet}
    for side in "lr":
        if f"{side}_foot" not in feet:
            continue
        foot, name = feet[f"{side}_foot"], f"{side}_sole"
        X = frames[name].X_link_frame
        if frames[name].own:
            continue
        assert np.allclose([X.actInv(c)[2] for c in foot.corners()], 0.0, atol=1e-9), "x-y is the contact surface"
        assert np.allclose(X.translation[:2], 0.0), "the projection of the link's origin"
        assert at[name].rotation[2, 2] > 0.99 and at[name].rotation[0, 0] > 0.9


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_of_the_catalogue_has_the_reps_frames(name):
    robot = load_robot(name)
    check(robot)
    if robot.has_feet:
        assert {"l_sole", "r_sole", "l_ankle", "r_ankle", "gaze"} <= set(standard_frames(robot))


@pytest.mark.skipif(not MAPPED, reason="no model of another humanoid is on this machine (HUMANOID_MODELS)")
@pytest.mark.parametrize("name", MAPPED)
def test_every_mapped_robot_has_the_reps_frames(name):
    found = humanoids()[name]  # without collision shapes, which are laid around its meshes for minutes
    robot = Robot(read_description(found.path()), read_robot_file(found.robot_file), "floating")
    check(robot)
    assert not robot.has_feet or {"l_sole", "r_sole"} <= set(standard_frames(robot))


def test_the_torso_is_the_lowest_body_that_carries_gaze_and_both_arms():
    robot = load_robot("hrp2", "floating")
    model, frames = robot.model, standard_frames(robot)
    carriers = [model.getFrameId(frames[n].link) for n in ("l_wrist", "r_wrist", "gaze")]
    supports = [set(model.supports[model.frames[f].parentJoint]) for f in carriers]
    torso = model.frames[model.getFrameId(frames["torso"].link)].parentJoint
    assert torso == max(set.intersection(*supports)) and torso not in (0, 1)


def test_a_sole_follows_its_foot_and_nothing_else():
    robot = load_robot("lola", "floating")
    q = robot.q("neutral")
    before = poses(robot, q)
    j = robot.joint_index("l_ankle_flexion") if "l_ankle_flexion" in robot.index else None
    j = j if j is not None else next(k for n, k in robot.index.items() if n.startswith("l_ankle"))
    q[robot.iq + j] += 0.2
    after = poses(robot, q)
    assert not np.allclose(after["l_sole"].homogeneous, before["l_sole"].homogeneous)
    for name in ("r_sole", "l_wrist", "gaze", "torso"):
        assert np.allclose(after[name].homogeneous, before[name].homogeneous)
