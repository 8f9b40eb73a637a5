"""Unitree humanoids: motor places in frames, and the vendor's example gains.

Motors are named as in the vendor's URDFs without `_joint`. A G1 with 23 motors leaves places empty.

Sources: low-level examples of unitree_sdk2 and unitree_sdk2_python (G1, H1, H1-2), unitree_ros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from humanoid_control.errors import UnknownNameError

ENABLED = 1  # mode byte of a motor that is on
STRONG_ENABLED = 10  # for the large motors of an H1
KEPT_NAMES = 3  # names listed in a message


class UnitreeMotor(NamedTuple):
    """Motor: joint, place in frames, kp [N m/rad], kd [N m s/rad], mode byte when on."""

    name: str
    id: int
    kp: float
    kd: float
    on: int = ENABLED


class UnitreeModel(NamedTuple):
    """Unitree robot.

    Attributes:
        machines: known values of `mode_machine`; empty: none.
    """

    name: str
    family: str
    motors: tuple[UnitreeMotor, ...]
    machines: frozenset[int] = frozenset()

    def motor(self, joint: str) -> UnitreeMotor | None:
        """Return the motor of a joint; None for other names."""
        plain = joint.removesuffix("_joint")
        return next((m for m in self.motors if m.name == plain), None)

    def at(self, place: int) -> UnitreeMotor | None:
        """Return the motor at a place; None if empty."""
        return next((m for m in self.motors if m.id == place), None)


def _sides(pattern: str) -> list[str]:
    return [f"{side}_{name}" for side in ("left", "right") for name in pattern.split()]


def _motors(
    names: Sequence[str], kp: Sequence[float], kd: Sequence[float], places: Sequence[int]
) -> tuple[UnitreeMotor, ...]:
    rows = zip(names, places, kp, kd, strict=True)
    return tuple(UnitreeMotor(name, place, float(p), float(d)) for name, place, p, d in rows)


G1_ARM = "shoulder_pitch shoulder_roll shoulder_yaw elbow wrist_roll wrist_pitch wrist_yaw"
G1_NAMES = [
    *_sides("hip_pitch hip_roll hip_yaw knee ankle_pitch ankle_roll"),
    *("waist_yaw", "waist_roll", "waist_pitch"),
    *_sides(G1_ARM),
]
G1 = UnitreeModel(
    "g1",
    "hg",
    _motors(
        G1_NAMES,
        [*(60, 60, 60, 100, 40, 40) * 2, *(60, 40, 40), *(40,) * 14],
        [*(1, 1, 1, 2, 1, 1) * 2, *(1,) * 17],
        range(29),
    ),
    frozenset((2, 3, 5, 6, 11, 12, 13, 14, 15, 16, 18)),
)
LACKS = ("waist_roll", "waist_pitch", *_sides("wrist_pitch wrist_yaw"))
G1_23 = UnitreeModel("g1_23", "hg", tuple(m for m in G1.motors if m.name not in LACKS), frozenset((1, 4, 10)))
H1_2 = UnitreeModel(
    "h1_2",
    "hg",
    _motors(
        [*_sides("hip_yaw hip_pitch hip_roll knee ankle_pitch ankle_roll"), "torso", *_sides(G1_ARM)],
        [*(100, 100, 100, 100, 80, 80) * 2, 100, *(50,) * 14],
        [1] * 27,
        range(27),
    ),
)
H1_WEAK, H1_STRONG = (60.0, 1.5, ENABLED), (200.0, 5.0, STRONG_ENABLED)  # kp, kd, mode byte
H1_PLACES = {
    "right_hip_roll": 0,
    "right_hip_pitch": 1,
    "right_knee": 2,
    "left_hip_roll": 3,
    "left_hip_pitch": 4,
    "left_knee": 5,
    "torso": 6,
    "left_hip_yaw": 7,
    "right_hip_yaw": 8,
}  # place 9 is empty
H1_WEAK_PLACES = {
    "left_ankle": 10,
    "right_ankle": 11,
    "right_shoulder_pitch": 12,
    "right_shoulder_roll": 13,
    "right_shoulder_yaw": 14,
    "right_elbow": 15,
    "left_shoulder_pitch": 16,
    "left_shoulder_roll": 17,
    "left_shoulder_yaw": 18,
    "left_elbow": 19,
}
H1 = UnitreeModel(
    "h1",
    "go",
    tuple(UnitreeMotor(name, place, *H1_STRONG) for name, place in H1_PLACES.items())
    + tuple(UnitreeMotor(name, place, *H1_WEAK) for name, place in H1_WEAK_PLACES.items()),
)

MODELS = {m.name: m for m in (G1, G1_23, H1, H1_2)}
"""Robots by their names in a hardware file."""


def model_of(name: str) -> UnitreeModel:
    """Return a model by name.

    Raises:
        UnknownNameError: if unknown.
    """
    if name not in MODELS:
        raise UnknownNameError("Unitree model", name, MODELS)
    return MODELS[name]


def misplaced(model: UnitreeModel, joints: Sequence[tuple[str, int]]) -> str:
    """Return why joints do not fit a model; empty: they do."""
    wrong = []
    for name, place in joints:
        motor = model.motor(name)
        if motor is not None and motor.id != place:
            wrong.append(f"{name} is motor {motor.id} of {model.name}, not {place}")
        # an unknown joint name fits if its place has a motor
        elif motor is None and model.at(place) is None:
            wrong.append(f"{model.name} has no motor {place} ({name})")
    more = f" and {len(wrong) - KEPT_NAMES} more" if len(wrong) > KEPT_NAMES else ""
    return "; ".join(wrong[:KEPT_NAMES]) + more
