"""Measured wrenches on a person: zeroed, filtered, resampled.

Moments are about the world origin. The centre of pressure is meaningless at small forces: it is never filtered,
interpolated or summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ClipError, SizeError
from humanoid_control.human.derivatives import low_pass, rate_of

LOADED = 20.0  # [N] normal force above which a plate is loaded ...
UNLOADED = 10.0  # ... until it falls below this
_LARGEST_ZERO = 50.0  # [N] largest offset of an unloaded plate
_QUIET = 10.0  # [N] half width of the noise of an unloaded plate
_QUIET_TIME = 0.05  # [s] shortest unloaded time for zeroing
_MOST_TILT = 10.0  # [deg] between the verticals of markers and forces


@dataclass(frozen=True, eq=False)
class MeasuredWrench:
    """Wrench of a plate, or another sensor, on a person.

    Attributes:
        times: (n,) on the recording's clock [s].
        force: (n, 3) on the person, world axes [N]: upward in stance.
        moment: (n, 3) about the world origin [N m].
        normal: (3,) unit vector toward the person.
        surface: (3,) point of the surface [m].
        body: body or foot; "": unknown.
        corners: (4, 3) [m], or None.
        saturated: first and last time [s] of saturated intervals.
        unloaded: first and last time [s] declared unloaded, or None.
    """

    name: str
    times: np.ndarray
    force: np.ndarray
    moment: np.ndarray
    normal: np.ndarray
    surface: np.ndarray
    body: str = ""
    corners: np.ndarray | None = None
    saturated: tuple[tuple[float, float], ...] = ()
    warnings: tuple[str, ...] = ()
    unloaded: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        n = len(self.times)
        for what, shape in (("force", (n, 3)), ("moment", (n, 3)), ("normal", (3,)), ("surface", (3,))):
            value = np.asarray(getattr(self, what), dtype=float)
            if value.shape != shape:
                raise SizeError(f"wrench '{self.name}': expected a {what} of shape {shape}, got {value.shape}")
            object.__setattr__(self, what, value)

    @property
    def normal_force(self) -> np.ndarray:
        """(n,) force along the normal [N]."""
        return self.force @ self.normal

    def moment_about(self, point: np.ndarray) -> np.ndarray:
        """Return moments (n, 3) [N m] about point (3,) or points (n, 3) [m]."""
        return self.moment - np.cross(point, self.force)

    def center_of_pressure(self) -> np.ndarray:
        """Return surface points (n, 3) [m] with moment along the normal; NaN without load."""
        pressing = self.normal_force != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            arm = np.cross(self.normal, self.moment_about(self.surface)) / self.normal_force[:, None]
        return np.where(pressing[:, None], self.surface + arm, np.nan)

    def free_moment(self) -> np.ndarray:
        """Return moments (n,) [N m] about the normal at the centre of pressure; NaN without load."""
        return self.moment_about(self.center_of_pressure()) @ self.normal

    def rotated(self, R: np.ndarray) -> MeasuredWrench:
        """Return the wrench in other world axes: x becomes R x."""
        turned = {k: getattr(self, k) @ R.T for k in ("force", "moment", "normal", "surface")}
        return replace(self, **turned, corners=None if self.corners is None else self.corners @ R.T)

    # -------- zero and load

    def zeroed(self) -> MeasuredWrench:
        """Return the wrench minus its unloaded median.

        Unloaded samples are declared by the file (unless loaded), else those of the most frequent normal force between
        -50 and 50 N. A plate that never rests there keeps its zero, with a warning.
        """
        quiet = self._stated_unloaded()
        if quiet is not None and self._pulls(quiet):
            other = self._saying(f"{self.name} is loaded while the file states it is not: the statement is ignored")
            return replace(other, unloaded=None).zeroed()
        quiet = self._unloaded() if quiet is None else quiet
        if quiet is None:
            return self._saying(f"{self.name} is never unloaded: its zero cannot be checked")
        zero_force, zero_moment = (np.nanmedian(x[quiet], axis=0) for x in (self.force, self.moment))
        out = replace(self, force=self.force - zero_force, moment=self.moment - zero_moment)
        size = float(np.linalg.norm(zero_force))
        return out._saying(f"{self.name} reads {size:.1f} N unloaded: subtracted") if size > 5 else out

    def _stated_unloaded(self) -> np.ndarray | None:
        """Return the samples declared unloaded, or None."""
        if self.unloaded is None:
            return None
        first, last = self.unloaded
        within = np.flatnonzero((self.times >= first - 1e-9) & (self.times <= last + 1e-9))
        return within if len(within) and np.isfinite(self.normal_force[within]).any() else None

    def _pulls(self, quiet: np.ndarray) -> bool:
        """Return True if this zero makes the plate pull."""
        v = self.normal_force - np.nanmedian(self.normal_force[quiet])
        return bool(np.nanpercentile(v, 1.0) < -_LARGEST_ZERO)

    def _unloaded(self) -> np.ndarray | None:
        v = self.normal_force
        small = np.sort(v[np.abs(v) < _LARGEST_ZERO])
        least = max(10, _QUIET_TIME * rate_of(self.times)) if len(v) > 1 else np.inf
        if len(small) < least:
            return None
        # Fullest window of width 2 _QUIET among the sorted small forces.
        count = np.searchsorted(small, small + 2 * _QUIET, side="right") - np.arange(len(small))
        fullest = int(np.argmax(count))
        middle = float(np.median(small[fullest : fullest + count[fullest]]))
        quiet = np.flatnonzero(np.abs(v - middle) < _QUIET)
        return quiet if len(quiet) >= least else None

    def loaded(self, on: float = LOADED, off: float = UNLOADED) -> list[tuple[int, int]]:
        """Return intervals [first, end) from rising to `on` until falling below `off` [N]."""
        v = np.nan_to_num(self.normal_force)
        above, below = v >= on, v < off
        # Hysteresis: each sample takes the last decision, 1 above `on`, 0 below `off`.
        decided = np.where(above | below, np.arange(len(v)), 0)
        last = np.maximum.accumulate(decided)
        state = above[last]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], state.astype(np.int8), [0]])))
        return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    def cut(self, on: float = LOADED, off: float = UNLOADED) -> MeasuredWrench:
        """Return the wrench, exactly zero outside `loaded`."""
        keep = np.zeros((len(self.times), 1), dtype=bool)
        for a, b in self.loaded(on, off):
            keep[a:b] = True
        return replace(self, force=np.where(keep, self.force, 0.0), moment=np.where(keep, self.moment, 0.0))

    # -------- filter and frames

    def low_passed(self, cutoff: float) -> MeasuredWrench:
        """Return the wrench filtered as in `derivatives`; cutoff [Hz].

        Another cut-off than the kinematic one creates false moments at impact.
        """
        smooth = low_pass(self.times, np.hstack([self.force, self.moment]), cutoff)
        return replace(self, force=smooth[:, :3], moment=smooth[:, 3:])

    def resampled(self, times: np.ndarray) -> MeasuredWrench:
        """Return the wrench at times (m,), linear; NaN outside the record."""
        slack = 1 / rate_of(self.times) if len(self.times) > 1 else 0.0
        outside = (times < self.times[0] - slack) | (times > self.times[-1] + slack)
        both = np.hstack([self.force, self.moment])
        out = np.stack([np.interp(times, self.times, column) for column in both.T], axis=1)
        out[outside] = np.nan
        return replace(self, times=np.array(times), force=out[:, :3], moment=out[:, 3:])

    def _saying(self, *sentences: str) -> MeasuredWrench:
        return replace(self, warnings=self.warnings + sentences)


def upright_force(wrench: MeasuredWrench) -> MeasuredWrench:
    """Return the wrench, reversed if it pulls the person down."""
    v = wrench.normal_force
    pressing = np.abs(v) > LOADED
    if not pressing.any() or v[pressing].mean() >= 0:
        return wrench
    flipped = replace(wrench, force=-wrench.force, moment=-wrench.moment)
    return flipped._saying(f"the force of {wrench.name} points down: reversed, as the force on the person")


def saturated_intervals(times: np.ndarray, channels: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Return first and last time [s] of intervals with a channel at its limit.

    There a channel repeats its largest or smallest number after a jump; rounded peaks have small steps.

    Args:
        times: (n,) [s].
        channels: (n, C) as recorded.
    """
    flat = np.zeros(len(times), dtype=bool)
    for channel in channels.T:
        steps = np.abs(np.diff(channel))
        if not len(steps) or not (steps > 0).any():
            continue
        changes = np.flatnonzero(steps > 0)
        quantum = steps[changes].min()
        used = np.count_nonzero(channel)
        usual = used / (1 + np.count_nonzero(steps[changes]))
        for limit in {channel.max(), channel.min()} - {0.0}:
            edges = np.flatnonzero(np.diff(np.concatenate([[0], (channel == limit).astype(np.int8), [0]])))
            for a, b in edges.reshape(-1, 2):
                jump = max(steps[a - 1] if a > 0 else 0.0, steps[b - 1] if b < len(channel) else 0.0)
                if b - a >= max(3, 3 * usual) and jump > 5 * quantum:
                    flat[a:b] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(np.int8), [0]])))
    return tuple((float(times[a]), float(times[b - 1])) for a, b in edges.reshape(-1, 2))


# -------- checks against a clip


def check_same_gravity(up: np.ndarray, wrenches: Sequence[MeasuredWrench], clip: str, forces: str) -> None:
    """Raise ClipError if zeroed wrenches have another vertical than `up` (3,) of the markers.

    `clip` and `forces` are file names.
    """
    total = np.sum([np.nan_to_num(w.cut().force).mean(axis=0) for w in wrenches], axis=0)
    size, length = float(np.linalg.norm(total)), float(np.linalg.norm(up))
    if size == 0 or length == 0:
        return
    tilt = np.degrees(np.arccos(np.clip(total @ up / (size * length), -1, 1)))
    if tilt > _MOST_TILT:
        raise ClipError(
            f"up is {_axis(up)} by the markers of {clip} and {_axis(total)} by the mean force of {forces}, {tilt:.0f} "
            "deg apart: they are in different axes, or not of the same motion: export both in the same axes"
        )


def _axis(vector: np.ndarray) -> str:
    """Return the nearest axis, such as +z, or the direction."""
    unit = vector / np.linalg.norm(vector)
    k = int(np.argmax(np.abs(unit)))
    if abs(unit[k]) > np.cos(np.radians(_MOST_TILT / 2)):
        return f"{'+' if unit[k] > 0 else '-'}{'xyz'[k]}"
    return f"({unit[0]:.2f}, {unit[1]:.2f}, {unit[2]:.2f})"
