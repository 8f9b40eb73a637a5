"""Scenes that are hard on drives and stops, in any engine; for tests."""

import numpy as np
import pinocchio as pin

from humanoid_control.simulation import make_engine


def pushed(robot, settings, engine="multibody"):
    """A robot held by its base, pushed hard at both forearms."""
    world = make_engine(robot, engine, settings)
    for side, force in (("l", [300.0, -250.0, 200.0]), ("r", [-250.0, 300.0, -300.0])):
        elbow = robot.model.getJointId(robot.joint_for(f"{side}_elbow_flexion"))
        link = next(f.name for f in robot.model.frames if f.parentJoint == elbow and f.type == pin.FrameType.BODY)
        world.push(link, np.array([*force, 0, 0, 0]), 0.15)
    return world


def falling(robot, settings, engine="multibody"):
    """A robot on its way down to the ground, which all its links may touch."""
    world = make_engine(robot, engine, settings)
    X = robot.X_world_root
    X = pin.SE3(pin.rpy.rpyToMatrix(0.2, 0.9, 0.0) @ X.rotation, X.translation - [0.0, 0.0, 0.1])
    world.set_state(X_world_root=X, twist=np.array([0.5, 0.0, -3.0, 0.0, 2.0, 0.0]))
    return world


SCENES = {"push": ("fixed", pushed), "fall": ("floating", falling)}


def command_anywhere(world, rng):
    """Ask for a posture anywhere, mostly so far away that drives give all they can."""
    r = world.robot
    world.command(rng.uniform(np.maximum(r.lower, -2.5), np.minimum(r.upper, 2.5)))
