"""Node `human_motion`: angles, moments and points of a person from live markers and force plates."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from std_srvs.srv import Trigger

from humanoid_control.errors import ConfigError, HumanoidError, first_few
from humanoid_control.human import FitTasks, Person, read_ik_setup, read_osim
from humanoid_control.human.analysis import turning_to_up, upward
from humanoid_control.human.calibration import Calibration
from humanoid_control.human.live.live_fit import LiveFit, LiveFrame, LiveRecorder
from humanoid_control.human.live.live_forces import LiveDynamics, LiveForces, PlateWrench
from humanoid_control.human.models import own_person
from humanoid_control.human.models.subject import TYPICAL_MASS
from humanoid_control.mocap.live import UP
from humanoid_control.nodes.base.messages import RisingStamps, stamp_of
from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.human.outputs import HumanOutputs
from humanoid_control.nodes.human.plates import PlateInput, parse_frames
from humanoid_control.nodes.streaming.live_source import OTHER_CLOCK, MarkerFrame, MarkerInput

UPWARD = np.array([0.0, 0.0, 1.0])  # of the world
LATE = 1.5  # multiple of the usual interval above which a frame counts as missed
WINDOW = 1000  # frames covered by the figures


@dataclass(frozen=True)
class HumanMotionParameters(WorldParameters):
    """Parameters of the node human_motion."""

    model: str = param(
        "person",
        "person model: an OpenSim model (.osim) with its markers, or the built-in person model, by name or file",
    )
    template: str = param("plug_in_gait", "marker template of the built-in person model: a name or a file")
    stature: float = param(1.75, "initial stature of the built-in person model; ~/calibrate refines it", "m", 1.0, 2.5)
    sex: str = param("men", "segment mass distribution of the built-in person model", choices=("men", "women"))
    mass: float = param(
        0.0, "mass of the person; 0: mass of the model, or 75 kg for the built-in person model", "kg", 0.0, 500.0
    )
    setup: str = param("", "setup file of OpenSim's inverse kinematics with marker weights; empty: equal weights")
    rate: float = param(100.0, "rate of the silence checks between frames", "Hz", 10.0, 500.0)
    live_labels: str = param(
        "", "comma-separated labels of the poses if `markers` is a PoseArray; empty: it is a MarkerArray"
    )
    up: str = param(
        "auto",
        "upward axis of the marker frame; auto: detected from the body",
        choices=("auto", "+x", "-x", "+y", "-y", "+z", "-z"),
    )
    plates: int = param(
        0,
        "number of force plates, on topics plates/plate1 and so on; 0: moments only without ground contact",
        "",
        0,
        32,
    )
    plate_frames: str = param(
        "",
        "poses of the plate frames in the world, name=x,y,z or name=x,y,z,qx,qy,qz,qw, separated by "
        "semicolons; missing ones are looked up in tf",
    )
    bandwidth: float = param(
        6.0,
        "bandwidth of the two filters of velocities and moments, with delays of 0.32 and 0.64 divided by it",
        "Hz",
        1.0,
        50.0,
    )
    calibration: float = param(5.0, "duration of the motion recorded by ~/calibrate", "s", 1.0, 60.0)
    marker_rate: float = param(30.0, "rate of human/markers and the transforms", "Hz", 1.0, 120.0)
    marker_timeout: float = param(0.5, "marker silence after which a warning is reported", "s", 0.05, 10.0)


def person_of(p: HumanMotionParameters) -> tuple[Person, FitTasks]:
    """Return the person and the marker weights that the parameters select.

    Raises:
        HumanoidError: if the model or template is missing or unreadable.
    """
    path = Path(p.model).expanduser()
    if path.suffix.lower() == ".osim":
        if not path.is_file():
            raise ConfigError(f"parameter model: file not found: {p.model}")
        person, tasks = read_osim(path), FitTasks()
        person = person.with_mass(p.mass) if p.mass else person
    else:
        own = own_person(p.stature, p.mass or TYPICAL_MASS, p.sex, p.template, p.model)
        person, tasks = own.person, own.tasks
    if p.setup:
        given = read_ik_setup(Path(p.setup).expanduser(), person)
        tasks = replace(given, coordinates={**tasks.coordinates, **given.coordinates})
    return person, tasks


class HumanMotion(TickNode):
    """Node that fits a person to live markers, in an extra tick per frame."""

    Parameters = HumanMotionParameters
    params: HumanMotionParameters
    node_name = "human_motion"
    live: LiveFit
    axes: tuple[np.ndarray, np.ndarray] | None = None

    def configure(self) -> float:
        p = self.params
        person, self.tasks = person_of(p)
        frames = parse_frames([row for row in p.plate_frames.split(";") if row.strip()])
        for text in person.notes:
            self.get_logger().info(text)
        self.markers = MarkerInput(self, p.live_labels)
        self.plates = PlateInput(self, p.plates, frames, p.world)
        self.create_service(Trigger, "~/calibrate", self.on_calibrate)
        self.outputs: HumanOutputs | None = None
        self.become(person)
        self.warm()
        return p.rate

    def become(self, person: Person, turn: np.ndarray | None = None) -> None:
        """Fit this person; `turn` (3, 3): rotation from marker axes, if known."""
        up = None if self.params.up == "auto" else UP[self.params.up]
        self.person, self.live = person, LiveFit(person, self.tasks, up)
        if turn is not None:
            self.live.turn = turn
        self.dynamics = LiveDynamics(self.live.person, self.params.bandwidth)
        contacts = self.dynamics.contacts
        if self.outputs is None:
            feet, p = contacts.feet if contacts is not None else (), self.params
            self.outputs = HumanOutputs(self, person, feet, p.world, p.marker_rate)
        self.outputs.become(person)
        self.loads: dict[str, PlateWrench] = {}

    def warm(self) -> None:
        """Load the kernels with unpublished frames."""
        at_rest, turn = self.live.person.marker_positions(self.person.rest)[0], self.live.turn
        self.live.turn = None
        frame = None
        while frame is None:
            frame = self.live.fit(at_rest)
        load = PlateWrench(np.array([0.0, 500.0, 0.0, 0.0, 0.0, 0.0]), np.eye(3)[1], np.zeros(3))
        for k in range(200):
            self.dynamics.step(frame.q, 0.005 * k, (frame.std, frame.root_covariance), {"warm": load})
        self.live.turn = turn
        self.live.restart()
        self.dynamics.restart()

    def activate(self) -> None:
        self.live.restart()
        self.dynamics.restart()
        self.stamps_out = RisingStamps()
        self.frame: LiveFrame | None = None
        self.forces: LiveForces | None = None
        self.recorder: LiveRecorder | None = None
        self.worker: threading.Thread | None = None
        self.found: list[Calibration | HumanoidError] = []  # of this calibration; its worker may outlive it
        self.calibrated, self.last, self.interval = "", float("nan"), 0.0
        self.frames = self.missed = 0
        self.ages, self.latency, self.iterations = SampleWindow(WINDOW), SampleWindow(WINDOW), SampleWindow(WINDOW)

    # -- calibration --------------------------------------------------------------------------------------------------

    def on_calibrate(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self.frame is None or self.worker is not None:
            response.success = False
            response.message = "no markers fitted yet" if self.frame is None else "a calibration is being computed"
            return response
        self.recorder = LiveRecorder(self.params.calibration)
        response.success, response.message = True, f"perform any motion for {self.params.calibration:g} s"
        return response

    def record(self, markers: np.ndarray, now: float) -> None:
        """Record a calibration frame; once complete, calibrate in a thread."""
        if self.recorder is None or self.worker is not None or not self.recorder.add(markers, now):
            return
        recorder, person, turn, labels = self.recorder, self.live.person, self.live.turn, self.live.labels
        assert turn is not None
        found: list[Calibration | HumanoidError] = []
        self.found = found

        def compute() -> None:
            try:
                found.append(recorder.calibrate(person, turn, labels))
            except HumanoidError as e:
                found.append(e)
            except Exception as e:  # an exception would be lost otherwise
                found.append(ConfigError(f"{type(e).__name__}: {e}"))

        self.worker = threading.Thread(target=compute, daemon=True)
        self.worker.start()

    def check_calibration(self) -> None:
        """Report the calibration, and apply its result."""
        if self.recorder is None:
            return
        if not self.found:
            text = f"calibrating: {self.recorder.collected:.1f} of {self.recorder.duration:g} s, keep moving"
            self.health.report("calibration", Level.WARN, text)
            return
        found, self.found = self.found[0], []
        self.recorder = self.worker = None
        if isinstance(found, HumanoidError):
            self.health.report("calibration", Level.WARN, f"calibration failed, the previous one is kept: {found}")
            return
        before, after = (1e3 * float(np.sqrt(np.nanmean(f.rms**2))) for f in (found.before, found.after))
        self.calibrated = f"{before:.1f} mm before, {after:.1f} mm after"
        self.get_logger().info(f"calibrated: markers {self.calibrated}")
        self.health.clear("calibration")
        self.become(found.person, self.live.turn)

    # -- frames -------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        frame = self.markers.take()
        if frame is not None:
            self.take(frame)
        else:  # waiting frames must not become outdated
            self.plates.poll()
        self.check_calibration()
        silent = self.silent("markers", now, self.params.marker_timeout)
        self.health.check("silence", silent, Level.WARN, "no markers: nothing is published")
        self.health.check("input", bool(self.markers.problem), Level.WARN, self.markers.problem)
        clock = self.markers.offset.problem
        self.health.check("clock", bool(clock), Level.WARN, f"markers: {clock}")

    def take(self, frame: MarkerFrame) -> None:
        if frame.time <= self.last:
            return
        interval, self.last = frame.time - self.last, frame.time
        self.count(interval)
        markers = self.live.arranged(frame.labels, frame.positions)
        try:
            found = self.live.fit(markers)
        except HumanoidError as e:
            self.health.report("fit", Level.WARN, f"markers cannot be fitted: {e}")
            return
        if found is None:
            seen = int(np.isfinite(markers[:, 0]).sum())
            text = (
                f"{seen} of the {len(markers)} markers of the model are visible"
                if seen < 3
                else "detecting the upward axis"
            )
            self.health.report("fit", Level.WARN, f"{text}: nothing is published")
            return
        if not np.isfinite(found.q).all():
            self.health.report("fit", Level.WARN, "the fit is non-numeric: nothing is published")
            self.live.restart()
            return
        self.health.clear("fit")
        assert self.live.turn is not None and self.outputs is not None
        self.frame = found
        turn = self.world_axes()
        self.loads, heard = self.plates.take(time.monotonic(), turn)
        self.forces = self.dynamics.step(found.q, frame.time, (found.std, found.root_covariance), self.loads, heard)
        self.record(markers, frame.time)
        done = time.monotonic()
        ros = frame.ros + (done - frame.arrival)
        stamp = self.markers.clock.stamp(frame.time) + self.markers.offset.correction
        if not 0 <= ros - stamp < OTHER_CLOCK:  # the source has another clock, or none
            stamp = ros - (done - frame.time)
        self.outputs.publish(stamp_of(self.stamps_out.next(round(1e9 * stamp))), found, self.forces, turn, done)
        self.ages.add(time.monotonic() - frame.arrival)
        self.latency.add(ros - stamp)
        self.iterations.add(found.steps)
        self._update_problems(found)

    def world_axes(self) -> np.ndarray:
        """Return the rotation (3, 3) from person axes to the world with z up."""
        turn = self.live.turn
        assert turn is not None
        if self.axes is None or self.axes[0] is not turn:
            up = turn.T @ upward(self.person)  # in the markers' axes
            self.axes = turn, np.asarray(turning_to_up(np.round(up, 12), UPWARD) @ turn.T)
        return self.axes[1]

    def count(self, interval: float) -> None:
        """Count a frame and missed ones."""
        if not interval < 1.0:
            return
        self.frames += 1
        if self.interval and interval > LATE * self.interval:
            self.missed += round(interval / self.interval) - 1
        self.interval += 0.05 * (interval - self.interval) if self.interval else interval

    def _update_problems(self, frame: LiveFrame) -> None:
        """Update the reported problems."""
        if frame.unknown.any():
            unknown = [self.person.names[k] for k in np.flatnonzero(frame.unknown)]
            self.health.report("unknown", Level.WARN, f"{first_few(unknown)} without markers: held")
        else:
            self.health.clear("unknown")
        contacts = self.dynamics.contacts
        problems = {**self.plates.problems, **(contacts.problems if contacts is not None else {})}
        if problems:
            self.health.report("plates", Level.WARN, first_few(list(problems.values()), separator="; "))
        else:
            self.health.clear("plates")

    def slack_time(self, left: float) -> None:
        if self.outputs is None or self.frame is None or self.live.turn is None:
            return
        self.outputs.picture(left, self.arrows)

    def arrows(self) -> np.ndarray:
        """Return centre of pressure [m] and force [N] of each foot (F, 2, 3); NaN without load."""
        turn, contacts = self.world_axes(), self.dynamics.contacts
        feet = contacts.feet if contacts is not None else ()
        arrows = np.full((len(feet), 2, 3), np.nan)
        for topic, plate in self.loads.items():
            for side in contacts.standing(topic) if contacts is not None else ():
                if plate.load > 0:
                    arrows[feet.index(side)] = turn @ plate.center_of_pressure(), turn @ plate.wrench[:3]
        return arrows

    def values(self) -> dict[str, Any]:
        age, latency, frame, forces = self.ages.percentiles(), self.latency.percentiles(), self.frame, self.forces
        told = frame.residuals if frame is not None else np.full(1, np.nan)
        worst = int(np.nanargmax(told)) if np.isfinite(told).any() else -1
        unseen = [n for n, r in zip(self.live.labels, told, strict=False) if not np.isfinite(r)]
        due = self.frames + self.missed
        points = self.outputs.points.missing if self.outputs is not None else ()
        return {
            "person": self.person.name,
            "markers_hz": round(1 / self.interval, 1) if self.interval else 0.0,
            "frames_missed_percent": round(100 * self.missed / due, 3) if due else 0.0,
            "residual_mm": round(1e3 * frame.rms, 2) if frame is not None else float("nan"),
            "worst_marker": f"{self.live.labels[worst]} {1e3 * told[worst]:.1f} mm" if worst >= 0 else "",
            "unseen_markers": first_few(unseen) if unseen else "",
            "outliers": first_few(frame.outliers) if frame is not None and frame.outliers else "",
            "iterations": round(float(self.iterations.values().mean()), 2) if len(self.iterations.values()) else 0.0,
            "age_p50_ms": round(1e3 * age[0], 3),
            "age_p99_ms": round(1e3 * age[1], 3),
            "latency_p50_ms": round(1e3 * latency[0], 3),
            "latency_p99_ms": round(1e3 * latency[1], 3),
            "moments": "known" if forces is not None and forces.explained else "not known",
            "moments_late_ms": round(1e3 * forces.delay, 1) if forces is not None else float("nan"),
            "velocity_late_ms": round(5e2 * forces.delay, 1) if forces is not None else float("nan"),
            "calibrated": self.calibrated,
            "points_missing": ", ".join(points),
        }


def main() -> int:
    return main_of(HumanMotion)


if __name__ == "__main__":
    sys.exit(main())
