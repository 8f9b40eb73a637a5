"""Node `viewer`: the whole stack in a browser page."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist, TwistStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import BatteryState, JointState
from std_msgs.msg import Float64, Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.errors import EnvironmentProblem, require_extra
from humanoid_control.hardware.power import REQUESTS, PowerState
from humanoid_control.nodes.base.messages import EVENTS, GROUND_TRUTH, LATCHED, STREAM_IN
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.nodes.walking.gamepad import three_numbers
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.viewer import PanelActions, port_is_free, print_address
from humanoid_control.viewer.panel import HIDDEN, MARKERS
from humanoid_control.viewer.policy_controls import BUTTONS, PolicyActions
from humanoid_control.viewer.power_controls import PowerActions
from humanoid_control.viewer.tendon_controls import FOLLOW, HOLD, RELAX, TENSION_UP, TendonActions
from humanoid_control.viewer.walk_controls import CALLS, WalkActions, in_root_axes

if TYPE_CHECKING:
    from humanoid_control.viewer.page import ViewState

MARKER_PERIOD = 0.1  # [s] a message of a hundred markers takes some 5 ms to read
MARKERS_GONE = 1.0  # [s] without messages after which markers disappear, as in rviz
PLAYER = ("play", "pause", "restart")
PERFORMER, PERFORMANCE = "whole_body_controller", ("start", "stop", "restart")  # it cannot pause within a step
LOOK_PERIOD = 1.0  # [s] period of the check that the driver is still running
STAMPED = "geometry_msgs/msg/TwistStamped"
MOVE_PERIOD = 0.1  # [s] period of cmd_vel while the pad is used


class MarkerTopic:
    """Marker topic, subscribed only while shown."""

    def __init__(self, node: TickNode, state: ViewState, topic: str) -> None:
        self._node, self._state, self.topic = node, state, topic
        self._subscription: Any = None
        self._newest: bytes | None = None
        self._due, self._seen = 0.0, math.inf

    def update(self, shown: bool, now: float) -> None:
        """Subscribe or unsubscribe, and pass on the newest message."""
        if shown and self._subscription is None:
            self._subscription = self._node.create_subscription(
                MarkerArray, self.topic, self._on_markers, STREAM_IN, raw=True
            )
        elif not shown and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription, self._newest = None, None
        if self._newest is not None and now >= self._due:
            self._state.markers[self.topic] = deserialize_message(self._newest, MarkerArray).markers
            self._newest, self._due = None, now + MARKER_PERIOD
            self._seen = now
        elif now - self._seen > MARKERS_GONE:
            self._state.markers[self.topic], self._seen = [], math.inf

    def _on_markers(self, data: bytes) -> None:
        self._newest = data


@dataclass(frozen=True)
class ViewerParameters(NodeParameters):
    """Parameters of the viewer."""

    priority: int = param(-10, "as for every node; low, since drawing must not delay control", "", -19, 98)
    missed_warn: float = param(
        50.0, "as for every node; high, since a slow browser connection is not a fault", "%", 0, 100, live=True
    )
    missed_error: float = param(100.0, "as for every node", "%", 0.0, 100.0, live=True)
    rate: float = param(30.0, "frame rate", "Hz", 1.0, 60.0)
    port: int = param(8080, "port of the page", "", 1, 65535)
    ik_markers: bool = param(False, "show the markers of whole_body_ik at startup")
    footsteps: bool = param(False, "show the plan of the walker at startup")
    player: str = param("trajectory_streamer", "clip node that the playback buttons control")
    person: bool = param(False, "show the person of human_motion instead of the dancer figure at startup")
    tendons: bool = param(
        False, "show the controls of a tendon-driven robot: hold, relax, cut a tendon, co-contraction"
    )
    walking: bool = param(False, "show the controls of a walking robot: a pad, pushes, and stop buttons")
    pad_speeds: str = param("0.4,0.1,0.4", "maximum velocities of the pad: forward, left [m/s], turning [rad/s]")
    follow: bool = param(False, "let the camera follow the robot at startup")
    shadows: bool = param(True, "draw shadows at startup (slow in a browser without a GPU)")
    replay: str = param("", "replay command that is shown at the end of a run")
    host: str = param("127.0.0.1", "listen address; 0.0.0.0 admits other machines")
    origins: str = param("", "additional host names allowed to connect, comma-separated; others are refused")


class Viewer(TickNode):
    """Node that draws the newest message of each topic at its own rate."""

    Parameters = ViewerParameters
    params: ViewerParameters
    node_name = "viewer"

    def configure(self) -> float:
        require_extra("viewer")
        from humanoid_control.viewer.page import ViewerPage, ViewState

        p = self.params
        if not port_is_free(p.host, p.port):
            raise EnvironmentProblem(
                f"port {p.port} is in use: stop the program that uses it, or set the parameter port"
            )
        robot = load_robot(p.robot, "fixed")
        self.state, self.looked = ViewState(robot), 0.0
        self.seeks = self.create_publisher(Float64, "clip/seek", EVENTS)
        performs = p.player == PERFORMER
        labels = PERFORMANCE if performs else PLAYER
        self.streamer: dict[str, Any] = {n: self.create_client(Trigger, f"{p.player}/{n}") for n in labels}
        play, pause, restart = (self.caller(n) for n in labels)
        walk = self._walk_actions(robot) if p.walking else None
        power = PowerActions(self._request_power)
        self.requests: dict[str, Any] = {
            service: self.create_client(Trigger if on is None else SetBool, f"robot_driver/{service}")
            for service, on in REQUESTS.values()
        }
        self.policy: dict[str, Any] = {r: self.create_client(Trigger, f"policy/{r}") for _, r, *_ in BUTTONS}
        policy = PolicyActions(self._request_policy, None if p.walking else self._mover())
        tendons = self._tendon_actions(robot) if p.tendons else None
        actions = PanelActions(
            self.show, self.seek, play, pause, restart, walk, power, policy, tendons, labels, seekable=not performs
        )
        shown = {
            "ik_markers": p.ik_markers,
            "footsteps/planned": p.footsteps,
            "human/markers": p.person,
            "dancer": not p.person,
            "follow": p.follow,
            "shadows": p.shadows,
        }
        hidden = (*(n for n in HIDDEN if n not in shown), *(n for n, on in shown.items() if not on))
        origins = [name.strip() for name in p.origins.split(",") if name.strip()]
        print_address(p.port, p.host)
        self.page = ViewerPage(p.host, p.port, robot, actions, urdf_path(p.robot).parent, hidden, origins)
        self.markers = [MarkerTopic(self, self.state, topic) for topic in MARKERS]
        self.listen(JointState, "joint_states", self.state.on_joints)
        self.listen(MarkerArray, "targets", self.state.on_targets)
        self.listen(MarkerArray, "dancer", self.state.on_dancer)
        self.listen(Odometry, GROUND_TRUTH, self.state.on_truth)
        self.listen(Odometry, "odom", self.state.on_odometry)
        self.listen(String, "walking/state", self.state.on_walking, LATCHED)
        self.listen(String, "performing/state", self.state.on_walking, LATCHED)
        self.listen(String, "policy/state", self.state.on_policy, LATCHED)
        self.listen(Float64MultiArray, "policy/terms", self.state.on_terms)
        self.listen(String, "hardware_state", self.state.on_power, LATCHED)
        self.listen(BatteryState, "battery", self.state.on_battery, EVENTS)
        self.listen(Float64, "clip/time", self.state.on_clip_time)
        self.listen(Float64, "clip/duration", lambda m: self.page.panel.set_duration(m.data), LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", self.state.on_diagnostics, EVENTS)
        return p.rate

    def _walk_actions(self, robot: Robot) -> WalkActions:
        clients: dict[str, Any] = {n: self.create_client(Trigger, f"walker/{n.replace(' ', '_')}") for n in CALLS}
        pushes = self.create_publisher(WrenchStamped, "simulator/push", EVENTS)
        upright = robot.link_poses(robot.q("neutral"))[robot.root_link].rotation

        def push(force: np.ndarray) -> None:
            if (X := self.state.root_pose()) is None:
                return
            m = WrenchStamped()
            m.header.frame_id = self.params.frame(robot.root_link)
            f = m.wrench.force
            f.x, f.y, f.z = in_root_axes(force, X, upright).tolist()
            pushes.publish(m)

        def call(name: str) -> None:
            clients[name].call_async(Trigger.Request())

        return WalkActions(self._mover(), push, call)

    def _mover(self) -> Callable[[np.ndarray], None]:
        """Return a function that publishes velocities of the pad (3,), each -1..1."""
        speeds = three_numbers("pad_speeds", self.params.pad_speeds)
        self.velocities: Any = None  # created at first use, because a second publisher of cmd_vel causes a warning
        asked, at, stamped = np.zeros(3), 0.0, False

        def move(velocity: np.ndarray) -> None:
            nonlocal asked, at, stamped
            now = time.monotonic()
            if now - at < MOVE_PERIOD and velocity.any() == asked.any():
                return
            if self.velocities is None:
                heard = {e.topic_type for e in self.get_subscriptions_info_by_topic("cmd_vel")}
                stamped = heard == {STAMPED}
                self.velocities = self.create_publisher(TwistStamped if stamped else Twist, "cmd_vel", EVENTS)
            asked, at = velocity, now
            m = Twist()
            m.linear.x, m.linear.y, m.angular.z = (speeds * velocity).tolist()
            if stamped:
                header = Header(stamp=self.get_clock().now().to_msg())  # an empty frame means the robot's heading
                self.velocities.publish(TwistStamped(header=header, twist=m))
            else:
                self.velocities.publish(m)

        return move

    def _tendon_actions(self, robot: Robot) -> TendonActions:
        clients: dict[str, Any] = {
            HOLD: self.create_client(SetBool, "tendon_controller/hold"),
            RELAX: self.create_client(Trigger, "tendon_controller/relax"),
            TENSION_UP: self.create_client(Trigger, "tendon_controller/tension_up"),
        }
        simulator: Any = self.create_client(SetParameters, "simulator/set_parameters")
        controller: Any = self.create_client(SetParameters, "tendon_controller/set_parameters")

        def answered(done: Any) -> None:
            if self.page.panel.tendons is not None and (answer := done.result()) is not None:
                texts = [r.reason for r in getattr(answer, "results", [])] or [getattr(answer, "message", "")]
                self.page.panel.tendons.answer("; ".join(t for t in texts if t))

        def request(name: str) -> None:
            held = name in (HOLD, FOLLOW)
            question = SetBool.Request(data=name == HOLD) if held else Trigger.Request()
            clients[HOLD if held else name].call_async(question).add_done_callback(answered)

        def set_parameter(client: Any, name: str, value: Any) -> None:
            parameter = Parameter(name, value=value).to_parameter_msg()
            client.call_async(SetParameters.Request(parameters=[parameter])).add_done_callback(answered)

        def cut(tendon: str) -> None:
            set_parameter(simulator, "tendon_faults", f"{tendon}=snapped" if tendon else "")

        def co_contract(tension: float) -> None:
            set_parameter(controller, "co_contraction", tension)

        from humanoid_control.robots.tendons import tendons_of  # loads the compiler, which other pages do not need

        return TendonActions(tendons_of(robot).names, request, cut, co_contract)

    def _request_power(self, request: str) -> bool:
        """Request an action of the driver; return False without one."""
        service, on = REQUESTS[request]
        client = self.requests[service]
        if not client.service_is_ready():
            return False

        def answered(done: Any) -> None:
            if self.page.panel.power is not None and (answer := done.result()) is not None:
                self.page.panel.power.answer(request, answer.success, answer.message)

        future = client.call_async(Trigger.Request() if on is None else SetBool.Request(data=on))
        future.add_done_callback(answered)
        return True

    def _request_policy(self, request: str) -> bool:
        """Request an action of the policy; return False without one."""
        client = self.policy[request]
        if not client.service_is_ready():
            return False

        def answered(done: Any) -> None:
            if self.page.panel.policy is not None and (answer := done.result()) is not None:
                self.page.panel.policy.answer(request, answer.success, answer.message)

        client.call_async(Trigger.Request()).add_done_callback(answered)
        return True

    def show(self, what: str, visible: bool) -> None:
        self.page.scene.show(what, visible)

    def caller(self, name: str) -> Any:
        """Return a function that calls a service of the streamer without waiting."""
        return lambda: self.streamer[name].call_async(Trigger.Request())

    def seek(self, seconds: float) -> None:
        self.seeks.publish(Float64(data=float(seconds)))

    def tick(self, now: float) -> None:
        for topic in self.markers:
            topic.update(self.page.scene.visible(topic.topic) and self.page.clients > 0, now)
        age = self.age("joint_states", now)
        self.page.draw(self.state, age, time.monotonic())
        for controls in (self.page.panel.walk, self.page.panel.policy):
            if controls is not None and controls.pad is not None:
                controls.pad.update(now)
        self._check_driver(now)

    def _check_driver(self, now: float) -> None:
        """Show when the driver has ended, which no message reports."""
        if self.page.panel.power is not None:
            self.page.panel.power.update(now)
        if now >= self.looked + LOOK_PERIOD and self.state.power:
            self.looked = now
            if not self.count_publishers("hardware_state"):
                self.state.power = f"{PowerState.OFFLINE.name}: the driver has ended"

    def close(self) -> None:
        if (page := self.__dict__.pop("page", None)) is not None:
            page.say_over(self.params.replay)
            page.stop()

    def values(self) -> dict[str, Any]:
        return {"pages_open": self.page.clients, "joints_known": int(np.isfinite(self.state.joints).sum())}


def main() -> int:
    return main_of(Viewer)


if __name__ == "__main__":
    sys.exit(main())
