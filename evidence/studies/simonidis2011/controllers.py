"""Controllers of section 6: a 7-DoF arm swings, with a payload that their model does not know (figure 10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.simulation.drives.torque_control import (
    ComputedTorque,
    EncoderMotion,
    IndependentPid,
    JointMotion,
    PayloadPlant,
    RecursiveController,
    TorqueController,
    contraction,
)

DT, C = 1e-3, 15.0  # [s], [1/s]
STEPS = 1000
LIMIT = np.array([80.0, 80, 60, 60, 30, 20, 20])  # [N m]
START = np.array([0.2, 0.2, 0, -0.8, 0, 0, 0])  # [rad]
SWING = np.array([0.8, 0.5, -0.6, -0.9, 0.7, 0.5, -0.5])
HAND, TIP = 7, np.array([0, 0, -0.08])
PAYLOAD = 2.0  # [kg]
RESOLUTION = 2 * np.pi / 2**17
CASES = {
    "pid": "independent PID",
    "computed": "computed torque",
    "recursive": "recursive, exact accelerations",
    "encoders": "computed torque, encoders alone",
    "whole": "recursive, encoders, whole steps",
    "relaxed": "recursive, encoders, steps of 0.3",
    "heavy": "recursive, model 2 kg too heavy",
}
FILTER = 0.002  # [s] of the accelerations from encoders


def arm(payload: float = 0.0) -> pin.Model:
    """Shoulder, elbow and wrist with a person's lengths and masses, hanging; payload [kg] in the hand."""
    model = pin.Model()
    axes = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    links = [  # axis, distance from the joint before [m], mass [kg], its height [m], moments of inertia [kg m^2]
        ("y", 0.0, 1.0, 0.0, (0.02, 0.02, 0.02)),
        ("x", 0.0, 1.0, 0.0, (0.02, 0.02, 0.02)),
        ("z", 0.0, 2.0, -0.15, (0.03, 0.03, 0.01)),
        ("y", -0.3, 1.0, -0.05, (0.01, 0.01, 0.01)),
        ("z", 0.0, 1.2, -0.13, (0.015, 0.015, 0.008)),
        ("y", -0.26, 0.3, 0.0, (0.008, 0.008, 0.008)),
        ("x", 0.0, 0.5, -0.08, (0.008, 0.008, 0.006)),
    ]
    joint = 0
    for k, (axis, offset, mass, height, inertia) in enumerate(links):
        joint = model.addJoint(joint, axes[axis](), pin.SE3(np.eye(3), np.array([0, 0, offset])), f"joint_{k}")
        body = pin.Inertia(mass, np.array([0, 0, height]), np.diag(inertia))
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    if payload:
        point = pin.Inertia(payload, np.zeros(3), np.zeros((3, 3)))
        model.appendBodyToJoint(HAND, point, pin.SE3(np.eye(3), TIP))
    return model


def swing() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimum-jerk motion of 1 s at every step and one more: q, q', q'' (STEPS + 1, 7)."""
    s, h = np.arange(STEPS + 1)[:, None] * DT, 1e-4
    before, now, after = (minimum_jerk(np.clip(s + shift, 0, 1)) for shift in (-h, 0, h))
    return START + SWING * now, SWING * (after - before) / (2 * h), SWING * (after - 2 * now + before) / h**2


def controller(case: str) -> tuple[TorqueController, bool]:
    """Controller of a case, and whether it has encoders alone."""
    if case == "pid":
        model = arm()
        return IndependentPid(np.diag(pin.crba(model, model.createData(), START)), LIMIT, C, DT), False
    if case in ("computed", "encoders"):
        return ComputedTorque(arm(), LIMIT, C), case == "encoders"
    if case in ("recursive", "heavy"):
        return RecursiveController(arm(PAYLOAD if case == "heavy" else 0.0), LIMIT, C, DT, 1.0, 0.0), False
    recursive = RecursiveController(arm(), LIMIT, C, DT, 0.3, FILTER)
    if case == "whole":
        recursive.alpha = 1.0  # beyond the bound that the controller itself keeps
    return recursive, True


def swing_arm(case: str, payload: float) -> dict[str, Any]:
    """Track the swing: root mean square error over time and joints [deg], share of the steps at a limit, and the
    spectral radius by which the source tells what is stable."""
    Q, V, A = swing()
    one, coarse = controller(case)
    plant = PayloadPlant(arm(), payload, HAND, TIP, START, DT)
    encoders = EncoderMotion(RESOLUTION, FILTER, DT) if coarse else None
    errors, at_limit = [], 0
    for k in range(STEPS):
        measured = plant.exact() if encoders is None else encoders.read(plant.q)
        tau = one.torque(JointMotion(Q[k], V[k], A[k]), measured)
        at_limit += bool((np.abs(tau) >= LIMIT).any())
        plant.step(tau)
        errors.append(Q[k + 1] - plant.q)
    known = arm(PAYLOAD if case == "heavy" else 0.0)
    return {
        "case": case,
        "payload_kg": payload,
        "error_deg": float(np.degrees(np.sqrt(np.mean(np.square(errors))))),
        "at_limit": at_limit / STEPS,
        "radius": contraction(known, arm(payload), START),
    }
