"""Trajectories of joints, and of a whole body with its root and contacts."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.files import whole_file
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.retargeting.whole_body.scaling import WHOLE_BODY_POINTS


@dataclass(frozen=True)
class JointTrajectory:
    """Joint angles over time.

    Attributes:
        positions: (T, n) [rad]
        velocities: (T, n) forward differences [rad/s].
        errors: (T, 7) target distances [m].
        saturated: (T,) share of moving joints at their speed limit.
        clearance: (T,) least shape distance [m]; infinite above 5 cm.
        used_fallback: (T,) 0 none, 1 acceleration limit relaxed, 2 step shortened, 3 posture held; always 0 for
            differential methods.
    """

    joint_names: tuple[str, ...]
    rate: float
    positions: np.ndarray
    velocities: np.ndarray
    errors: np.ndarray
    saturated: np.ndarray
    clearance: np.ndarray
    used_fallback: np.ndarray

    def write_csv(self, path: str | Path) -> None:
        """Write time [s] and joints [rad] as columns, atomically; before the joints, a whole body has root position
        [m], root quaternion, and contacts (0, 1).

        Raises:
            ConfigError: if the file cannot be written.
        """
        with whole_file(Path(path)) as part, part.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["time", *self._head(), *self.joint_names])
            for k, row in enumerate(self._rows()):
                values = (f"{v:.6f}" if isinstance(v, float) else v for v in row)
                rows.writerow([f"{k / self.rate:.6f}", *values])

    def write_npz(self, path: str | Path, targets: np.ndarray) -> None:
        """Write names, rate, positions, velocities, errors and targets (T, 7, 3) [m], atomically.

        Raises:
            ConfigError: if the file cannot be written.
        """
        with whole_file(Path(path)) as part:
            np.savez_compressed(part, targets=targets, **self._arrays())

    def _head(self) -> tuple[str, ...]:
        """Return the names of the columns before the joints."""
        return ()

    def _rows(self) -> Iterable[Iterable[Any]]:
        """Return the values of each frame, joints last."""
        return self.positions

    def _arrays(self) -> dict[str, Any]:
        return {
            "joint_names": np.array(self.joint_names),
            "rate": self.rate,
            "positions": self.positions,
            "velocities": self.velocities,
            "errors": self.errors,
        }


@dataclass(frozen=True)
class WholeBodyTrajectory(JointTrajectory):
    """Joint angles and root motion over time; `errors` is (T, 20), of `point_names`.

    Attributes:
        root_position: (T, 3) in the world [m].
        root_quaternion: (T, 4) x, y, z, w.
        contacts: (T, 4) locked sole edges, in the order of `contacts.EDGES`.
    """

    root_position: np.ndarray
    root_quaternion: np.ndarray
    contacts: np.ndarray
    point_names: tuple[str, ...] = WHOLE_BODY_POINTS

    def q(self) -> np.ndarray:
        """Return configurations (T, nq) of the floating-base pinocchio model."""
        return np.hstack([self.root_position, self.root_quaternion, self.positions])

    def _head(self) -> tuple[str, ...]:
        root = (f"root_{a}" for a in ("x", "y", "z", "qx", "qy", "qz", "qw"))
        return (*root, *(f"contact_{e}" for e in EDGES))

    def _rows(self) -> Iterable[Iterable[Any]]:
        return ((*q[:7], *on.astype(int), *q[7:]) for q, on in zip(self.q(), self.contacts, strict=True))

    def _arrays(self) -> dict[str, Any]:
        return {
            **super()._arrays(),
            "point_names": np.array(self.point_names),
            "root_position": self.root_position,
            "root_quaternion": self.root_quaternion,
            "contacts": self.contacts,
            "contact_names": np.array(EDGES),
        }


def forward_differences(positions: np.ndarray, rate: float) -> np.ndarray:
    """Return the velocities (T, n) of positions (T, n) at a rate [Hz]; zero in the last frame."""
    out = np.zeros_like(positions)
    out[:-1] = np.diff(positions, axis=0) * rate
    return out
