"""A person of sticks: fourteen bodies with markers, a motion of it, and its OpenSim file; nobody was recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from humanoid_control.human import (
    AnatomicalJoint,
    Coordinate,
    CoordinateAxis,
    Function,
    Marker,
    OffsetFrame,
    Person,
    PersonBody,
)

LINE = Function((0.0, 1.0))
X, Y, Z = np.eye(3)
# Body: parent, joint in the parent [m], mass [kg], length downwards (negative: upwards) [m], axes of its angles.
SEGMENTS = {
    "torso": ("pelvis", (0.0, 0.08, 0.0), 34.0, -0.45, (Z, X, Y)),
    "humerus": ("torso", (0.0, 0.38, 0.18), 2.0, 0.28, (Z, X, Y)),
    "ulna": ("humerus", (0.0, -0.28, 0.0), 1.1, 0.24, (Z, Y)),
    "hand": ("ulna", (0.0, -0.24, 0.0), 0.5, 0.1, (Z,)),
    "femur": ("pelvis", (0.0, -0.05, 0.09), 9.0, 0.42, (Z, X, Y)),
    "tibia": ("femur", (0.0, -0.42, 0.0), 3.7, 0.42, (Z,)),
    "calcn": ("tibia", (0.0, -0.42, 0.0), 1.2, 0.06, (Z, X)),
}
CORNERS = np.array([[0.04, 0.0, 0.05], [-0.05, 0.25, 0.0], [0.03, 0.6, -0.05], [0.05, 0.95, 0.03]])


def _box(name: str, mass: float, length: float) -> PersonBody:
    size = abs(length)
    inertia = mass * np.diag([size**2 / 12 + 4e-4, 2e-3, size**2 / 12 + 4e-4])
    return PersonBody(name, mass, np.array([0.0, -length / 2, 0.0]), inertia)


def stick_person() -> Person:
    """The person: y up, x forward, z to the right; 33 coordinates, 56 markers, 80 kg."""
    root = AnatomicalJoint(
        "ground_pelvis", "ground", "pelvis", rotations=tuple(
            CoordinateAxis(a, LINE, f"pelvis_{n}") for a, n in zip((Z, X, Y), ("tilt", "list", "rotation"), strict=True)
        ), translations=tuple(CoordinateAxis(a, LINE, f"pelvis_t{n}") for a, n in zip((X, Y, Z), "xyz", strict=True)),
    )  # fmt: skip
    bodies, joints = [_box("pelvis", 11.0, -0.1)], [root]
    coordinates = [Coordinate(f"pelvis_{n}") for n in ("tilt", "list", "rotation")]
    coordinates += [Coordinate(f"pelvis_t{n}", False, 0.95 if n == "y" else 0.0) for n in "xyz"]
    for name, (parent, at, mass, length, axes) in SEGMENTS.items():
        for side in ("",) if name == "torso" else ("_r", "_l"):
            own, up = name + side, parent if parent in ("pelvis", "torso") else parent + side
            place = np.array(at) * (1, 1, -1 if side == "_l" else 1)
            bodies.append(_box(own, mass, length))
            names = [f"{own}_{k}" for k in range(len(axes))]
            turns = tuple(CoordinateAxis(a, LINE, n) for a, n in zip(axes, names, strict=True))
            joints.append(AnatomicalJoint(f"{own}_joint", up, own, OffsetFrame(np.eye(3), place), OffsetFrame(), turns))
            coordinates += [Coordinate(n, True, 0.0, -2.6, 2.6, True) for n in names]
    markers = []
    for body in bodies:
        length = {"pelvis": -0.1}.get(body.name) or SEGMENTS[body.name.partition("_")[0]][3]
        places = CORNERS * (1.0, -length, 1.0) + (0.0, 0.0, 0.0)
        if body.name.startswith("calcn"):
            places = np.array([[-0.06, -0.06, 0.0], [0.18, -0.06, 0.04], [0.18, -0.06, -0.04], [0.05, 0.0, 0.03]])
        markers += [Marker(f"m{k}_{body.name}", body.name, p) for k, p in enumerate(places)]
    return Person("stick person", tuple(bodies), tuple(joints), tuple(coordinates), tuple(markers))


def swaying(person: Person, times: np.ndarray, size: float = 1.0) -> np.ndarray:
    """q (T, n) of somebody who stands upright for 3 s, and then moves arms and trunk smoothly."""
    rng = np.random.default_rng(3)
    rate, phase = rng.uniform(0.3, 0.6, person.n), rng.uniform(0, 2 * np.pi, person.n)
    amplitude = np.where(person.rotational, 0.3, 0.03) * size
    upper = np.array([any(w in n for w in ("humerus", "ulna", "hand", "torso")) for n in person.names])
    begin = np.clip((times - 3.0) / 2.0, 0.0, 1.0)[:, None] ** 2
    moved = np.sin(2 * np.pi * rate * times[:, None] + phase) - np.sin(2 * np.pi * 3.0 * rate + phase)
    return np.asarray(person.rest + begin * np.where(upper, amplitude, 0.0) * moved)


def write_osim(person: Person, path: Path) -> Path:
    """Write an OpenSim model whose joints turn about up to three axes and move along up to three."""

    def three(v: np.ndarray) -> str:
        return " ".join(f"{x:.17g}" for x in np.asarray(v, dtype=float))

    def axis(name: str, vector: np.ndarray, coordinate: str) -> str:
        function = (
            "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"
            if coordinate
            else "<Constant><value>0</value></Constant>"
        )
        return (
            f'<TransformAxis name="{name}"><coordinates>{coordinate}</coordinates><axis>{three(vector)}</axis>'
            f"{function}</TransformAxis>"
        )

    def frame(name: str, body: str, F: OffsetFrame) -> str:
        parent = "/ground" if body == "ground" else f"/bodyset/{body}"
        return (
            f'<PhysicalOffsetFrame name="{name}"><socket_parent>{parent}</socket_parent>'
            f"<translation>{three(F.p)}</translation><orientation>0 0 0</orientation></PhysicalOffsetFrame>"
        )

    by_name = {c.name: c for c in person.all_coordinates}
    joints, bodies, markers = [], [], []
    for j in person.joints:
        spare = [a for a in (X, Y, Z) if not any(abs(a @ b.vector) > 0.9 for b in j.rotations)]
        turns = [(a.vector, a.coordinate) for a in j.rotations] + [(a, "") for a in spare]
        moves = [(a.vector, a.coordinate) for a in j.translations] or [(a, "") for a in (X, Y, Z)]
        own = [by_name[a.coordinate] for a in (*j.rotations, *j.translations)]
        coordinates = "".join(
            f'<Coordinate name="{c.name}"><default_value>{c.default}</default_value>'
            f"<range>{max(c.lower, -99)} {min(c.upper, 99)}</range><clamped>{str(c.clamped).lower()}</clamped>"
            "</Coordinate>"
            for c in own
        )
        axes = "".join(axis(f"rotation{k + 1}", *t) for k, t in enumerate(turns))
        axes += "".join(axis(f"translation{k + 1}", *t) for k, t in enumerate(moves))
        joints.append(
            f'<CustomJoint name="{j.name}"><socket_parent_frame>{j.name}_P</socket_parent_frame>'
            f"<socket_child_frame>{j.name}_C</socket_child_frame><coordinates>{coordinates}</coordinates><frames>"
            f"{frame(j.name + '_P', j.parent, j.P)}{frame(j.name + '_C', j.child, j.C)}</frames>"
            f"<SpatialTransform>{axes}</SpatialTransform></CustomJoint>"
        )
    for b in person.bodies:
        inertia = (*np.diag(b.inertia), b.inertia[0, 1], b.inertia[0, 2], b.inertia[1, 2])
        bodies.append(
            f'<Body name="{b.name}"><mass>{b.mass}</mass><mass_center>{three(b.com)}</mass_center>'
            f"<inertia>{three(inertia)}</inertia></Body>"
        )
    for m in person.markers:
        markers.append(
            f'<Marker name="{m.name}"><socket_parent_frame>/bodyset/{m.body}</socket_parent_frame>'
            f"<location>{three(m.place)}</location></Marker>"
        )
    sets = {"BodySet": bodies, "JointSet": joints, "MarkerSet": markers}
    inner = "".join(f"<{n}><objects>{''.join(e)}</objects></{n}>" for n, e in sets.items())
    head = f'<OpenSimDocument Version="40000"><Model name="{person.name}"><gravity>0 -9.80665 0</gravity>'
    path.write_text(f"<?xml version='1.0'?>{head}{inner}</Model></OpenSimDocument>")
    return path
