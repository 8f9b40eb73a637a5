"""A leg with a full knee screw and two ankle screws: for our engine, and as closed chains for pinocchio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from evidence.benchmarks.closed_chains import ClosedChains, KneeScrewLoop, ScrewShaft
from humanoid_control.multibody import Body, Inertia, Joint, Model
from humanoid_control.multibody.couplings import (
    COUPLER_SCREW,
    HINGE_SCREW,
    HINGE_TILT,
    CouplerGeometry,
    coupler_parameters,
    coupler_screw,
    hinge_parameters,
)
from humanoid_control.multibody.layout import REVOLUTE
from humanoid_control.multibody.mechanisms import rotated
from humanoid_control.multibody.model import axis_to_z, from_pinocchio

RATIO = 2 * np.pi / 0.005
SHAFT = ScrewShaft(RATIO, 1.5e-4, 0.9e-4)
HINGE_B, PIVOT_A = np.array([-0.045, 0.0, -0.14]), np.array([-0.034, 0.0, -0.043])
KNEE_AXIS = np.array([0.0, 1.0, 0.0])
KNEE_AT = np.array([0.0, 0.0, -0.44])
TOPS = np.array([[-0.046, 0.04, -0.09], [-0.046, -0.04, -0.09]])
BOTTOMS = np.array([[-0.055, 0.045, 0.004], [-0.055, -0.045, 0.004]])
DIRECTION, COUPLER = np.array([0.02, 0.03, -1.0]) / np.linalg.norm([0.02, 0.03, -1.0]), 0.18
ANKLE_AT = np.array([0.0, 0.0, -0.43])
AXIS_1, AXIS_2 = np.array([1.0, 0.05, 0.0]) / np.hypot(1, 0.05), np.array([0.0, -1.0, 0.1]) / np.hypot(1, 0.1)
UNIT = (0.6, np.array([0.01, 0.02, -0.1]), np.diag([2e-3, 2.2e-3, 3e-4]))  # mass, centre from B, inertia about it


@dataclass(frozen=True)
class Leg:
    """Coordinates of both: (base,) hip, knee, two of the ankle."""

    model: Model
    tree: pin.Model
    couplers: tuple[np.ndarray, ...]

    def closure(self, q: np.ndarray) -> list[float]:
        """By how much each ankle coupler's length is off [m]: carriage and foot placed by hand, ankle angles last."""
        out = []
        for par, top, bottom in zip(self.couplers, TOPS, BOTTOMS, strict=True):
            travel = coupler_screw(par, 0, q[-2], q[-1])[0]
            foot = ANKLE_AT + rotated(AXIS_1, q[-2], rotated(AXIS_2, q[-1], bottom))
            out.append(float(np.linalg.norm(foot - top - travel * DIRECTION)) - COUPLER)
        return out

    def chains(self, helper: float) -> ClosedChains:
        """The same leg with pinocchio's joints and closing points."""
        chains, rest = ClosedChains(self.tree, helper), PIVOT_A + KNEE_AT - HINGE_B
        unit = pin.Inertia(UNIT[0], UNIT[1], UNIT[2])
        chains.add_knee("hip", "knee", KneeScrewLoop(HINGE_B, PIVOT_A, KNEE_AXIS, rest), SHAFT, unit)
        for par, top, bottom in zip(self.couplers, TOPS, BOTTOMS, strict=True):
            carriage = top + coupler_screw(par, 0, 0.0, 0.0)[0] * DIRECTION
            rod = carriage - ANKLE_AT - bottom
            chains.add_coupler("knee", "foot", carriage, DIRECTION, bottom, rod, SHAFT)
        chains.prepare()
        return chains


def knee_and_ankle(base: bool = False) -> Leg:
    """The leg on a fixed or a free pelvis."""
    tree, rng = pin.Model(), np.random.default_rng(1)
    tree.gravity.linear = np.array([0.0, 0.0, -9.81])
    at = 0
    if base:
        at = tree.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
        tree.appendBodyToJoint(at, inertia(rng, 20.0, 0.0), pin.SE3.Identity())
    for name, axis, place, mass in (
        ("hip", np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.1, -0.1]), 6.0),
        ("knee", KNEE_AXIS, KNEE_AT, 4.0),
        ("ankle", AXIS_1, ANKLE_AT, 0.3),
        ("foot", AXIS_2, np.zeros(3), 1.2),
    ):
        at = tree.addJoint(at, pin.JointModelRevoluteUnaligned(axis), pin.SE3(np.eye(3), place), name)
        tree.appendBodyToJoint(at, inertia(rng, mass, -0.1 if mass > 2 else -0.03), pin.SE3.Identity())
    ours = from_pinocchio(tree)
    bodies = list(ours.bodies)
    thigh, shank = ours.turn["hip"], ours.turn["knee"]
    # The unit: z along the knee's axis, x along the screw at rest, as `hinge_tilt` counts its angle.
    rest = PIVOT_A + KNEE_AT - HINGE_B
    axes = np.column_stack([rest / np.linalg.norm(rest), np.cross(KNEE_AXIS, rest / np.linalg.norm(rest)), KNEE_AXIS])
    m, c, about_c = UNIT
    hinge = tuple(hinge_parameters(HINGE_B - KNEE_AT, PIVOT_A, KNEE_AXIS))
    unit = Inertia.about_com(m, axes.T @ c, axes.T @ about_c @ axes)
    tilt = Joint(REVOLUTE, ("knee",), HINGE_TILT, (1.0, 0.0, *hinge))
    spin = Joint(REVOLUTE, ("knee",), HINGE_SCREW, (RATIO, 0.0, *hinge))
    shaft = Inertia(0.0, np.zeros(3), np.diag([SHAFT.across, SHAFT.across, SHAFT.along]))
    along_x = axis_to_z(np.array([1.0, 0.0, 0.0]))
    bodies += [
        Body("unit", "hip", tilt, unit, axes.T @ thigh, thigh.T @ HINGE_B),
        Body("knee_shaft", "unit", spin, shaft, along_x.T),
    ]
    couplers = []
    for k in range(2):
        screw = CouplerGeometry(ANKLE_AT, AXIS_1, np.zeros(3), AXIS_2, BOTTOMS[k], TOPS[k], DIRECTION, COUPLER)
        couplers.append(coupler_parameters(screw))
        screw = Joint(REVOLUTE, ("ankle", "foot"), COUPLER_SCREW, (RATIO, 0.0, *couplers[k]))
        turned = axis_to_z(DIRECTION).T @ shank
        bodies.append(Body(f"ankle_shaft{k}", "knee", screw, shaft, turned, shank.T @ TOPS[k]))
    first = ours.bodies[0].joint.coordinates if base else ()
    return Leg(Model(bodies, [*first, "hip", "knee", "ankle", "foot"]), tree, tuple(couplers))


def inertia(rng: np.random.Generator, mass: float, z: float) -> pin.Inertia:
    """A plain body whose centre is below (or above) its joint."""
    half = rng.normal(size=(3, 3)) * 0.05
    about = mass * (half @ half.T + 1e-3 * np.eye(3))
    return pin.Inertia(mass, np.array([0.01, -0.005, z]), about)
