"""Walking course: drives a running session by `cmd_vel` over legs, and reports.

```python
from humanoid_control.session import Session
from humanoid_control.session.walk_course import course_for, walk_course
from humanoid_control.robots import load_robot

with Session("walking", "lola") as session:
    print(walk_course(session, course_for(load_robot("lola", "floating")))["steps"])
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.robots.robot import Robot
from humanoid_control.session.session import Session
from humanoid_control.session.supervisor import StackFailure
from humanoid_control.terminal import console, progress, table
from humanoid_control.viewer.walk_controls import PUSH_TIME, in_root_axes
from humanoid_control.walking.walk_task import leg_length

# Topics of the report and the viewer. Fewer topics lose fewer messages on a busy machine.
WALK_TOPICS = (
    "joint_states",
    "joint_commands",
    "cmd_vel",
    "odom",
    "ground_truth/odometry",
    "walking/state",
    "footsteps/planned",
    "/diagnostics",
)
# Share of real time. On two slow cores, sensors would be late at 1, and the walker stops after 60 ms of silence.
DEMO_PACE = 0.5
PERIOD = 0.05  # [s] between messages of cmd_vel
ADULT_LEG = 0.87  # [m] leg length to which the course speeds refer
PUSH, ADULT_MASS = 10.0, 60.0  # [N s] impulse of a push, [kg] mass above which it is not reduced
PATIENCE = 20.0  # [s] for the robot to stand, and to come to rest
QUIET_STATES = ("STAND", "FALLEN")
# For pictures: simulated time is slow, because the robot walks on while the picture is taken.
PICTURE_SETTINGS: dict[str, dict[str, Any]] = {
    "simulator": {"real_time_factor": 0.3},
    "walker": {"cmd_vel_timeout": 10.0, "sensor_late": 0.5, "sensor_lost": 1.0, "sensor_off": 5.0},
}


class Leg(NamedTuple):
    """Part of the course.

    Attributes:
        name: name in the report.
        velocity: forward, left [m/s] and turning [rad/s] speed.
        seconds: duration [s].
        push: impulse forward, left and up, halfway through [N s].
    """

    name: str
    velocity: tuple[float, float, float]
    seconds: float
    push: tuple[float, float, float] = (0.0, 0.0, 0.0)


def course_for(robot: Robot, ground: str = "") -> list[Leg]:
    """Return the course: forward, push, arc, sideways, backward, turn, rest.

    Speeds scale with the leg length, pushes with the mass. Uneven ground allows only forward.

    Args:
        ground: recipe (`simulation.contact.ground_recipe`); empty: level.
    """
    k = min(leg_length(robot) / ADULT_LEG, 1.0)
    if ground:
        name, speed, seconds = ("over the stairs", 0.29, 18.0) if _stairs(ground) else ("forward", 0.3, 12.0)
        return [Leg(name, (speed * k, 0.0, 0.0), seconds), Leg("stop", (0.0, 0.0, 0.0), 3.0)]
    return [
        Leg("forward", (0.3 * k, 0.0, 0.0), 6.0),
        Leg("pushed to the left", (0.2 * k, 0.0, 0.0), 4.0, (0.0, PUSH * min(robot.mass / ADULT_MASS, 1.0), 0.0)),
        Leg("arc to the left", (0.25 * k, 0.0, 0.2), 6.0),
        Leg("sideways", (0.0, 0.08 * k, 0.0), 5.0),
        Leg("backward", (-0.15 * k, 0.0, 0.0), 4.0),
        Leg("turning in place", (0.0, 0.0, -0.25), 4.0),
        Leg("stop", (0.0, 0.0, 0.0), 3.0),
    ]


def course_step_time(ground: str) -> float:
    """Return the step time on a ground [s]."""
    return 1.2 if _stairs(ground) else 0.8


def _stairs(ground: str) -> bool:
    return ground.strip().startswith("stairs")


class Walked(NamedTuple):
    """Observation after a leg: time [s], true and estimated pose, steps."""

    time: float
    truth: pin.SE3
    estimate: pin.SE3
    steps: int


class Course:
    """Driver of a session by `cmd_vel`, which records its motion."""

    def __init__(self, session: Session, node_name: str = "walker", state: str = "walking/state") -> None:
        from geometry_msgs.msg import Twist, WrenchStamped
        from nav_msgs.msg import Odometry
        from std_msgs.msg import String

        from humanoid_control.nodes.base.messages import EVENTS, LATCHED, STREAM_IN

        self.session, self.node_name, node = session, node_name, session.monitor.node
        self._Twist, self._Wrench = Twist, WrenchStamped
        self.publisher = node.create_publisher(Twist, "cmd_vel", EVENTS)
        self.pushes = node.create_publisher(WrenchStamped, "simulator/push", EVENTS)
        self.state, self.falls = "", 0
        self.truth: pin.SE3 | None = None
        self.estimate: pin.SE3 | None = None
        self.time, self.tilt, self.way = 0.0, 0.0, 0.0
        self.errors: list[float] = []
        self._upright: np.ndarray | None = None  # initial rotation of the root link, upright with its front along x
        self._root = ""
        self._diagnosed: dict[str, str] = {}
        node.create_subscription(String, state, self._on_state, LATCHED)
        node.create_subscription(Odometry, "odom", self._on_odometry, STREAM_IN)
        node.create_subscription(Odometry, "ground_truth/odometry", self._on_truth, STREAM_IN)

    def _on_state(self, m: Any) -> None:
        self.falls += m.data == "FALLEN" and self.state != "FALLEN"
        self.state = m.data

    def _on_odometry(self, m: Any) -> None:
        self.estimate = _pose(m)
        self.time = m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec

    def _on_truth(self, m: Any) -> None:
        X = _pose(m)
        if self._upright is None:
            self._upright, self._root = X.rotation, m.child_frame_id
        if self.truth is not None:
            self.way += float(np.linalg.norm((X.translation - self.truth.translation)[:2]))
        self.tilt = max(self.tilt, math.acos(min(1.0, float(X.rotation[2] @ self._upright[2]))))
        self.truth = X

    @property
    def values(self) -> dict[str, str]:
        """Last diagnostics of the controller node."""
        for name, status in self.session.monitor.nodes.items():
            if name.rsplit("/", 1)[-1] == self.node_name:
                return status.values
        return {}

    def until(self, condition: Callable[[], bool], patience: float) -> bool:
        """Handle messages until a condition holds, at most `patience` [s]."""
        import time

        end = time.monotonic() + patience
        while not condition() and not self.session.stopped.is_set() and time.monotonic() < end:
            self.session.monitor.spin(PERIOD)
            self.session.check()
        return condition()

    def drive(self, leg: Leg, show: Callable[[float, str], None], before: float) -> None:
        """Command the velocity of a leg, until its end, a fall, or a signal.

        Args:
            show: called with the time of the course [s] and a status line.
            before: duration of the previous legs [s].
        """
        begin, twist = self.time, self._Twist()
        twist.linear.x, twist.linear.y, twist.angular.z = leg.velocity
        pushed = not any(leg.push)
        while self.time - begin < leg.seconds and not self.session.stopped.is_set() and self.state != "FALLEN":
            self.publisher.publish(twist)
            if not pushed and self.time - begin > leg.seconds / 2:
                self._push(np.asarray(leg.push))
                pushed = True
            self._look()
            show(before + self.time - begin, f"{leg.name}: {self.state.lower()}, {self.values.get('steps', '0')} steps")

    def _push(self, impulse: np.ndarray) -> None:
        """Push the root link by an impulse (3,) [N s] in heading axes."""
        if self.truth is None or self._upright is None:
            return
        m = self._Wrench()
        m.header.frame_id = self._root
        f = m.wrench.force
        f.x, f.y, f.z = in_root_axes(impulse / PUSH_TIME, self.truth, self._upright).tolist()
        self.pushes.publish(m)

    def watch(self, seconds: float, show: Callable[[float], None]) -> None:
        """Observe for `seconds` of robot time [s]."""
        begin = self.time
        while self.time - begin < seconds and not self.session.stopped.is_set() and self.state != "FALLEN":
            self._look()
            show(self.time - begin)

    def _look(self) -> None:
        self.session.monitor.spin(PERIOD)
        self.session.check()
        self.take_errors()

    def take_errors(self) -> None:
        """Record the last DCM error, once."""
        if (values := self.values) is not self._diagnosed and "dcm_error_rms_mm" in values:
            self._diagnosed = values
            if math.isfinite(error := float(values["dcm_error_rms_mm"])):
                self.errors.append(error)

    @property
    def error_rms(self) -> float:
        """RMS of the DCM error [mm]; NaN without data."""
        return float(np.sqrt(np.mean(np.square(self.errors)))) if self.errors else float("nan")

    def now(self) -> Walked:
        truth, estimate = self.truth or pin.SE3.Identity(), self.estimate or pin.SE3.Identity()
        return Walked(self.time, truth.copy(), estimate.copy(), int(self.values.get("steps", 0)))


def _stood(session: Session, quiet: bool) -> tuple[Course, float]:
    """Return the course of a standing robot, and its start time [s]."""
    started = session.wait_first_motion()
    c = Course(session)
    c.until(lambda: c.state == "STAND" and c.truth is not None and c.estimate is not None, PATIENCE)
    if not quiet:
        console.print(f"standing after {started:.1f} s; logs and recording: {session.directory}")
    return c, started


def walk_course(session: Session, course: Sequence[Leg], quiet: bool = True) -> dict[str, Any]:
    """Walk a course, come to rest, and report; `good`: no fall and no violated limit.

    Args:
        session: running session of the stack `walking`.

    Raises:
        StackFailure: see `Session`.
    """
    c, started = _stood(session, quiet)
    total, passed, places = sum(leg.seconds for leg in course), 0.0, [c.now()]
    c.way = 0.0
    with progress("walk", total, quiet=quiet) as show:
        for leg in course:
            c.drive(leg, show, passed)
            passed += leg.seconds
            places.append(c.now())
            if session.stopped.is_set() or c.state == "FALLEN":
                break
    c.until(lambda: c.state in QUIET_STATES, PATIENCE)
    c.until(lambda: False, 1.2)  # the last diagnostics
    places[-1] = c.now()
    return _report(c, course, places, started)


def dance_on_feet(session: Session, seconds: float, quiet: bool = True) -> dict[str, Any]:
    """Observe a dancing robot and report; `good`: no fall.

    Args:
        session: running session of the stack `dance`.
        seconds: duration after the robot stands [s].

    Raises:
        StackFailure: see `Session`.
    """
    c, started = _stood(session, quiet)
    begin = c.time
    with progress("dance", seconds, quiet=quiet) as show:
        c.watch(seconds, lambda done: show(done, f"{c.state.lower()}, {c.values.get('targets', '0')} targets"))
    values = c.values
    targets = int(values.get("targets", 0))
    return {
        "start_s": round(started, 2),
        "danced_s": round(c.time - begin, 2),
        "state": c.state,
        "falls": c.falls,
        "targets": targets,
        "tilt_deg": round(math.degrees(c.tilt), 2),
        "dcm_error_rms_mm": round(c.error_rms, 1),
        "zmp_margin_min_mm": float(values.get("zmp_margin_min_mm", "nan")),
        "commands_limited": int(values.get("commands_limited", 0)),
        "control_p50_ms": float(values.get("control_p50_ms", "nan")),
        "good": c.falls == 0 and c.state not in ("FALLEN", "") and targets > 0,
    }


def print_dance(report: dict[str, Any]) -> None:
    table("dance on the feet", ["quantity", "value"], [
        ["danced", f"{report['danced_s']:.1f} s"],
        ["falls", report["falls"]],
        ["followed targets", report["targets"]],
        ["maximum tilt of the root link", f"{report['tilt_deg']:.1f} deg"],
        ["error of the divergent component, rms", f"{report['dcm_error_rms_mm']:.1f} mm"],
        ["minimum margin of the zero-moment point", f"{report['zmp_margin_min_mm']:.0f} mm"],
        ["commands beyond a limit", report["commands_limited"]],
    ])  # fmt: skip
    verdict = "danced on its feet without a fall" if report["good"] else "incomplete dance"
    console.print(f"{verdict}; final state: {report['state'].lower()}")


def walking_picture(session: Session, leg: Leg, port: int, size: tuple[int, int]) -> bytes:
    """Return a PNG of the page after the robot walked a leg.

    Args:
        session: running session of the stack `walking`, with `PICTURE_SETTINGS`.
        size: width and height [pixels].

    Raises:
        StackFailure: if the robot does not stand.
        EnvironmentProblem: if Chromium is missing.
        KeyboardInterrupt: if the session was stopped.
    """
    from humanoid_control.viewer.browser import Browser
    from humanoid_control.viewer.stills import CLOSE_NOTICES, HIDE_PANEL

    session.wait_first_motion()
    c = Course(session)
    stands = c.until(lambda: c.state == "STAND" and c.estimate is not None, PATIENCE)
    if session.stopped.is_set():
        raise KeyboardInterrupt
    if not stands:
        raise StackFailure("the robot does not stand")
    with Browser(*size, stopped=session.stopped) as browser:
        browser.open(f"http://127.0.0.1:{port}")
        for script in (CLOSE_NOTICES, HIDE_PANEL):
            browser.evaluate(script)
        c.drive(leg, lambda done, text: None, 0.0)
        return browser.picture()


def _report(c: Course, course: Sequence[Leg], places: Sequence[Walked], started: float) -> dict[str, Any]:
    first, last, values = places[0], places[-1], c.values
    moved = (first.truth.actInv(last.truth), first.estimate.actInv(last.estimate))
    drift = float(np.linalg.norm((moved[0].translation - moved[1].translation)[:2]))
    turned = [float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0])) for X in moved]
    limited = int(values.get("commands_limited", 0))
    return {
        "start_s": round(started, 2),
        "legs": [_leg_row(leg, a, b) for leg, a, b in zip(course, places, places[1:], strict=False)],
        "finished": len(places) == len(course) + 1 and not c.session.stopped.is_set(),
        "state": c.state,
        "steps": last.steps,
        "way_m": round(c.way, 3),
        "dcm_error_rms_mm": round(c.error_rms, 1),
        "tilt_deg": round(math.degrees(c.tilt), 2),
        "falls": c.falls,
        "odometry_error_mm": round(1e3 * drift, 1),
        "odometry_error_percent": round(100 * drift / c.way, 2) if c.way > 0.1 else float("nan"),
        "heading_error_deg": round(math.degrees(_wrapped(turned[0] - turned[1])), 2),
        "commands_limited": limited,
        "saturated_percent": float(values.get("saturated_percent", "nan")),
        "control_p50_ms": float(values.get("control_p50_ms", "nan")),
        "control_p99_ms": float(values.get("control_p99_ms", "nan")),
        "good": c.falls == 0 and c.state == "STAND" and limited == 0,
    }


def _leg_row(leg: Leg, a: Walked, b: Walked) -> dict[str, Any]:
    """Return commanded and actual motion of a leg."""
    X = a.truth.actInv(b.truth)
    x, y, turn = leg.velocity
    done = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
    return {
        "leg": leg.name,
        "asked": [round(x, 3), round(y, 3), round(turn, 3)],
        "seconds": round(b.time - a.time, 2),
        "forward_m": round(float(X.translation[0]), 3),
        "left_m": round(float(X.translation[1]), 3),
        "turned_deg": round(math.degrees(done), 1),
        "steps": b.steps - a.steps,
    }


def print_walk(report: dict[str, Any]) -> None:
    columns = ["leg", "commanded [m/s, m/s, rad/s]", "time [s]", "forward [m]", "left [m]", "turned [deg]", "steps"]
    table("measured course (ground truth)", columns, [
        [r["leg"], ", ".join(f"{v:g}" for v in r["asked"]), r["seconds"], r["forward_m"], r["left_m"], r["turned_deg"],
         r["steps"]] for r in report["legs"]
    ])  # fmt: skip
    table("walk", ["quantity", "value"], [
        ["steps", report["steps"]],
        ["way", f"{report['way_m']:.2f} m"],
        ["falls", report["falls"]],
        ["maximum tilt of the trunk", f"{report['tilt_deg']:.1f} deg"],
        ["error of the divergent component, rms", f"{report['dcm_error_rms_mm']:.1f} mm"],
        ["odometry error", f"{report['odometry_error_mm']:.0f} mm ({report['odometry_error_percent']:.1f} %)"],
        ["heading error", f"{report['heading_error_deg']:.1f} deg"],
        ["commands beyond a limit", report["commands_limited"]],
        ["commands with a joint at its speed limit", f"{report['saturated_percent']:.1f} %"],
        ["tick time, median and 99 %", f"{report['control_p50_ms']:.2f} ms, {report['control_p99_ms']:.2f} ms"],
    ])  # fmt: skip
    verdict = "walked the course without a fall" if report["good"] and report["finished"] else "incomplete walk"
    console.print(f"{verdict}; final state: {report['state'].lower()}")


def _pose(m: Any) -> pin.SE3:
    p, o = m.pose.pose.position, m.pose.pose.orientation
    return pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w]))


def _wrapped(angle: float) -> float:
    return (angle + math.pi) % (2 * math.pi) - math.pi
