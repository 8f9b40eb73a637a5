"""Dynamically feasible motion with references for controllers and learners."""

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
    """Feasible motion of one robot, T frames at an even rate. Vectors are in world axes.

    Attributes:
        rate: [Hz].
        clock: time of the retargeted clip (T,) [s].
        q: pinocchio convention (T, nq).
        v: (T, nv).
        a: (T, nv); solves the base's equations of motion.
        center: centre of mass (T, 3) [m].
        momentum: angular momentum about the centre of mass (T, 3) [N m s].
        zmp: zero-moment point (T, 2) [m].
        stands: foot on the floor (T, 2).
        toe_only: True where a foot stands on its toe edge only (T, 2).
        sole_position: reference of the frame below the ankle (T, 2, 3) [m].
        sole_twist: linear, angular, in the world (T, 2, 6).
        forces: contact forces on the sole corners, world frame (T, 8, 3) [N].
        torque: drive torque (T, n) [N m].
        infeasible: zero-moment point outside the support (T,) [m].
        missing: force [N] and moment about the centre of mass [N m] beyond the contacts (T, 6).
        moved: mean distance of seven points from the retargeted motion, in world and root axes (T, 2) [m].
        clearance: smallest between shapes (T,) [m].
        errors: upper bounds of target distances of `WholeBodyTrajectory.point_names` (T, 20) [m].
        speed_share: largest share of a limit (T,).
        torque_share: largest resulting share of a limit (T,).
        way: kept share of the feet's way.
        filled: filled flight [s].
        center_error: 95th percentile distance of q's centre of mass from `center` [m].
        fallback: why this is the retargeted motion; empty: feasible apart from `infeasible`.
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
        """Frame times (T,) [s]."""
        return np.arange(len(self)) / self.rate

    @property
    def playing(self) -> np.ndarray:
        """Frames of the running clip, without held ends (T,)."""
        moving = np.flatnonzero((self.clock > self.clock[0]) & (self.clock < self.clock[-1]))
        out = np.zeros(len(self), dtype=bool)
        if len(moving):
            out[moving[0] : moving[-1] + 1] = True
        return out

    def trajectory(self) -> WholeBodyTrajectory:
        """Return the motion as a trajectory."""
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
        """Write an NPZ file atomically, without pickle.

        Raises:
            ConfigError: if it cannot be written.
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
            ClipError: if it is unreadable, incomplete or not finite.
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
