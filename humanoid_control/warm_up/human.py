"""Kernels of a recorded person compiled ahead: fit, calibration, inverse dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.human.calibration import columns
from humanoid_control.human.forces.sole_contact import outline_distance
from humanoid_control.human.forward_tracking import follow
from humanoid_control.human.kinematics import axis_directions, body_velocities, marker_positions, place_clip
from humanoid_control.human.live.frame_solver import arrange, fit_live
from humanoid_control.human.live.live_forces import measure_soles, move_soles, two_poles
from humanoid_control.human.marker_equations import make_equations
from humanoid_control.human.marker_solver import fit_frames, root_covariances
from humanoid_control.human.newton_euler import generalised_forces
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the fit of a person for this machine, only the first time: about half a minute"
KERNELS: tuple[Any, ...] = (
    axis_directions,
    place_clip,
    marker_positions,
    body_velocities,
    fit_frames,
    fit_live,
    arrange,
    move_soles,
    measure_soles,
    two_poles,
    root_covariances,
    make_equations,
    columns,
    generalised_forces,
    follow,
    outline_distance,
)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by analysing two bodies."""
    from humanoid_control.human import FitSettings, calibrate, fit, inverse_dynamics, weighted_inverse_dynamics
    from humanoid_control.human.analysis import root_wrench
    from humanoid_control.human.forward_tracking import track
    from humanoid_control.human.live.live_fit import LiveFit
    from humanoid_control.human.live.live_forces import LiveDynamics, PlateWrench

    person = _two_bodies()
    q = np.zeros((8, person.n))
    q[:, -1] = np.linspace(0.1, 0.4, len(q))
    markers = person.marker_positions(q)
    person.body_twists(q, q)
    labels = [m.name for m in person.markers]
    fit(person, markers, labels, settings=FitSettings(root=True))
    calibrate(person, markers, labels)
    loads = {"foot_r": np.zeros((len(q), 6))}
    inverse_dynamics(person, q, q, q, loads)
    weighted_inverse_dynamics(person, (q, q, q), loads, np.ones(person.n))
    track(person, np.arange(len(q)) / 100, (q, q, q), loads, (np.ones(person.n), None))
    live = LiveFit(person, up=-person.gravity)
    frame = live.fit(live.arranged(live.labels, markers[0]))
    if frame is not None:
        root_wrench(person, frame.q, np.zeros(6))
        dynamics, load = LiveDynamics(live.person, 6.0), PlateWrench(np.array([0, 500.0, 0, 0, 0, 0]), *np.eye(3)[1:])
        for k in range(2):
            dynamics.step(frame.q, 0.01 * k, (frame.std, frame.root_covariance), {"plate": load})
    outline_distance(np.zeros((1, 2)), np.zeros((1, 3, 2)))


def _two_bodies() -> Any:
    """Build a free thigh and a lower leg, named foot so that it may stand on a plate."""
    from humanoid_control.human import AnatomicalJoint, Coordinate, CoordinateAxis, Function, Marker, Person, PersonBody

    line, axes = Function((0.0, 1.0)), np.eye(3)
    body = {name: PersonBody(name, 2.0, np.zeros(3), 0.02 * np.eye(3)) for name in ("thigh", "foot_r")}
    root = AnatomicalJoint(
        "root",
        "ground",
        "thigh",
        rotations=tuple(CoordinateAxis(a, line, c) for a, c in zip(axes, "abc", strict=True)),
        translations=tuple(CoordinateAxis(a, line, c) for a, c in zip(axes, "xyz", strict=True)),
    )
    slide = Function((), (-1.0, 0.0, 1.0), (0.0, -0.4, -0.41))
    knee = AnatomicalJoint(
        "knee",
        "thigh",
        "foot_r",
        rotations=(CoordinateAxis(axes[2], line, "k"),),
        translations=(CoordinateAxis(axes[1], slide, "k"),),
    )
    coordinates = tuple(Coordinate(c, c not in "xyz") for c in "abcxyzk")
    corners = 0.1 * np.array([[1, 0, 0], [-1, 0.5, 0], [0, -1, 1], [0, 1, -1]])
    markers = tuple(Marker(f"{name}{k}", name, place) for name in body for k, place in enumerate(corners))
    return Person("two bodies", tuple(body.values()), (root, knee), coordinates, markers)


if __name__ == "__main__":
    compile_here(compile_kernels)
