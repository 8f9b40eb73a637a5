"""Node `whole_body_ik`: converts targets to joint commands within all limits.

Markers show shapes coloured by clearance, near pairs, centre of mass and momentum.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.estimation import (
    LOST_AFTER,
    ClockOffset,
    ClockOffsets,
    ClockSteps,
    Verdict,
)
from humanoid_control.ik import FollowerSettings, IkResult, IkSettings, TargetFilterSettings, TargetFollower
from humanoid_control.kinematics.centroidal import centroidal_momentum_map
from humanoid_control.nodes.base.command_owner import TARGETS_IN, TARGETS_TIMEOUT, CommandOwner, listen_to_one
from humanoid_control.nodes.base.messages import (
    STREAM_OUT,
    WORLD,
    fill_joint_state,
    joint_state,
    seconds,
    stamp_of,
)
from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import (
    MOST_MARKERS,
    IdlePublisher,
    MarkerPoses,
    MarkerReader,
    SerializedMarkers,
)
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.supervised_robot import SupervisedRobot
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.targets.pose_targets import PoseTargets, TargetOwners
from humanoid_control.nodes.targets.target_frames import TargetFrames
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.self_collision import BALL_PART, BOX_PART, CYLINDER_PART, ShapeParts
from humanoid_control.robots.tendons import within_tendons

GREY, YELLOW, RED = np.array([0.62, 0.64, 0.67, 0.35]), np.array([0.98, 0.8, 0.1, 0.6]), np.array([0.9, 0.1, 0.1, 0.85])
AT_MARGIN = 1e-3  # [m] tolerance: a pair that the solver keeps at the margin is red
PAIRS = 24  # maximum number of lines, nearest pairs first
LIFETIME = 0.5  # [s] lifetime of the markers without a new message
METRES_PER_LINEAR = 0.03  # [m / (kg m/s)]
METRES_PER_ANGULAR = 0.15  # [m / (kg m^2/s)]
SHORTEST = 1e-3  # [m] minimum arrow length, which keeps its direction defined
TYPES = {BALL_PART: Marker.SPHERE, CYLINDER_PART: Marker.CYLINDER, BOX_PART: Marker.CUBE}


class IkMarkers:
    """Publisher of `ik_markers` between ticks.

    Namespaces: shapes, near_pairs, closest_points, centre_of_mass, linear_momentum, angular_momentum.
    """

    def __init__(self, node: TickNode, robot: Robot, world: str = WORLD) -> None:
        self.robot, self._node = robot, node
        publisher: Any = node.create_publisher(MarkerArray, "ik_markers", STREAM_OUT)
        self._parts, self._data = ShapeParts(robot), robot.model.createData()
        message, self._first = _message(self._parts)
        for marker in message.markers:
            marker.header.frame_id = world
        self._bytes = SerializedMarkers(message)
        self._pairs = robot.pairs
        self._moving_mass = float(sum(i.mass for i in list(robot.model.inertias)[1:]))
        self.idle_publisher = IdlePublisher(publisher)
        self._points, self._colors = np.zeros((2 * PAIRS, 3)), np.zeros((2 * PAIRS, 4))
        self._poses = np.tile([0.0, 0, 0, 0, 0, 0, 1], (1, 1))

    def publish(self, left: float, rate: float, result: IkResult, margin: float, activation: float) -> None:
        """Publish if due, subscribed and short enough.

        Args:
            left: time to the next tick [s].
            rate: rate of the markers [Hz]; 0: none.
            margin: distance at which a shape is red [m].
            activation: distance at which a shape begins to turn yellow [m].
        """

        def write() -> bytes:
            return self.write(stamp_of(self._node.present()), result, margin, activation)

        self.idle_publisher.publish(left, rate, write)

    def write(self, stamp: Time, result: IkResult, margin: float, activation: float) -> bytes:
        t, near = self._bytes, result.near
        t.set_stamp(stamp)
        t.set_poses(0, self._parts.place(result.q))
        clearance = np.full(len(self.robot.shapes), np.inf)
        for side in self._pairs[near.pair].T:
            np.minimum.at(clearance, side, near.distance)
        t.set_colors(0, colors_of(clearance, margin, activation)[self._parts.shape])
        lines, dots, center, linear, angular = range(self._first, self._first + 5)
        self._write_pairs(lines, dots, result, margin, activation)
        momentum = centroidal_momentum_map(self.robot.model, self._data, result.q)
        com = self._center_of_mass(momentum.center)
        self._poses[0, :3] = com
        t.set_poses(center, self._poses)
        for marker, J, scale in (
            (linear, momentum.linear, METRES_PER_LINEAR),
            (angular, momentum.angular, METRES_PER_ANGULAR),
        ):
            arrow = scale * (J @ result.v)
            long = np.linalg.norm(arrow) > SHORTEST
            t.set_points(marker, np.array([com, com + (arrow if long else [0.0, 0.0, SHORTEST])]))
        return t.bytes()

    def _center_of_mass(self, moving: np.ndarray) -> np.ndarray:
        """Return the centre of mass including fixed links."""
        held, m = self.robot.model.inertias[0], self._moving_mass
        return (m * moving + held.mass * held.lever) / (m + held.mass)

    def _write_pairs(self, lines: int, dots: int, result: IkResult, margin: float, activation: float) -> None:
        near, t = result.near, self._bytes
        order = np.argsort(near.distance)[:PAIRS]
        order = order[near.distance[order] < activation]
        for marker in (lines, dots):
            t.show(marker, len(order) > 0)
        if not len(order):
            return
        # unused entries repeat the last pair, because the array size is fixed
        k = np.concatenate([order, np.full(PAIRS - len(order), order[-1])])
        self._points[0::2], self._points[1::2] = near.point_1[k], near.point_2[k]
        colors = colors_of(near.distance[k], margin, activation)
        colors[:, 3] = 1.0
        self._colors[0::2], self._colors[1::2] = colors, colors
        for marker in (lines, dots):
            t.set_points(marker, self._points, self._colors)


def colors_of(distance: np.ndarray, margin: float, activation: float) -> np.ndarray:
    """Return colours (K, 4) of distances (K,) [m]: grey above `activation` to yellow, red below `margin`."""
    share = np.clip((activation - distance) / max(activation - margin, 1e-9), 0.0, 1.0)[:, None]
    return np.where((distance <= margin + AT_MARGIN)[:, None], RED, GREY + share * (YELLOW - GREY))


def _message(parts: ShapeParts) -> tuple[MarkerArray, int]:
    """Return the constant message, and the index after its shapes."""
    array = MarkerArray()
    for k, (kind, size) in enumerate(zip(parts.kind.tolist(), parts.size.tolist(), strict=True)):
        array.markers.append(_marker("shapes", k, TYPES[kind], size))
    lines = _marker("near_pairs", 0, Marker.LINE_LIST, (0.006, 0.0, 0.0))
    dots = _marker("closest_points", 0, Marker.SPHERE_LIST, (0.018, 0.018, 0.018))
    for m in (lines, dots):
        m.points, m.colors = [Point() for _ in range(2 * PAIRS)], [ColorRGBA() for _ in range(2 * PAIRS)]
    center = _marker("centre_of_mass", 0, Marker.SPHERE, (0.05, 0.05, 0.05), (0.9, 0.16, 0.63, 0.9))
    linear = _marker("linear_momentum", 0, Marker.ARROW, (0.014, 0.03, 0.05), (0.1, 0.6, 0.6, 0.9))
    angular = _marker("angular_momentum", 0, Marker.ARROW, (0.014, 0.03, 0.05), (0.45, 0.2, 0.8, 0.9))
    for m in (linear, angular):
        m.points = [Point(), Point(z=SHORTEST)]
    first = len(array.markers)
    array.markers += [lines, dots, center, linear, angular]
    return array, first


def _marker(ns: str, number: int, kind: int, scale: Any, color: Any = GREY) -> Marker:
    m = Marker(ns=ns, id=number, type=kind, action=Marker.ADD)
    m.pose.orientation.w = 1.0
    m.scale.x, m.scale.y, m.scale.z = (float(s) for s in scale)
    m.color = ColorRGBA(**dict(zip("rgba", (float(c) for c in color), strict=True)))
    m.lifetime = Duration(nanosec=int(1e9 * LIFETIME))
    return m


# -------- The node

NO_POSITIONS = np.zeros(0)
SHORTEST_STEP = 100_000  # [ns]
NAMED = 4  # targets in a report
TOLD = 2.0  # [s] time for which a crowded message stays reported
MAX_TARGET_RATE = 120.0  # [Hz]
STATES = "estimated_joint_states"
WRISTS = "l_wrist, r_wrist"


@dataclass(frozen=True)
class WholeBodyIkParameters(WorldParameters):
    """Parameters of the inverse kinematics."""

    rate: float = param(250.0, "command rate", "Hz", 10.0, 1000.0)
    point_gain: float = param(40.0, "decay rate of the target error", "1/s", 0.1, 200.0, live=True)
    posture_weight: float = param(
        0.06, "weight of the neutral posture, relative to 1 for a target", "", 0.0, 10.0, live=True
    )
    hold_idle_joints: bool = param(
        True,
        "hold joints that move no target at the neutral posture, or return them to it; false: all joints are free",
        live=True,
    )
    damping: float = param(0.02, "cost of joint speed", "s/rad", 0.001, 10.0, live=True)
    smoothing: float = param(0.05, "cost of joint speed changes", "s/rad", 0.0, 10.0, live=True)
    velocity_scale: float = param(
        0.95,
        "usable share of the joint speed limits; the rest is reserved for the overshoot of drives",
        "",
        0.01,
        1.0,
        live=True,
    )
    acceleration: float = param(
        200.0, "acceleration limit of each joint, in addition to its own", "rad/s^2", 1.0, 1e6, live=True
    )
    acceleration_scale: float = param(
        1.0,
        "usable share of the joint acceleration limits of the robot file or the drives; 1000: only "
        "`acceleration` applies",
        "",
        0.01,
        1000.0,
        live=True,
    )
    soft_start: float = param(
        0.8,
        "time after each start or interruption in which the joint speed and acceleration limits ramp up from 0",
        "s",
        0.0,
        10.0,
        live=True,
    )
    tendon_range: bool = param(
        False, "narrow the joint ranges around neutral to the share that the tendons of the robot hold against gravity"
    )
    self_collision: bool = param(True, "avoid self-collisions")
    margin: float = param(
        0.02, "minimum distance of shapes; smaller for pairs that are closer at rest", "m", 0.0, 0.2, live=True
    )
    activation: float = param(
        0.12, "least distance below which a pair of shapes is a constraint", "m", 0.0, 0.5, live=True
    )
    approach: float = param(
        8.0,
        "closing speed of a pair per distance above the margin; farther out, braking limits it",
        "1/s",
        0.1,
        50.0,
        live=True,
    )
    bandwidth: float = param(10.0, "bandwidth of the target smoothing", "Hz", 0.5, 50.0, live=True)
    max_speed: float = param(3.0, "maximum speed at which a target is followed", "m/s", 0.01, 20.0, live=True)
    max_jump: float = param(0.4, "target jump above which a sample is initially rejected", "m", 0.01, 10.0, live=True)
    pose_targets: str = param(
        WRISTS,
        "points (position) or links (pose) with their own topic targets/NAME, PoseStamped, "
        "comma-separated; empty: none",
    )
    tf_targets: bool = param(False, "use frames target/NAME on /tf as targets of the named points and links")
    target_timeout: float = param(0.25, "target silence after which the target is held", "s", 0.02, 10.0, live=True)
    markers_rate: float = param(20.0, "rate of ik_markers with subscribers; 0: disabled", "Hz", 0.0, 100.0, live=True)
    feedback: float = param(
        0.0,
        "0: command positions; above: command velocities, with this gain on the error of the estimated positions",
        "1/s",
        0.0,
        50.0,
    )
    start_blind: bool = param(False, "start at the neutral posture without joint states; false: wait for them")
    following_error: float = param(
        0.15,
        "maximum tracking error per joint; exceeding it for 50 ms stops the robot, as do jumping, frozen "
        "or non-finite states; 0: disabled",
        "rad",
        0.0,
        10.0,
        live=True,
    )
    robot_timeout: float = param(
        0.5,
        "joint state silence after which the robot is stopped until they return",
        "s",
        0.05,
        60.0,
        live=True,
    )


class WholeBodyIkNode(TickNode):
    """Node that tracks targets, with an extra tick per message."""

    Parameters = WholeBodyIkParameters
    params: WholeBodyIkParameters
    node_name = "whole_body_ik"
    stamp: float | None  # of the newest targets; None after a command has used them
    last_command: int | None  # time of the last command [ns]

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        if p.tendon_range:
            robot, share = within_tendons(robot)
            self.get_logger().info(f"tendon_range: joints keep to {100 * share:.0f} % of their ranges around neutral")
        self.robot = robot
        self.follower = TargetFollower(robot, self.settings(), p.self_collision)
        self.message = joint_state(robot.joint_names)
        self.commands = CommandOwner(self, "joint_commands")
        self.markers = IkMarkers(self, robot, p.world)
        timeout = max(p.target_timeout, TARGETS_TIMEOUT)
        many = listen_to_one(self, MarkerArray, "targets", self.on_targets, timeout, TARGETS_IN, raw=True, wakes=True)
        self.markers_owner = many
        single = PoseTargets(self, robot, p.pose_targets, WRISTS, p.tf_targets, self.take_targets, p.frame_prefix)
        self.target_owners = TargetOwners(self, single.names, timeout)
        world, self.reader = p.world, MarkerReader()
        self.frames = TargetFrames(self, robot, world, self.measured_joints, p.frame_prefix)
        self.crowd, self.crowd_at = 0, -math.inf
        self.bad_frames: dict[str, tuple[str, float]] = {}  # by topic: problem and its arrival [s]
        self.reports.append(self.report_frames)
        self.listen(JointState, STATES, self.on_joint_states)
        self.supervised = SupervisedRobot(self, robot, STATES, self.restart)
        self.supervised.configure(p.following_error, p.robot_timeout)
        self.target_clocks, self.robot_clock, self.clock_steps = ClockOffsets(), ClockOffset(), ClockSteps()
        self.latency = SampleWindow(int(MAX_TARGET_RATE * max(10.0, p.window)))
        self.waiting, self.sent = False, 0
        return p.rate

    def settings(self) -> FollowerSettings:
        p = self.params
        ik = IkSettings(
            p.damping,
            p.smoothing,
            p.velocity_scale,
            p.acceleration,
            p.acceleration_scale,
            p.margin,
            max(p.activation, p.margin + 0.005),
            p.approach,
        )
        target = TargetFilterSettings(p.bandwidth, p.max_speed, p.max_jump, timeout=p.target_timeout)
        return FollowerSettings(
            point_gain=p.point_gain,
            posture_weight=p.posture_weight,
            hold_idle_joints=p.hold_idle_joints,
            soft_start=p.soft_start,
            ik=ik,
            filter=target,
        )

    def parameters_changed(self, changed: set[str]) -> None:
        if hasattr(self, "follower"):
            self.follower.configure(self.settings())
            self.supervised.configure(self.params.following_error, self.params.robot_timeout)

    def activate(self) -> None:
        self.commands.restart()
        self.restart()

    def restart(self) -> None:
        """Restart at the current posture, once joint states arrive."""
        self.waiting, self.stamp, self.last_command = True, None, None
        self.supervised.reset()
        self.commands.pause()
        self.follower.start(self.robot.postures["neutral"])

    def on_joint_states(self, m: JointState) -> None:
        self.robot_clock.time(seconds(m.header.stamp), self.clock(), time.monotonic())
        self.supervised.hear(m)

    def measured_joints(self) -> np.ndarray:
        """Return joint positions (n,) [rad], measured or else commanded."""
        q = self.supervised.estimate.values
        return np.where(np.isfinite(q), q, self.robot.joints(self.follower.q))

    @property
    def follows_targets(self) -> bool:
        """Whether the robot can track targets now."""
        return self.active and not (self.waiting or self.supervised.away or self.supervised.stopped)

    def on_targets(self, data: bytes) -> None:
        if not self.follows_targets:
            return
        m = self.reader.read(data)
        if m.passed_over:
            self.crowd, self.crowd_at = m.passed_over, time.monotonic()
        text = f"{self.crowd} markers in a targets message beyond the first {MOST_MARKERS}: ignored"
        self.health.check("crowd", time.monotonic() - self.crowd_at < TOLD, Level.WARN, text)
        self.take_targets(m, "targets", self.markers_owner.owner)

    def take_targets(self, m: MarkerPoses, topic: str, gid: bytes) -> None:
        """Track the targets that this publisher owns."""
        if not self.follows_targets:
            return
        m = self.target_owners.owned(m, topic, gid)
        if not m.names:
            return
        at = self.target_clocks.time(m.names, m.stamp, self.clock(), time.monotonic())
        names, poses = self.frames.in_world(m)
        if problem := self.frames.problem:
            self.bad_frames[topic] = problem if topic == "targets" else f"{topic}: {problem}", time.monotonic()
        elif topic in self.bad_frames:
            del self.bad_frames[topic]
        self.follower.update_many(names, poses, at)
        self.stamp = at if names else None

    def report_frames(self, now: float) -> None:
        """Report targets with unusable frames."""
        self.bad_frames = {topic: row for topic, row in self.bad_frames.items() if now - row[1] < TOLD}
        text = "; ".join(text for text, _ in self.bad_frames.values())
        self.health.check("frame", bool(text), Level.WARN, text)

    def nanoseconds(self) -> int:
        """Return the ROS time [ns]; if the clock was set, shift target times."""
        now = self.get_clock().now().nanoseconds
        if step := self.clock_steps.detect(1e-9 * now, time.monotonic()):
            self.follower.shift_time(step)
            self.target_clocks.shift(step)
            self.stamp = None if self.stamp is None else self.stamp + step
        return now

    def clock(self) -> float:
        return 1e-9 * self.nanoseconds()

    def tick(self, now: float) -> None:
        robot = self.supervised
        if self.waiting:
            known = robot.estimate.known
            robot.is_awaited(now)
            ready = robot.may_be_commanded(now) if known else self.params.start_blind
            if not self.commands.may_command(now, ready):  # the estimate is still updated meanwhile
                return
            self.health.clear("start")
            self.follower.start(robot.estimate.values)
            robot.begin(known)
            self.waiting = False
        elif not self.commands.may_command(now):
            self.restart()
            return
        age = self.age(STATES, now)
        lost = self.params.feedback > 0 and age > LOST_AFTER
        if self.health.check("lost", lost, Level.WARN, "no joint estimates: standing still"):
            robot.away = age > self.params.robot_timeout
            self.commands.publish(
                fill_joint_state(self.message, stamp_of(self.present()), NO_POSITIONS, np.zeros(self.robot.n))
            )
            return
        verdict = robot.verdict(now)
        if verdict is Verdict.BEGIN:  # the robot is available again
            self.restart()
            return
        self.command(verdict is Verdict.MOVE)

    def command(self, moves: bool) -> None:
        """Publish the next command.

        Args:
            moves: True: track targets; False: brake and stay at rest.
        """
        now, period = self.nanoseconds(), round(1e9 / self.rate)
        before = now - period if self.last_command is None else self.last_command
        if now - before < SHORTEST_STEP:  # a target right after a tick, or a clock set back: the next tick handles it
            self.last_command = min(now, before)
            return
        self.last_command, dt = now, 1e-9 * min(now - before, 2 * period)
        if moves:
            self.report(self.follower.step(1e-9 * now, dt).ok)
        else:
            self.follower.brake(dt)
        v = self.follower.v[self.robot.iv :]
        joints, gain = self.robot.joints(self.follower.q), self.params.feedback
        self.supervised.command(time.monotonic(), joints)
        if gain > 0:
            most = self.params.velocity_scale * self.robot.velocity
            v = np.clip(v + gain * np.nan_to_num(joints - self.supervised.estimate.values), -most, most)
            joints = NO_POSITIONS
        self.commands.publish(fill_joint_state(self.message, stamp_of(self.stamps.next(now)), joints, v))
        self.sent += 1
        if self.stamp is not None:
            self.latency.add(max(0.0, self.clock() - self.stamp))
            self.stamp = None

    def slack_time(self, left: float) -> None:
        if (result := self.follower.last) is not None:
            ik = self.follower.settings.ik
            self.markers.publish(left, self.params.markers_rate, result, ik.margin, ik.activation)

    def report(self, solved: bool) -> None:
        self.health.check("solver", not solved, Level.ERROR, "the solver found no solution: standing still")
        for topic, clock in (("targets", self.target_clocks), (STATES, self.robot_clock)):
            self.health.check(f"clock {topic}", bool(clock.problem), Level.WARN, f"{topic}: {clock.problem}")
        problems = sorted(self.follower.problems.values())
        more = len(problems) + self.follower.more_unknown - NAMED
        text = "; ".join(problems[:NAMED]) + (f"; and {more} more" if more > 0 else "")
        self.health.check("targets", bool(problems), Level.WARN, text)

    def values(self) -> dict[str, Any]:
        near = self.follower.last.near if self.follower.last else None
        p50, p99 = self.latency.percentiles()
        worst = self.supervised.take_worst()
        closest = f"{near.distance.min():.4f}" if near is not None and len(near) else "far"
        return {
            "commands": self.sent,
            "targets": len(self.follower.targets),
            "latency_p50_ms": round(1000 * p50, 3),
            "latency_p99_ms": round(1000 * p99, 3),
            "closest_pair_m": closest,
            "following_error_rad": round(worst[1], 4),
            "following_error_joint": worst[0],
            "markers_p50_ms": round(1000 * self.markers.idle_publisher.took.percentiles()[0], 3),
        }


def main() -> int:
    return main_of(WholeBodyIkNode)


if __name__ == "__main__":
    sys.exit(main())
