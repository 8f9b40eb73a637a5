"""A motion that contacts and drives can carry, with everything that a controller or a learner asks of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError, first_line
from humanoid_control.files import whole_file
from humanoid_control.performing.contact_plan import Change
from humanoid_control.retargeting import WholeBodyTrajectory

MOST_CHANGES = 100_000  # in a file


@dataclass(frozen=True)
class DynamicMotion:
    """A feasible motion of one robot, T frames at an even rate.

    Attributes:
        robot: name of the robot. joint_names: (n,).
        rate: [Hz]. clock: (T,) time of the retargeted clip at each frame [s].
        q: (T, nq), v, a: (T, nv) in pinocchio's conventions; the base's acceleration fulfils the base's equations.
        center, center_velocity, center_acceleration: (T, 3) of the program [m, m/s, m/s^2].
        momentum, momentum_rate: (T, 3) about the centre of mass [N m s, N m].
        zmp: (T, 2) zero-moment point [m].
        stands, toe_only: (T, 2) a foot is on the floor; on its toe edge alone.
        sole_rotation: (T, 2, 3, 3), sole_position: (T, 2, 3) references of the soles, whose frames lie under the
            ankles [m].
        sole_twist, sole_acceleration: (T, 2, 6) linear, then angular, in the world.
        forces: (T, 8, 3) on the corners of the soles, within the cone of friction, in the world [N].
        torque: (T, n) of the drives [N m].
        infeasible: (T,) distance of the zero-moment point beyond the support [m]. missing: (T, 6) force [N] and moment
            about the centre of mass [N m] that no contact gives.
        moved: (T, 2) mean distance of the seven points from the retargeted motion, in the world and in the axes of the
            root [m].
        clearance: (T,) least distance of two shapes [m].
        errors: (T, 20) distance of each point of `WholeBodyTrajectory.point_names` from its target at most [m]: that of
            the retargeted motion, and how far the point was moved in the axes of the root.
        speed_share, torque_share: (T,) largest of all joints, as shares of their limits.
        changes: what was changed. way: share of the way of the feet that is kept. filled: seconds of flight.
        center_error: 95th percentile of the distance of the centre of mass of q from `center` [m].
        fallback: why this is the retargeted motion itself; empty where it is feasible as far as `infeasible` says.
    """

    robot: str
    joint_names: tuple[str, ...]
    rate: float
    clock: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    center: np.ndarray
    center_velocity: np.ndarray
    center_acceleration: np.ndarray
    momentum: np.ndarray
    momentum_rate: np.ndarray
    zmp: np.ndarray
    stands: np.ndarray
    toe_only: np.ndarray
    sole_rotation: np.ndarray
    sole_position: np.ndarray
    sole_twist: np.ndarray
    sole_acceleration: np.ndarray
    forces: np.ndarray
    torque: np.ndarray
    infeasible: np.ndarray
    missing: np.ndarray
    moved: np.ndarray
    clearance: np.ndarray
    errors: np.ndarray
    speed_share: np.ndarray
    torque_share: np.ndarray
    changes: tuple[Change, ...]
    way: float
    filled: float
    center_error: float
    fallback: str = ""

    def __len__(self) -> int:
        return len(self.q)

    @property
    def time(self) -> np.ndarray:
        """(T,) [s]."""
        return np.arange(len(self)) / self.rate

    @property
    def playing(self) -> np.ndarray:
        """(T,) True where the clip runs: the first and the last posture are not held."""
        moving = np.flatnonzero((self.clock > self.clock[0]) & (self.clock < self.clock[-1]))
        out = np.zeros(len(self), dtype=bool)
        if len(moving):
            out[moving[0] : moving[-1] + 1] = True
        return out

    def trajectory(self) -> WholeBodyTrajectory:
        """The motion as a trajectory, which all formats and measures take."""
        positions = self.q[:, 7:]
        velocity = np.zeros_like(positions)
        velocity[:-1] = np.diff(positions, axis=0) * self.rate
        contacts = np.stack([self.stands & ~self.toe_only, self.stands], axis=2).reshape(-1, 4)
        n = len(self)
        return WholeBodyTrajectory(
            self.joint_names,
            self.rate,
            positions,
            velocity,
            self.errors,
            (self.speed_share >= 1.0 - 1e-6) / positions.shape[1],
            self.clearance,
            np.zeros(n, dtype=np.int64),
            self.q[:, :3],
            self.q[:, 3:7],
            contacts,
        )

    def write(self, path: str | Path) -> None:
        """Write an NPZ file with all of it, without a pickle; whole or not at all.

        Raises:
            ConfigError: it cannot be written.
        """
        arrays: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "changes"}
        arrays["joint_names"] = np.array(self.joint_names)
        arrays["change_time"] = np.array([c.time for c in self.changes], dtype=float)
        arrays["change_what"] = np.array([c.what for c in self.changes], dtype=str)
        arrays["change_amount"] = np.array([c.amount for c in self.changes], dtype=float)
        arrays["change_unit"] = np.array([c.unit for c in self.changes], dtype=str)
        with whole_file(Path(path)) as part:
            np.savez_compressed(part, **arrays)

    @classmethod
    def read(cls, path: str | Path) -> DynamicMotion:
        """Read a file of `write`.

        Raises:
            ClipError: it cannot be read, lacks a field, or holds values that are not numbers.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError) as e:
            raise ClipError(f"{path}: is not a feasible motion: {first_line(e)}") from None
        lacking = [f.name for f in fields(cls) if f.name != "changes" and f.name not in found]
        if lacking:
            raise ClipError(f"{path}: is not a feasible motion: lacks {', '.join(lacking[:3])}")
        values: dict[str, Any] = {f.name: found[f.name] for f in fields(cls) if f.name in found}
        for name in ("q", "v", "a", "center", "zmp", "forces", "torque"):
            if not np.isfinite(values[name]).all():
                raise ClipError(f"{path}: {name} contains a non-numeric value")
        for name in ("rate", "way", "filled", "center_error"):
            values[name] = float(values[name])
        if not values["rate"] > 0:
            raise ClipError(f"{path}: the rate must be positive, got {values['rate']:g} Hz")
        values["robot"], values["fallback"] = str(values["robot"]), str(values["fallback"])
        values["joint_names"] = tuple(str(name) for name in values["joint_names"])
        columns = [found.get(f"change_{name}", np.zeros(0)) for name in ("time", "what", "amount", "unit")]
        rows = list(zip(*columns, strict=True))[:MOST_CHANGES]
        values["changes"] = tuple(Change(float(t), str(w), float(a), str(u)) for t, w, a, u in rows)
        return cls(**values)
