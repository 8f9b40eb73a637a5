"""Tendon demo: a robot reaches by tendons, one of which is cut halfway."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendons_of
from humanoid_control.session.session import Session
from humanoid_control.terminal import console, progress, table

# Topics of the report and the viewer. Fewer topics lose fewer messages on a busy machine.
TENDON_TOPICS = (
    "joint_states",
    "joint_commands",
    "estimated_joint_states",
    "targets",
    "tendon_states",
    "tendon_commands",
    "tendon_markers",
    "/diagnostics",
)
CUT = "l_brachialis"  # redundant tendon of the arm; without it, the last tendon of the file
PERIOD = 0.05  # [s] period of the observation
WAITS = 10.0  # [s] after the cut for the controller to detect it
OVER = 1.1  # share of the maximum tension that still counts as within the limit
SETTLED = 3.0  # [s] after the first motion before errors count


class TendonWatch:
    """Subscriber to joints, references, targets and tendons of a session."""

    def __init__(self, session: Session, robot: Robot) -> None:
        from sensor_msgs.msg import JointState
        from visualization_msgs.msg import MarkerArray

        from humanoid_control.nodes.base.messages import STREAM_IN

        self.session, self.robot, node = session, robot, session.monitor.node
        self.joints = robot.postures["neutral"].copy()
        self.references: dict[str, float] = {}
        self.targets: dict[str, np.ndarray] = {}
        self.tensions: dict[str, float] = {}
        self.points: list[float] = []  # distances of points to targets [m]
        self.errors: list[float] = []  # largest joint tracking errors [rad]
        self.peaks: dict[str, float] = {}
        self.means: list[float] = []
        for kind, topic, callback in (
            (JointState, "joint_states", self._on_joints),
            (JointState, "tendon_controller/references", self._on_references),
            (JointState, "tendon_states", self._on_tendons),
            (MarkerArray, "targets", self._on_targets),
        ):
            node.create_subscription(kind, topic, callback, STREAM_IN)

    def _on_joints(self, m: Any) -> None:
        for name, q in zip(m.name, m.position, strict=True):
            if name in self.robot.index:
                self.joints[self.robot.index[name]] = q

    def _on_references(self, m: Any) -> None:
        self.references = dict(zip(m.name, m.position, strict=True))

    def _on_tendons(self, m: Any) -> None:
        self.tensions = dict(zip(m.name, m.effort, strict=True))
        for name, tension in self.tensions.items():
            self.peaks[name] = max(self.peaks.get(name, 0.0), tension)
        self.means.append(float(np.mean(m.effort)))

    def _on_targets(self, m: Any) -> None:
        for k in m.markers:
            self.targets[k.ns] = np.array([k.pose.position.x, k.pose.position.y, k.pose.position.z])

    @property
    def status(self) -> Any:
        """Last diagnostics of the tendon controller, or None."""
        found = (s for n, s in self.session.monitor.nodes.items() if n.rsplit("/", 1)[-1] == "tendon_controller")
        return next(found, None)

    def spin(self, counts: bool) -> None:
        """Handle messages for one period; `counts`: record errors."""
        self.session.monitor.spin(PERIOD)
        self.session.check()
        if not counts:
            return
        names = [n for n in self.targets if n in self.robot.points]
        if names:
            places = self.robot.point_positions(self.robot.q(self.joints), names)
            rows = zip(names, places, strict=True)
            self.points += [float(np.linalg.norm(p - self.targets[n])) for n, p in rows]
        if self.references:
            off = [abs(self.joints[self.robot.index[n]] - q) for n, q in self.references.items()]
            self.errors.append(max(off))

    def clear(self) -> dict[str, Any]:
        """Return figures since the last call."""

        def figures(values: list[float], scale: float) -> dict[str, float]:
            rows = scale * np.array(values or [np.nan])
            return {"median": round(float(np.median(rows)), 2), "p95": round(float(np.percentile(rows, 95)), 2)}

        out = {
            "points_mm": figures(self.points, 1e3),
            "worst_joint_deg": figures(self.errors, float(np.degrees(1.0))),
            "tension_mean_n": round(float(np.mean(self.means or [np.nan])), 1),
            "tension_peak_n": round(max(self.peaks.values(), default=float("nan")), 1),
        }
        self.points, self.errors, self.means = [], [], []
        return out


def reach_by_tendons(
    session: Session,
    robot: Robot,
    seconds: float,
    tendon: str = "",
    quiet: bool = True,
    begin: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Observe a session, cut a tendon halfway, and report.

    `good`: the controller detected the cut, no tendon was overloaded, and the joints tracked.

    Args:
        session: running session of the stack `tendons`.
        robot: fixed base.
        seconds: duration after the first motion [s].
        tendon: tendon to cut; empty: `CUT`.
        begin: called at the first motion.

    Raises:
        StackFailure: see `Session`.
    """
    tendons = tendons_of(robot)
    tendon = tendon or (CUT if CUT in tendons.names else tendons.names[-1])
    started = session.wait_first_motion()
    if not quiet:
        console.print(f"moving after {started:.1f} s; logs and recording: {session.directory}")
    begin()
    watch, start = TendonWatch(session, robot), time.monotonic()
    with progress("tendons", seconds, quiet=quiet) as show:
        _watch(watch, start, 0.5 * seconds, lambda done: show(done, "all tendons"))
        whole = watch.clear()
        cut_at = time.monotonic()
        _set_fault(session, f"{tendon}=snapped")
        found = -1.0

        def observe(done: float) -> None:
            nonlocal found
            if found < 0 and (status := watch.status) is not None and "snapped" in status.message:
                found = time.monotonic() - cut_at
            show(done, f"{tendon} is cut" + (", detected" if found >= 0 else ""))

        _watch(watch, start, seconds, observe)
    torn = watch.clear()
    most = {t.name: t.max_tension for t in tendons}
    over = sorted(n for n, peak in watch.peaks.items() if peak > OVER * most.get(n, np.inf))
    followed = torn["worst_joint_deg"]["median"] < 5.0
    return {
        "start_s": round(started, 2),
        "cut": tendon,
        "found_after_s": round(found, 2) if found >= 0 else None,
        "whole": whole,
        "torn": torn,
        "overloaded": over,
        "good": 0 <= found <= max(WAITS, 0.5 * seconds) and not over and followed,
    }


def _watch(watch: TendonWatch, begin: float, until: float, show: Callable[[float], None]) -> None:
    while (done := time.monotonic() - begin) < until and not watch.session.stopped.is_set():
        watch.spin(done > SETTLED)
        show(done)


def _set_fault(session: Session, text: str) -> None:
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    client = session.monitor.node.create_client(SetParameters, "simulator/set_parameters")
    end = time.monotonic() + WAITS
    while not client.service_is_ready() and time.monotonic() < end:
        session.monitor.spin(PERIOD)
    parameter = Parameter("tendon_faults", value=text).to_parameter_msg()
    client.call_async(SetParameters.Request(parameters=[parameter]))


def print_tendons(report: dict[str, Any]) -> None:
    columns = ["", "all tendons", f"{report['cut']} cut"]
    whole, torn = report["whole"], report["torn"]

    def both(key: str) -> list[str]:
        return [f"{part[key]['median']:.1f} / {part[key]['p95']:.1f}" for part in (whole, torn)]

    table("reaching by tendons", columns, [
        ["distance of points to targets, median / 95 % [mm]", *both("points_mm")],
        ["largest joint tracking error, median / 95 % [deg]", *both("worst_joint_deg")],
        ["mean tension [N]", whole["tension_mean_n"], torn["tension_mean_n"]],
        ["peak tension since the start [N]", whole["tension_peak_n"], torn["tension_peak_n"]],
    ])  # fmt: skip
    found = report["found_after_s"]
    text = f"detected automatically after {found:.1f} s" if found is not None else "not detected"
    over = f"; overloaded: {', '.join(report['overloaded'])}" if report["overloaded"] else ""
    console.print(f"the cut of {report['cut']} was {text}{over}")
