"""Right arm of a person from stature and mass: segments of de Leva 1996, ranges of the AAOS 1965.

Zero is the hanging arm; x forward, y left, z up. Positive: adduction, extension, external rotation, elbow flexion,
supination, wrist adduction (ulnar) and extension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.reaching.optimal.arm import GRAVITY, Arm
from humanoid_control.reaching.optimal.spatial_motion import ArmModel

REFERENCE_HEIGHT = 1.741  # [m] men of de Leva 1996, table 4


class ArmSegment(NamedTuple):
    """Arm segment of men (de Leva 1996, table 4).

    Attributes:
        length: at the reference height [m].
        mass: fraction of the body's.
        center: from the upper end, fraction of the length.
        gyration: sagittal, transverse, longitudinal radii, fractions of the length.
    """

    length: float
    mass: float
    center: float
    gyration: tuple[float, float, float]


UPPER_ARM = ArmSegment(0.2817, 0.0271, 0.5772, (0.285, 0.269, 0.158))
FOREARM = ArmSegment(0.2689, 0.0162, 0.4574, (0.276, 0.265, 0.121))
HAND = ArmSegment(0.0862, 0.0061, 0.7900, (0.628, 0.513, 0.401))  # to the third knuckle, the reaching point


class PersonJoint(NamedTuple):
    """Joint: axis in the hanging arm, range [deg], and its segment (0, 1, 2)."""

    axis: tuple[float, float, float]
    range: tuple[float, float]
    segment: int


JOINTS = {
    "shoulder_abduction": PersonJoint((1.0, 0.0, 0.0), (-180.0, 50.0), 0),
    "shoulder_flexion": PersonJoint((0.0, 1.0, 0.0), (-180.0, 60.0), 0),
    "shoulder_rotation": PersonJoint((0.0, 0.0, -1.0), (-70.0, 90.0), 0),
    "elbow_flexion": PersonJoint((0.0, -1.0, 0.0), (0.0, 150.0), 1),
    "forearm_rotation": PersonJoint((0.0, 0.0, -1.0), (-80.0, 80.0), 1),
    "wrist_adduction": PersonJoint((0.0, 1.0, 0.0), (-20.0, 30.0), 2),
    "wrist_extension": PersonJoint((1.0, 0.0, 0.0), (-80.0, 70.0), 2),
}
SETS = {
    2: ("shoulder_flexion", "elbow_flexion"),
    4: tuple(JOINTS)[:4],
    5: tuple(JOINTS)[:5],
    7: tuple(JOINTS),
}


def person_arm(joints: int = 4, mass: float = 75.0, height: float = 1.75) -> Arm:
    """Return the right arm of a person; distal segments move with the last joint.

    Args:
        joints: 2 (shoulder flexion, elbow), 4, 5 (and forearm rotation) or 7 (and wrist).
        mass: body mass [kg].
        height: stature [m].

    Raises:
        ConfigError: if the number of joints is unsupported, or mass or height is implausible.
    """
    if joints not in SETS:
        raise ConfigError(f"unknown arm with {joints} joints; available: {', '.join(map(str, SETS))}")
    if not (np.isfinite(mass) and np.isfinite(height) and mass > 0 and 0.3 < height < 3.0):
        raise ConfigError(f"a person of {mass:g} kg and {height:g} m is implausible")
    scale, names = height / REFERENCE_HEIGHT, SETS[joints]
    used = [JOINTS[name] for name in names]
    p, bodies = np.zeros((joints, 3)), [pin.Inertia.Zero() for _ in names]
    origin_of = [0.0, -UPPER_ARM.length * scale, -(UPPER_ARM.length + FOREARM.length) * scale]  # of segments, hanging
    places = [origin_of[j.segment] for j in used]
    for k in range(1, joints):
        p[k, 2] = places[k] - places[k - 1]
    for s, segment in enumerate((UPPER_ARM, FOREARM, HAND)):
        last = max(k for k, j in enumerate(used) if j.segment <= s)
        m, length = segment.mass * mass, segment.length * scale
        center = np.array([0.0, 0.0, origin_of[s] - segment.center * length - places[last]])
        radii = np.array(segment.gyration) * length
        bodies[last] += pin.Inertia(m, center, np.diag(m * radii**2))
    model = ArmModel(
        np.tile(np.eye(3), (joints, 1, 1)),
        p,
        np.array([j.axis for j in used]),
        np.array([b.mass for b in bodies]),
        np.array([b.lever for b in bodies]),
        np.array([b.inertia for b in bodies]),
        np.array([0.0, 0.0, origin_of[2] - HAND.length * scale - places[-1]]),
        np.array([0.0, 0.0, -GRAVITY]),
    )
    lower, upper = np.deg2rad([j.range for j in used]).T
    endless = np.full(joints, np.inf)
    return Arm("person, right arm", names, model, lower, upper, endless, endless, np.zeros(3))
