"""Measured forces on a person: force and moment over time, zeroed, filtered and brought to the frames of a clip.

The moment is about the world origin throughout. The centre of pressure is a quotient of measurements and rubbish where
the force is small (hundreds of metres in real files), so it is computed where it is asked for and never filtered,
interpolated or added up; forces and moments can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ClipError, SizeError
from humanoid_control.human.derivatives import low_pass, rate_of

LOADED = 20.0  # [N] normal force from which somebody stands on a plate ...
UNLOADED = 10.0  # ... and below which nobody does any more
_LARGEST_ZERO = 50.0  # [N] error of an unloaded plate
_QUIET = 10.0  # [N] half width of the noise of an unloaded plate
_QUIET_TIME = 0.05  # [s] of an unloaded plate at least, to zero it
_MOST_TILT = 10.0  # [deg] between gravity of the markers and of the forces


@dataclass(frozen=True, eq=False)
class MeasuredWrench:
    """Force and moment that one plate, or another sensor, exerts on a person.

    Args:
        name: of the plate.
        times: (n,) on the recording's clock [s].
        force: (n, 3) [N], world axes: on the person, so upwards where somebody stands.
        moment: (n, 3) about the world origin [N m].
        normal: (3,) unit normal of the surface, to the side of the person.
        surface: (3,) point of the surface [m]: the centre of a plate.
        body: body or foot that it acts on; "" where it is not known.
        corners: (4, 3) of the plate [m]; None where it is not known.
        saturated: first and last time [s] of each interval in which a channel was at its limit.
        warnings: what was found and done, one sentence each.
        unloaded: first and last time [s] of an interval in which the file says that nobody stood on it; None: not said.

    Raises:
        SizeError: shapes that disagree.
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
        """(n,) force along the normal [N]: how much the person weighs on the surface."""
        return self.force @ self.normal

    def moment_about(self, point: np.ndarray) -> np.ndarray:
        """(n, 3) moment about a point (3,) or points (n, 3) [m], world axes [N m]."""
        return self.moment - np.cross(point, self.force)

    def center_of_pressure(self) -> np.ndarray:
        """(n, 3) point of the surface about which the moment is along the normal [m]; NaN where nothing presses."""
        pressing = self.normal_force != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            arm = np.cross(self.normal, self.moment_about(self.surface)) / self.normal_force[:, None]
        return np.where(pressing[:, None], self.surface + arm, np.nan)

    def free_moment(self) -> np.ndarray:
        """(n,) moment about the normal through the centre of pressure [N m]; NaN where nothing presses."""
        return self.moment_about(self.center_of_pressure()) @ self.normal

    def rotated(self, R: np.ndarray) -> MeasuredWrench:
        """The same in other world axes: every vector x becomes R x; the origin stays."""
        turned = {k: getattr(self, k) @ R.T for k in ("force", "moment", "normal", "surface")}
        return replace(self, **turned, corners=None if self.corners is None else self.corners @ R.T)

    # -------- zero and load

    def zeroed(self) -> MeasuredWrench:
        """The wrench less its median while nobody stands on the plate.

        Unloaded are the samples that the file names. Without them they are those of the most frequent normal force
        between -50 and 50 N; a plate that never comes to rest there keeps its zero, with a warning. Samples that the
        file names but that carry a load are not used: the plate would pull at the person at other times.
        """
        quiet = self._stated_unloaded()
        if quiet is not None and self._pulls(quiet):
            other = self._saying(f"{self.name} is loaded while the file says that it is not: that is not used")
            return replace(other, unloaded=None).zeroed()
        quiet = self._unloaded() if quiet is None else quiet
        if quiet is None:
            return self._saying(f"{self.name} is never unloaded: its zero cannot be checked")
        zero_force, zero_moment = (np.nanmedian(x[quiet], axis=0) for x in (self.force, self.moment))
        out = replace(self, force=self.force - zero_force, moment=self.moment - zero_moment)
        size = float(np.linalg.norm(zero_force))
        return out._saying(f"{self.name} reads {size:.1f} N unloaded: taken out") if size > 5 else out

    def _stated_unloaded(self) -> np.ndarray | None:
        """Samples in which the file says that nobody stood on the plate; None where it does not say."""
        if self.unloaded is None:
            return None
        first, last = self.unloaded
        within = np.flatnonzero((self.times >= first - 1e-9) & (self.times <= last + 1e-9))
        return within if len(within) and np.isfinite(self.normal_force[within]).any() else None

    def _pulls(self, quiet: np.ndarray) -> bool:
        """Whether the plate would pull by more than 50 N at some time, were it unloaded in these samples."""
        v = self.normal_force - np.nanmedian(self.normal_force[quiet])
        return bool(np.nanpercentile(v, 1.0) < -_LARGEST_ZERO)

    def _unloaded(self) -> np.ndarray | None:
        """Samples in which nobody stands on the plate; None where there are too few."""
        v = self.normal_force
        small = np.sort(v[np.abs(v) < _LARGEST_ZERO])
        least = max(10, _QUIET_TIME * rate_of(self.times)) if len(v) > 1 else np.inf
        if len(small) < least:
            return None
        count = np.searchsorted(small, small + 2 * _QUIET, side="right") - np.arange(len(small))
        fullest = int(np.argmax(count))
        middle = float(np.median(small[fullest : fullest + count[fullest]]))
        quiet = np.flatnonzero(np.abs(v - middle) < _QUIET)
        return quiet if len(quiet) >= least else None

    def loaded(self, on: float = LOADED, off: float = UNLOADED) -> list[tuple[int, int]]:
        """First sample and the one after the last of each interval with somebody on the plate: the normal force rises
        to `on` and has not yet fallen below `off` [N]."""
        v = np.nan_to_num(self.normal_force)
        above, below = v >= on, v < off
        # The last decision before each sample holds: 1 where it rose above, 0 where it fell below.
        decided = np.where(above | below, np.arange(len(v)), 0)
        last = np.maximum.accumulate(decided)
        state = above[last]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], state.astype(np.int8), [0]])))
        return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    def cut(self, on: float = LOADED, off: float = UNLOADED) -> MeasuredWrench:
        """The wrench, exactly zero where nobody stands on the plate by `loaded`."""
        keep = np.zeros((len(self.times), 1), dtype=bool)
        for a, b in self.loaded(on, off):
            keep[a:b] = True
        return replace(self, force=np.where(keep, self.force, 0.0), moment=np.where(keep, self.moment, 0.0))

    # -------- filter and frames

    def low_passed(self, cutoff: float) -> MeasuredWrench:
        """Force and moment about the world origin through the filter of `derivatives`: with the cut-off of the
        kinematics [Hz], for unequal ones make moments at impact that no joint had.

        Raises:
            ConfigError: the cut-off is not between 0 and half the rate.
        """
        smooth = low_pass(self.times, np.hstack([self.force, self.moment]), cutoff)
        return replace(self, force=smooth[:, :3], moment=smooth[:, 3:])

    def resampled(self, times: np.ndarray) -> MeasuredWrench:
        """The wrench at other times (m,), linear between the samples; NaN before the first and after the last, where
        nobody measured (one step is borne with)."""
        slack = 1 / rate_of(self.times) if len(self.times) > 1 else 0.0
        outside = (times < self.times[0] - slack) | (times > self.times[-1] + slack)
        both = np.hstack([self.force, self.moment])
        out = np.stack([np.interp(times, self.times, column) for column in both.T], axis=1)
        out[outside] = np.nan
        return replace(self, times=np.array(times), force=out[:, :3], moment=out[:, 3:])

    def _saying(self, *sentences: str) -> MeasuredWrench:
        return replace(self, warnings=self.warnings + sentences)


def upright_force(wrench: MeasuredWrench) -> MeasuredWrench:
    """The wrench, turned round with a warning where the loaded plate seems to pull the person down: then it is that of
    the person on the plate."""
    v = wrench.normal_force
    pressing = np.abs(v) > LOADED
    if not pressing.any() or v[pressing].mean() >= 0:
        return wrench
    flipped = replace(wrench, force=-wrench.force, moment=-wrench.moment)
    return flipped._saying(f"the force of {wrench.name} points down: it is turned round, to be that on the person")


def saturated_intervals(times: np.ndarray, channels: np.ndarray) -> tuple[tuple[float, float], ...]:
    """First and last time [s] of each interval in which a channel was at its limit.

    At its limit a channel repeats its greatest or least number, and came there in a jump: a peak that is only rounded
    is reached in small steps.

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
    """Make sure that markers and forces are in the same axes.

    Args:
        up: (3,) vertical direction by the markers, as of a standing person.
        wrenches: of all plates, zeroed.
        clip, forces: names of the two files, for the message.

    Raises:
        ClipError: the mean force is tilted by more than 10 deg against that vertical. Forces of nobody say nothing.
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
    """Axis nearest to a vector, as +z, or the direction where it is near none."""
    unit = vector / np.linalg.norm(vector)
    k = int(np.argmax(np.abs(unit)))
    if abs(unit[k]) > np.cos(np.radians(_MOST_TILT / 2)):
        return f"{'+' if unit[k] > 0 else '-'}{'xyz'[k]}"
    return f"({unit[0]:.2f}, {unit[1]:.2f}, {unit[2]:.2f})"
