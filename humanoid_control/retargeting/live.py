"""Live targets: markers become robot targets without buffering and without jumps."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ClipError, ConfigError, HumanoidError, UnknownNameError, first_few
from humanoid_control.mocap import BodyPoints, LiveBody, LiveCalibration, MarkerTracks, TrackSettings
from humanoid_control.mocap.live import FARTHEST, UP, LabelOrder, distinct
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting.scaling import POINTS, Scaler, Targets
from humanoid_control.robots import Robot

_TRY_EVERY = 0.5  # [s] between calibration attempts
_LATE = 2.5  # frames without data after which the markers count as hidden
_LEAST_LATE = 0.03  # [s]
_MOST_JITTER, _JITTER_TIME = 0.2, 2.0  # [s] maximum extra wait for late frames; its decay time


@dataclass(frozen=True)
class LiveSettings:
    """Settings of live targets.

    Attributes:
        marker_set: built-in name or YAML path; empty: detected from the labels.
        calibration: duration of the upright pose [s].
        upright: as `calibrate` of `scale_to_robot`.
        up: upward axis, "+x" ... "-z"; "auto": detected.
        fade: decay time of a vanished marker's velocity [s].
        return_speed: maximum correction speed when a marker returns [m/s].
        max_speed: of a target [m/s].
        timeout: silence after which the hold is reported [s].
        lead_in: time from the current posture to the markers [s].
    """

    marker_set: str = ""
    calibration: float = 2.0
    upright: bool = True
    up: str = "auto"
    fade: float = 0.3
    return_speed: float = 1.0
    max_speed: float = 6.0
    timeout: float = 0.5
    lead_in: float = 1.5

    def __post_init__(self) -> None:
        if self.up != "auto" and self.up not in UP:
            raise UnknownNameError("axis", self.up, ("auto", *UP))
        for name in ("calibration", "fade", "return_speed", "max_speed", "timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} of live markers must be positive, got {value}")
        if not (math.isfinite(self.lead_in) and self.lead_in >= 0):
            raise ConfigError(f"lead_in of live markers must not be negative, got {self.lead_in}")


class LiveTargets:
    """Seven robot targets from live markers.

    The person first stands upright for calibration. Vanished markers (`MarkerTracks`) and segments of impossible length
    (`SegmentGuard`) are held; target speeds are bounded (`SteadyPoints`).

    Attributes:
        targets: (7, 3) in the order of POINTS, robot world [m]; None before calibration.
        body: (P, 3) the person in the same frame [m].
        problems: current problems by kind, one sentence each.
    """

    def __init__(self, robot: Robot, settings: LiveSettings | None = None) -> None:
        """Start the calibration.

        Raises:
            RobotError: if the robot lacks imitation points.
            UnknownNameError: if the marker set is unknown.
            ClipError: if the marker-set file is invalid.
        """
        robot.require_imitation_points()
        self.robot, self.settings = robot, settings or LiveSettings()
        self._rest = self._points_at_rest()
        self.targets: np.ndarray | None = None
        self.calibrate()

    def _points_at_rest(self) -> np.ndarray:
        return self.robot.point_positions(self.robot.q("neutral"), POINTS)

    def calibrate(self) -> None:
        """Restart the calibration; existing targets are held meanwhile."""
        s = self.settings
        self._calibration = LiveCalibration(s.calibration, s.marker_set or None, s.up)
        self._body: LiveBody | None = None
        self._tried = -np.inf
        self.warnings: tuple[str, ...] = ()
        self._last_frame = self._last_seen = self._last_update = np.nan
        self._interval, self._jitter = 0.01, 0.0
        self._at_frame: MarkerTracks | None = None  # tracks at the last frame, if extrapolated since
        self.body: np.ndarray | None = None
        self.shown: Targets | None = None
        self._playing = True
        self.problems = {"calibration": "no markers yet: no targets"}

    def begin_at(self, points: np.ndarray) -> None:
        """Restart with a lead-in from these points (7, 3), after any calibration."""
        self._rest, self.targets = np.array(points), None
        if self.calibrated:
            self._lead_in()

    @property
    def frame_rate(self) -> float:
        """Measured frame rate [Hz]."""
        return 1.0 / self._interval

    @property
    def calibrated(self) -> bool:
        """Whether the calibration is complete."""
        return self._body is not None

    @property
    def marker_set(self) -> str:
        """Name of the active marker set; empty before calibration."""
        return self._body.marker_set if self._body else ""

    @property
    def playing(self) -> bool:
        """False holds the targets; True returns to the markers within the lead-in."""
        return self._playing

    @playing.setter
    def playing(self, value: bool) -> None:
        if value and not self._playing and self.calibrated:
            self._steady.begin(self.settings.lead_in)
        self._playing = value

    def frame(
        self, labels: Sequence[str], positions: np.ndarray, now: float, arrival: float | None = None
    ) -> np.ndarray | None:
        """Process a frame and return `targets`.

        The wait for overdue frames adapts to jitter; a late frame replaces the extrapolation since its time.

        Args:
            positions: (M, 3) [m]; NaN, infinite or exactly (0, 0, 0): hidden.
            arrival: actual arrival time [s].
        """
        labels, positions = tuple(labels), np.array(positions, dtype=float)
        if positions.shape != (len(labels), 3) or now <= self._last_frame:
            return self.targets
        interval = now - self._last_frame
        before, self._last_frame = self._last_frame, now
        forgotten = self._jitter * math.exp(-interval / _JITTER_TIME) if interval > 0 else 0.0
        self._jitter = min(max(forgotten, (now if arrival is None else arrival) - now), _MOST_JITTER)
        if interval < 1.0:
            self._interval += 0.1 * (interval - self._interval)
        with np.errstate(invalid="ignore"):
            seen = (np.abs(positions) < FARTHEST).all(axis=1) & positions.any(axis=1)
        positions[~seen] = np.nan
        if self._body is None:
            self._collect(labels, positions, now)
            return self.targets
        markers = self._order.arrange(labels, positions)
        self._report("labels", f"label {first_few(self._order.twice)} is duplicate: held" if self._order.twice else "")
        if self._at_frame is not None and now <= self._last_update:
            self._tracks = self._at_frame
        else:
            before = self._last_update
        self._at_frame = None
        return self._advance(markers, now, now - before)

    def hold(self, now: float) -> np.ndarray | None:
        """Continue without an overdue frame; call regularly.

        Returns:
            Targets (7, 3) to send; None if the next frame is not late, or there are no targets.
        """
        late = not now - self._last_frame <= max(_LATE * self._interval, _LEAST_LATE) + self._jitter
        if self._body is None:
            silent = not now - self._last_frame <= self.settings.timeout
            if silent:
                self.problems = {"calibration": "no markers: no calibration, so no targets"}
            return self.targets
        if not late or now <= self._last_update:
            return None
        if self._at_frame is None:
            self._at_frame = copy.deepcopy(self._tracks)
        return self._advance(np.full((len(self._body.labels), 3), np.nan), now, now - self._last_update)

    # -- calibration --------------------------------------------------------------------------------------------------

    def _collect(self, labels: tuple[str, ...], positions: np.ndarray, now: float) -> None:
        c = self._calibration
        names, at, twice = distinct(labels, positions)
        self._report("labels", f"label {first_few(twice)} is duplicate: ignored" if twice else "")
        c.add(names, at, now)
        if c.collected < 0.999 * c.duration:
            self._report("calibration", f"calibrating, stand upright: {c.collected:.1f} of {c.duration:g} s")
            return
        if now - self._tried < _TRY_EVERY:
            return
        self._tried = now
        try:
            self._begin(c.body(), now)
        except HumanoidError as e:
            self._report("calibration", f"no calibration, so no targets: {e}")

    def _begin(self, body: LiveBody | None, now: float) -> None:
        if body is None:
            return
        s = self.settings
        self._scale_by(body.calibration, now)
        self._guard, self._order = SegmentGuard(body.calibration), LabelOrder(body.labels)
        self._tracks = MarkerTracks(body.start, body.trunk, TrackSettings(s.fade, s.return_speed))
        self._lead_in()
        self._body, self._last_update, self._last_seen, self.problems = body, now, now, {}
        self.warnings = body.calibration.warnings

    def _scale_by(self, calibration: BodyPoints, now: float) -> None:
        self._scaler = Scaler(calibration, self.robot, self.settings.upright)
        self.shown = self._scaler.targets(calibration)

    def _lead_in(self) -> None:
        s = self.settings
        start = self._rest if self.targets is None else self.targets
        self._steady = SteadyPoints(start, s.max_speed, s.return_speed)
        self._steady.begin(s.lead_in)
        self.targets = self._steady.shown

    # -- following ----------------------------------------------------------------------------------------------------

    def _advance(self, markers: np.ndarray, now: float, passed: float) -> np.ndarray:
        assert self._body is not None
        dt = max(0.0, now - self._last_update)  # a frame may be older than the extrapolated time
        self._last_update += dt
        with np.errstate(all="ignore"):
            points = self._body.locate(self._tracks.update(markers, passed))
            desired = self._scaled(points, dt)
        if (self._tracks.hidden == 0).any():
            self._last_seen = now
        self.targets = self._steady.follow(desired, dt)
        self._find_problems(now)
        return self.targets

    def _scaled(self, points: np.ndarray, dt: float) -> np.ndarray:
        """Return targets (7, 3) of body points (P, 3) in the world; NaN while paused, which holds."""
        assert self._body is not None
        names = self._body.names
        body = BodyPoints("live markers", 1.0, names, points[None], np.zeros(len(names)))
        p = self._guard.check(body.in_pelvis()[0])
        nothing = np.full((len(POINTS), 3), np.nan)
        if not self._playing:
            return nothing
        self.body = p + self._scaler.origin
        try:
            return self._scaler.place({name: p[None, k] for k, name in enumerate(names)}, "live markers")[0][0]
        except ClipError:
            return nothing

    def _find_problems(self, now: float) -> None:
        assert self._body is not None
        silence = now - self._last_seen
        silent = silence > self.settings.timeout
        self._report("silence", f"no markers for {silence:.1f} s: the last good posture is held" if silent else "")
        hidden = self._tracks.hidden > self.settings.fade
        missing = {} if silent or not hidden.any() else self._body.missing(hidden)
        held = first_few([f"{point} ({', '.join(labels)})" for point, labels in missing.items()])
        self._report("hidden", f"markers are hidden, held: {held}" if missing else "")
        wrong = self._guard.problems if not missing and not silent else []
        self._report("segments", f"{'; '.join(wrong[:2])}: held, check the labels" if wrong else "")

    def _report(self, kind: str, text: str) -> None:
        if text:
            self.problems[kind] = text
        else:
            self.problems.pop(kind, None)


# -------- segments of impossible length

CHAIN = (
    ("spine", "mid_hip", "sternum"),
    ("l clavicle", "sternum", "l_shoulder"),
    ("r clavicle", "sternum", "r_shoulder"),
    ("l upper arm", "l_shoulder", "l_elbow"),
    ("r upper arm", "r_shoulder", "r_elbow"),
    ("l lower arm", "l_elbow", "l_wrist"),
    ("r lower arm", "r_elbow", "r_wrist"),
)
SHORTEST, LONGEST = 0.5, 1.7  # over the calibrated length; soft tissue and joint-centre errors are smaller


class SegmentGuard:
    """Check of segment lengths against the calibration.

    Attributes:
        problems: one sentence for each segment held in the last frame.
    """

    def __init__(self, calibration: BodyPoints) -> None:
        self._index = {name: k for k, name in enumerate(calibration.names)}
        p = calibration.in_pelvis()
        self._good = np.median(p, axis=0)
        self._width = float(np.median(np.linalg.norm(self._hips(p), axis=-1)))
        self._length = {n: float(np.median(np.linalg.norm(self._segment(p, a, b), axis=-1))) for n, a, b in CHAIN}
        self.problems: list[str] = []

    def _hips(self, p: np.ndarray) -> np.ndarray:
        return p[..., self._index["l_hip"], :] - p[..., self._index["r_hip"], :]

    def _segment(self, p: np.ndarray, a: str, b: str) -> np.ndarray:
        end = p[..., self._index[b], :]
        return end if a == "mid_hip" else end - p[..., self._index[a], :]

    def check(self, p: np.ndarray) -> np.ndarray:
        """Return body points (P, 3) in the pelvis frame [m]; segments of impossible length keep their last valid state.

        With impossible hips, the whole body is held.
        """
        self.problems = []
        width = float(np.linalg.norm(self._hips(p)))
        if not SHORTEST <= width / self._width <= LONGEST or not np.isfinite(p).all():
            self.problems = [f"the hips are {width:.2f} m apart, at the calibration {self._width:.2f} m"]
            return self._good
        out = p.copy()
        for name, a, b in CHAIN:
            length = float(np.linalg.norm(self._segment(p, a, b)))
            if not SHORTEST <= length / self._length[name] <= LONGEST:
                start = np.zeros(3) if a == "mid_hip" else out[self._index[a]]
                out[self._index[b]] = start + self._segment(self._good, a, b)
                usual = self._length[name]
                self.problems.append(f"the {name} is {length:.2f} m long, at the calibration {usual:.2f} m")
            elif a != "mid_hip":  # move along with a held parent segment
                out[self._index[b]] += out[self._index[a]] - p[self._index[a]]
        self._good = out
        return out


# -------- points that never jump

_LONGEST = 0.1  # [s] longest step that adds room for motion


class SteadyPoints:
    """Points that follow desired points; a jump becomes an offset that decays at bounded speed.

    Attributes:
        shown: (K, 3) current points, with speeds up to `max_speed` [m].
    """

    def __init__(self, start: np.ndarray, max_speed: float, return_speed: float) -> None:
        """Start at rest.

        Args:
            max_speed: of a point [m/s].
            return_speed: decay of the offset after a jump [m/s].
        """
        self.shown = np.array(start, dtype=float)
        self.max_speed, self.return_speed = max_speed, return_speed
        self._desired = self.shown.copy()
        self._from, self._blend, self._lead = self.shown.copy(), 1.0, 0.0

    def begin(self, lead_in: float) -> None:
        """Start a minimum-jerk blend to the desired points over this time [s]."""
        self._from, self._blend, self._lead = self.shown.copy(), 0.0, lead_in

    def follow(self, desired: np.ndarray, dt: float) -> np.ndarray:
        """Return the points (K, 3) after dt [s]; desired points that are not finite are held."""
        dt = min(max(0.0, dt), _LONGEST)  # NaN becomes 0
        goal = self._blended(np.where(np.isfinite(desired).all(axis=1, keepdims=True), desired, self._desired), dt)
        offset = self.shown - self._desired
        moved = np.linalg.norm(goal - self._desired, axis=1, keepdims=True)
        offset = np.where(moved > self.max_speed * dt, self.shown - goal, offset)
        size = np.linalg.norm(offset, axis=1, keepdims=True)
        offset = offset * np.maximum(0.0, 1.0 - self.return_speed * dt / np.maximum(size, 1e-12))
        step = goal + offset - self.shown
        size = np.linalg.norm(step, axis=1, keepdims=True)
        self.shown = self.shown + step * np.minimum(1.0, self.max_speed * dt / np.maximum(size, 1e-12))
        self._desired = goal
        return self.shown

    def _blended(self, desired: np.ndarray, dt: float) -> np.ndarray:
        if self._blend >= 1.0:
            return desired
        self._blend = min(1.0, self._blend + dt / self._lead) if self._lead > 0 else 1.0
        s = minimum_jerk(self._blend)
        return (1 - s) * self._from + s * desired
