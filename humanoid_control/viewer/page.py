"""Page of one robot: server, scene and panel."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.kinematics import NodeStatus, node_statuses, part_statuses
from humanoid_control.robots import Robot
from humanoid_control.viewer.panel import HIDDEN, MARKERS, Panel, PanelActions
from humanoid_control.viewer.scene import Scene
from humanoid_control.viewer.server import open_server

SLOW_EVERY = 6  # frames between updates of distances, texts and plots
STALE = 1.0  # [s]
SILENT = 5.0  # [s] without diagnostics, which come once a second, before a node counts as hung
DRIVEN = ("STAND_IN", "RUN", "HANDOVER", "CATCH")  # states of a policy with a velocity pad
MOST_TROUBLES = 3  # lines at the top of the panel
FOLLOW_SHARE = 0.1  # share of the distance to the robot corrected per picture
FOLLOW_JUMP = 2.0  # [m] larger distances are corrected at once
OVER, AGAIN = "This run is over", "To see it again, leave this page open and run"
FAREWELL = 0.3  # [s] for the last message to reach the pages
PAIR_WIDTH, PAIR_MIDDLE = 2.8, 0.5  # [m] width of robot and dancer, and their centre
FREE_SHARE = 0.4  # visible share of a phone's page above the panel


class ViewState:
    """Newest messages, converted when drawn.

    The `on_` methods store messages, the `take_` methods return their numbers.

    Attributes:
        joints: joint positions (n,) [rad]; NaN until received.
        markers: topic -> new markers, or None.
        clip_time: time in the clip [s], or None.
        terms: observation of the policy by term.
        power: state and reason of the driver, or empty.
        parts: last diagnostics by node and part.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._joints: Any = None
        self._targets: Any = None
        self._dancer: Any = None
        self._truth: Any = None
        self._odometry: Any = None
        self._received_at = 0.0  # arrival of the last odometry
        self.walking = self.power = self.policy = ""
        self.terms: dict[str, list[float]] = {}
        self.supplies: dict[str, str] = {}
        self.parts: dict[tuple[str, str], NodeStatus] = {}
        self.markers: dict[str, list[Any] | None] = {}
        self.clip_time: float | None = None
        self.nodes: dict[str, NodeStatus] = {}
        self._reported_at: dict[str, float] = {}
        self.joints = np.full(robot.n, np.nan)

    def on_joints(self, message: Any) -> None:
        self._joints = message

    def on_targets(self, message: Any) -> None:
        self._targets = message

    def on_dancer(self, message: Any) -> None:
        self._dancer = message

    def on_truth(self, message: Any) -> None:
        self._truth = message

    def on_odometry(self, message: Any) -> None:
        self._odometry, self._received_at = message, time.monotonic()

    def on_walking(self, message: Any) -> None:
        self.walking = str(message.data)

    def on_policy(self, message: Any) -> None:
        self.policy = str(message.data)

    def on_terms(self, message: Any) -> None:
        ends = np.cumsum([d.size for d in message.layout.dim])
        values = np.split(np.asarray(message.data, dtype=float), ends[:-1]) if len(ends) else []
        self.terms = {d.label: v.tolist() for d, v in zip(message.layout.dim, values, strict=True)}

    def on_power(self, message: Any) -> None:
        self.power = str(message.data)

    def on_battery(self, message: Any) -> None:
        m = message
        figures = ((m.voltage, "V", 1), (m.current, "A", 1), (100 * m.percentage, "% charged", 0))
        known = [
            f"{round(value, digits) + 0.0:.{digits}f} {unit}" for value, unit, digits in figures if math.isfinite(value)
        ]
        self.supplies[str(m.location)] = ", ".join(known) or "not measured"

    def on_clip_time(self, message: Any) -> None:
        self.clip_time = float(message.data)

    def on_diagnostics(self, message: Any) -> None:
        found = node_statuses(message)
        self._reported_at |= dict.fromkeys(found, time.monotonic())
        self.nodes |= found
        self.parts |= part_statuses(message)

    def policy_status(self) -> tuple[str, NodeStatus | None]:
        """Return name and last diagnostics of the policy node."""
        return next(((name, s) for name, s in self.nodes.items() if name.rpartition("/")[2] == "policy"), ("", None))

    def policy_is_driven(self, now: float | None = None) -> bool:
        """Test whether a policy runs that follows `cmd_vel`."""
        name, status = self.policy_status()
        if status is None or self.policy not in DRIVEN or status.values.get("follows_velocity") != str(True):
            return False
        return (time.monotonic() if now is None else now) - self._reported_at[name] <= SILENT

    def troubles(self, now: float | None = None) -> list[str]:
        """Return Markdown lines of hung nodes, errors and warnings."""
        now = time.monotonic() if now is None else now
        lines = []
        for name, status in list(self.nodes.items()):
            if (age := now - self._reported_at[name]) > SILENT:
                lines.append((3, f"**{name} has been silent for {age:.0f} s**"))
            elif status.level:
                text = status.message.replace("*", r"\*").replace("<", "&lt;")
                lines.append((status.level, f"**{name}**: {text}"))
        return [line for _, line in sorted(lines, key=lambda found: -found[0])]

    def take_joints(self) -> bool:
        """Read the joint states; return True if all joints are known."""
        m = self._joints
        if m is not None and len(m.position) == len(m.name):
            places, own = self.robot.order_of(m.name)
            self.joints[own] = np.asarray(m.position)[places]
        return bool(np.isfinite(self.joints).all())

    def take_targets(self) -> dict[str, tuple[float, float, float]]:
        m, self._targets = self._targets, None
        if m is None:
            return {}
        positions = {
            k.ns: (k.pose.position.x, k.pose.position.y, k.pose.position.z) for k in m.markers if k.action == 0
        }
        return {name: p for name, p in positions.items() if np.isfinite(p).all()}

    def take_markers(self, topic: str) -> list[Any] | None:
        markers, self.markers[topic] = self.markers.get(topic), None
        return markers

    def take_dancer(self) -> np.ndarray:
        """Return a new figure (2 B, 3), or empty."""
        m, self._dancer = self._dancer, None
        points = m.markers[0].points if m is not None and m.markers else []
        return np.array([[p.x, p.y, p.z] for p in points]).reshape(-1, 3)

    def root_pose(self) -> pin.SE3 | None:
        """Return the root pose from current odometry, else from the simulator.

        An outdated estimate is not used, because the robot may have fallen since.
        """
        silent = time.monotonic() - self._received_at > STALE
        message = self._truth if self._truth is not None and silent else self._odometry or self._truth
        if message is None:
            return None
        p, o = message.pose.pose.position, message.pose.pose.orientation
        return pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w]))


class ViewerPage:
    """Browser page of one robot."""

    def __init__(
        self,
        host: str,
        port: int,
        robot: Robot,
        actions: PanelActions,
        folder: Path | None = None,
        hidden: tuple[str, ...] = HIDDEN,
        origins: Iterable[str] = (),
    ) -> None:
        self.server = open_server(port, host, origins)
        self.robot = robot
        self.scene = Scene(self.server, robot, folder, hidden)
        self.panel = Panel(self.server, robot.title, actions, hidden)
        self._frame = 0
        self.targets: dict[str, tuple[float, float, float]] = {}
        self._X_moved: pin.SE3 | None = None
        self._offset = np.zeros(3)
        self._set_camera()
        self.server.on_client_connect(self._look_from_a_phone)
        self._draw_robot(robot.postures["neutral"], None)

    def _set_camera(self) -> None:
        """Place the initial camera so that the panel hides neither robot nor dancer."""
        h = float(np.nan_to_num(self.robot.height, nan=1.6))
        far = 1.35 * max(h, 1.5)
        camera = self.server.initial_camera
        camera.position = (far, 0.15, 0.45 * far + 0.35 * h)
        camera.look_at = (0.0, 0.75, 0.52 * max(h, 1.5))
        camera.up = (0.0, 0.0, 1.0)

    def _look_from_a_phone(self, client: Any) -> None:
        """Show robot and dancer above the panel on portrait pages."""
        camera = client.camera
        aspect = float(camera.aspect)
        if aspect >= 1:
            return
        h = max(float(np.nan_to_num(self.robot.height, nan=1.6)), 1.5)
        middle, eye = 0.6 * h, 0.95 * h  # including raised arms
        far = PAIR_WIDTH / (2 * math.tan(camera.fov / 2) * aspect)
        # Tilt the view axis down, so that the target appears at the centre of the visible part.
        down = math.atan((1 - FREE_SHARE) * math.tan(camera.fov / 2)) + math.atan((eye - middle) / far)
        begins = np.array(self.server.initial_camera.position)

        def look(moved: Any) -> None:
            # A slowly loading page resets its camera after connecting; then move it again.
            if moved is None or np.allclose(moved.position, begins, atol=1e-3):
                camera.position = (far, PAIR_MIDDLE, eye)
                camera.look_at = (0.0, PAIR_MIDDLE, eye - far * math.tan(down))

        camera.on_update(look)
        look(None)

    @property
    def clients(self) -> int:
        return len(self.server.get_clients())

    def draw(self, state: ViewState, age: float, now: float) -> None:
        """Update the page.

        Args:
            age: age of the joint states [s].
            now: time for the plots [s].
        """
        self._frame += 1
        if not self.clients and self._frame > 1:
            return
        known = state.take_joints()
        targets, dancer = state.take_targets(), state.take_dancer()
        self.targets.update(targets)
        with self.server.atomic():
            if known:
                self._draw_robot(state.joints, state.root_pose())
            errors = self._draw_targets() if known and self.targets else {}
            self.scene.move_dancer(dancer)
            for topic in MARKERS:
                if (markers := state.take_markers(topic)) is not None:
                    self.scene.draw_markers(topic, markers)
            if known and self._frame % SLOW_EVERY == 0 and self.scene.visible("shapes"):
                self.scene.color_shapes(self.robot.shape_clearance(self._q))
        if self._frame % SLOW_EVERY:
            return
        if not known:
            words = "**waiting for joint states**: is a simulator or a driver running?"
        elif age > STALE:
            words = f"**no joint states for {age:.0f} s**: the picture is outdated"
        else:
            words = f"{self.robot.title}: {state.walking.lower() or 'live'}"
        self.panel.set_status("\n\n".join([words, *state.troubles()[:MOST_TROUBLES]]))
        if state.clip_time is not None:
            self.panel.set_time(state.clip_time)
        self.panel.set_nodes(state.nodes)
        if (power := self.panel.power) is not None:
            power.set_state(state.power)
            power.set_parts({part: s for (_, part), s in state.parts.items()}, state.supplies)
        if (policy := self.panel.policy) is not None:
            _, told = state.policy_status()
            policy.set_state(state.policy, str(told.values.get("reason", "")) if told is not None else "")
            policy.set_terms(state.terms)
            policy.set_driven(state.policy_is_driven())
        if errors:
            self.panel.set_errors(now, errors)

    def _draw_targets(self) -> dict[str, float]:
        """Draw the targets; return the error of each robot point [m]."""
        names = list(self.targets)
        desired = np.array([self.targets[n] for n in names])
        points = [k for k, n in enumerate(names) if n in self.robot.points]
        reached = np.full_like(desired, np.nan)
        if points:
            reached[points] = self.robot.point_positions(self._q, [names[k] for k in points])
            if (X := self._X_moved) is not None:
                reached[points] = reached[points] @ X.rotation.T + X.translation
        self.scene.draw_targets(desired, reached)
        errors = np.linalg.norm(desired - reached, axis=1)
        return {names[k]: float(errors[k]) for k in points}

    def _draw_robot(self, joints: np.ndarray, X_world_root: pin.SE3 | None) -> None:
        self._q = self.robot.q(joints)
        poses = self.robot.link_poses(self._q)
        if X_world_root is not None:
            self._X_moved = move = X_world_root * poses[self.robot.root_link].inverse()
            poses = {link: move * X for link, X in poses.items()}
        self.scene.move_robot(poses)
        if X_world_root is not None:
            self.scene.move_floor(X_world_root.translation)
            self._follow(X_world_root.translation)
        if self.scene.visible("com"):
            center = self.robot.center_of_mass(self._q)
            self.scene.move_com(center if self._X_moved is None else self._X_moved.act(center))

    def _follow(self, place: np.ndarray) -> None:
        """Move the world smoothly to keep the robot in view."""
        if not self.scene.visible("follow"):
            return
        way = -place * [1.0, 1.0, 0.0] - self._offset
        self._offset += way if np.abs(way).max() > FOLLOW_JUMP else FOLLOW_SHARE * way
        self.scene.move_world(self._offset)

    def say_over(self, replay: str) -> None:
        """Show the end of the run, and the replay command."""
        again = f"{AGAIN}:" if replay else "The nodes have stopped."
        self.panel.set_over(again, replay)
        clients = self.server.get_clients()
        if not clients:
            return
        for client in clients.values():
            client.add_notification(OVER, f"{again} {replay}")
        self.server.flush()
        time.sleep(FAREWELL)

    def stop(self) -> None:
        self.server.stop()
