"""Live markers, frame by frame as they come, become targets for a robot; nothing is buffered, nothing ever jumps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.capture import BodyPoints
from humanoid_control.capture.live_body import LiveBody
from humanoid_control.capture.live_calibration import LiveCalibration
from humanoid_control.capture.live_labels import LabelOrder, distinct
from humanoid_control.capture.live_tracks import FARTHEST, MarkerTracks, TrackSettings
from humanoid_control.errors import ClipError, HumanoidError
from humanoid_control.imitation.live_settings import LiveSettings
from humanoid_control.imitation.scaling import POINTS, Scaler, Targets
from humanoid_control.imitation.segment_guard import SegmentGuard
from humanoid_control.imitation.steady_points import SteadyPoints
from humanoid_control.robots import Robot

_TRY_EVERY = 0.5  # [s] between two attempts to calibrate
_LATE = 2.5  # frames: after so long without one the markers count as hidden
_LEAST_LATE = 0.03  # [s]
_LISTED = 4


class LiveTargets:
    """The seven targets of a robot from live markers.

    First the person stands upright for the time of the calibration; until it is complete there are no targets. Then
    each frame gives targets at once. Markers that vanish are held and fade, see `MarkerTracks`; segments of impossible
    length are held, see `SegmentGuard`; and no target moves faster than `max_speed`, see `SteadyPoints`.

    Attributes:
        targets: (7, 3) in the order of POINTS, robot's world [m]; None before the calibration.
        body: (P, 3) the dancer, in the same frame [m]; shown: Targets of the calibration, for a `Figure`.
        problems: what is wrong now, by kind: one sentence each. warnings: what the calibration had to guess.
        playing: False holds the targets; True again moves over to the markers.
    """

    def __init__(self, robot: Robot, settings: LiveSettings | None = None) -> None:
        """Prepare.

        Raises:
            RobotError: the robot lacks some of the points.
            UnknownNameError, ClipError: no such marker set, or its file is wrong.
        """
        robot.require_imitation_points()
        self.robot, self.settings = robot, settings or LiveSettings()
        self._rest = robot.point_positions(robot.q("neutral"), POINTS)
        self.targets: np.ndarray | None = None
        self.calibrate()

    def calibrate(self) -> None:
        """Begin with the calibration; targets that there are stay where they are meanwhile."""
        s = self.settings
        self._calibration = LiveCalibration(s.calibration, s.marker_set or None, s.up)
        self._body: LiveBody | None = None
        self._tried = -np.inf
        self.warnings: tuple[str, ...] = ()
        self._last_frame = self._last_seen = self._last_update = np.nan
        self._interval = 0.01
        self.body: np.ndarray | None = None
        self.shown: Targets | None = None
        self._playing = True
        self.problems = {"calibration": "no markers yet: no targets"}

    def begin_at(self, points: np.ndarray) -> None:
        """Begin again with a lead-in from these points (7, 3), now or after the calibration."""
        self._rest, self.targets = np.array(points), None
        if self.calibrated:
            self._lead_in()

    @property
    def frame_rate(self) -> float:
        """At which frames come [Hz]."""
        return 1.0 / self._interval

    @property
    def calibrated(self) -> bool:
        """Whether the calibration is complete."""
        return self._body is not None

    @property
    def marker_set(self) -> str:
        """Name of the marker set in use; empty before the calibration."""
        return self._body.marker_set if self._body else ""

    @property
    def playing(self) -> bool:
        return self._playing

    @playing.setter
    def playing(self, value: bool) -> None:
        if value and not self._playing and self.calibrated:
            self._steady.begin(self.settings.lead_in)
        self._playing = value

    def frame(self, labels: Sequence[str], positions: np.ndarray, now: float) -> np.ndarray | None:
        """Take a frame.

        Args:
            labels: M names, of markers or of body points.
            positions: (M, 3) [m], z or another axis up; NaN, infinite, or exactly (0, 0, 0): not seen.
            now: when it came [s], growing.

        Returns:
            `targets`.
        """
        labels, positions = tuple(labels), np.array(positions, dtype=float)
        if positions.shape != (len(labels), 3) or now <= self._last_frame:
            return self.targets
        interval = now - self._last_frame
        self._last_frame = now
        if interval < 1.0:
            self._interval += 0.1 * (interval - self._interval)
        with np.errstate(invalid="ignore"):
            seen = (np.abs(positions) < FARTHEST).all(axis=1) & positions.any(axis=1)
        positions[~seen] = np.nan
        if self._body is None:
            self._collect(labels, positions, now)
            return self.targets
        markers = self._order.arrange(labels, positions)
        self._say("labels", f"label {_list(self._order.twice)} occurs twice: held" if self._order.twice else "")
        return self._go(markers, now)

    def hold(self, now: float) -> np.ndarray | None:
        """Go on without a frame, when one is overdue; call it regularly.

        Returns:
            Targets (7, 3) to be sent, or None where there is nothing to be said: the next frame is not late, or there
            are no targets yet.
        """
        late = not now - self._last_frame <= max(_LATE * self._interval, _LEAST_LATE)
        if self._body is None:
            silent = not now - self._last_frame <= self.settings.timeout
            if silent:
                self.problems = {"calibration": "no markers: no calibration, so no targets"}
            return self.targets
        if not late or now <= self._last_update:
            return None
        return self._go(np.full((len(self._body.labels), 3), np.nan), now)

    # -- calibration --------------------------------------------------------------------------------------------------

    def _collect(self, labels: tuple[str, ...], positions: np.ndarray, now: float) -> None:
        """Take a frame of the calibration; try to complete it."""
        c = self._calibration
        names, at, twice = distinct(labels, positions)
        self._say("labels", f"label {_list(twice)} occurs twice: not used" if twice else "")
        c.add(names, at, now)
        if c.collected < 0.999 * c.duration:
            self._say("calibration", f"calibrating, stand upright: {c.collected:.1f} of {c.duration:g} s")
            return
        if now - self._tried < _TRY_EVERY:
            return
        self._tried = now
        try:
            self._begin(c.body(), now)
        except HumanoidError as e:
            self._say("calibration", f"no calibration, so no targets: {e}")

    def _begin(self, body: LiveBody | None, now: float) -> None:
        """The calibration is complete."""
        if body is None:
            return
        s = self.settings
        self._scaler = Scaler(body.calibration, self.robot, s.upright)
        self.shown = self._scaler.targets(body.calibration)
        self._guard, self._order = SegmentGuard(body.calibration), LabelOrder(body.labels)
        self._tracks = MarkerTracks(body.start, body.trunk, TrackSettings(s.fade, s.return_speed))
        self._lead_in()
        self._body, self._last_update, self._last_seen, self.problems = body, now, now, {}
        self.warnings = body.calibration.warnings

    def _lead_in(self) -> None:
        """Move over to the markers, from the present targets or from where the robot is."""
        s = self.settings
        start = self._rest if self.targets is None else self.targets
        self._steady = SteadyPoints(start, s.max_speed, s.return_speed)
        self._steady.begin(s.lead_in)
        self.targets = self._steady.shown

    # -- following ----------------------------------------------------------------------------------------------------

    def _go(self, markers: np.ndarray, now: float) -> np.ndarray:
        """One step with the markers (M, 3) that are there."""
        assert self._body is not None
        dt = max(0.0, now - self._last_update)  # a frame may be older than the moment for which it was missed
        self._last_update += dt
        with np.errstate(all="ignore"):
            points = self._body.locate(self._tracks.update(markers, dt))
            wanted = self._wanted(points)
        if (self._tracks.hidden == 0).any():
            self._last_seen = now
        self.targets = self._steady.follow(wanted, dt)
        self._judge(now)
        return self.targets

    def _wanted(self, points: np.ndarray) -> np.ndarray:
        """Targets (7, 3) of body points (P, 3) in the world; NaN, which is passed over, while paused."""
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

    def _judge(self, now: float) -> None:
        """Say what is wrong."""
        assert self._body is not None
        silence = now - self._last_seen
        silent = silence > self.settings.timeout
        self._say("silence", f"no markers for {silence:.1f} s: the last good posture is held" if silent else "")
        hidden = self._tracks.hidden > self.settings.fade
        missing = {} if silent or not hidden.any() else self._body.missing(hidden)
        held = _list([f"{point} ({', '.join(labels)})" for point, labels in missing.items()])
        self._say("hidden", f"markers are hidden, held: {held}" if missing else "")
        wrong = self._guard.problems if not missing and not silent else []
        self._say("segments", f"{'; '.join(wrong[:2])}: held, check the labels" if wrong else "")

    def _say(self, kind: str, text: str) -> None:
        if text:
            self.problems[kind] = text
        else:
            self.problems.pop(kind, None)


def _list(items: Sequence[str]) -> str:
    """The first few of many, and how many more there are."""
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more
