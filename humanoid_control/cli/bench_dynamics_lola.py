"""A robot with its screw drives as closed chains of pinocchio, from the same file of drives as our sub-systems."""

from __future__ import annotations

import numpy as np

from humanoid_control.cli.bench_dynamics_chains import ClosedChains
from humanoid_control.cli.bench_dynamics_parts import Shaft
from humanoid_control.multibody.gear_mechanisms import HarmonicDrive
from humanoid_control.multibody.screw_mechanisms import AnkleScrews, KneeScrew
from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.drive_train import DriveTrain
from humanoid_control.simulation.drives.mechanisms import ZeroFrames, mechanism_of


def chains_of(robot: Robot, train: DriveTrain) -> ClosedChains:
    """The tree of a drive train with every screw as a loop; rotors of plain gears as armature of their joints."""
    tree, frames = train.pinocchio.copy(), ZeroFrames(robot)
    armature = np.zeros(tree.nv)
    for shaft in train.shafts:
        m = mechanism_of(shaft.drive, robot, frames)
        if isinstance(m, HarmonicDrive):
            k = tree.joints[tree.getJointId(shaft.joints[0])].idx_v
            armature[k] += float(m.par[0]) ** 2 * shaft.motor.inertia[0]
    tree.armature = armature
    chains = ClosedChains(tree)

    def seen(link: str, point: np.ndarray) -> np.ndarray:
        """A point of a link in the frame of the joint that moves it."""
        return np.asarray(tree.frames[tree.getFrameId(link)].placement.act(np.asarray(point, float)))

    def turned(link: str, v: np.ndarray) -> np.ndarray:
        return np.asarray(tree.frames[tree.getFrameId(link)].placement.rotation @ v)

    done = set()
    for shaft in train.shafts:
        drive = shaft.drive
        if drive.name in done:
            continue
        done.add(drive.name)
        m, g, spin = mechanism_of(drive, robot, frames), drive.geometry, Shaft(*shaft.motor.inertia)
        carrier, last = drive.carrier, frames.child[drive.joints[-1]]
        above = str(tree.names[tree.frames[tree.getFrameId(carrier)].parentJoint])
        if isinstance(m, KneeScrew):
            _, axis = frames.joint(drive.joints[0], carrier)
            hinge, pivot, rest = seen(carrier, g["hinge"]), seen(last, g["pivot"]), turned(carrier, m.r_a - m.r_b)
            chains.add_knee(above, drive.joints[0], hinge, pivot, turned(carrier, axis), rest, m.ratio, spin)
        elif isinstance(m, AnkleScrews):
            to_last = (frames.X[last].inverse() * frames.X[carrier]).rotation
            rods = m.couplers(np.zeros(2))
            for k in range(2):
                e = m.pars[k][15:18]
                start = seen(carrier, g["tops"][k] + m.at_zero[k] * e)
                rest, bottom = turned(last, -(to_last @ rods[k])), seen(last, g["bottoms"][k])
                chains.add_coupler(above, drive.joints[1], start, turned(carrier, e), bottom, rest, m.ratio, spin)
    chains.prepare()
    return chains
