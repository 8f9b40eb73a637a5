"""Page of one robot in the browser: server, scene and panel, and one call that draws the newest state."""

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

SLOW_EVERY = 6  # distances, texts and plots are refreshed every so many frames
STALE = 1.0  # [s]
SILENT = 5.0  # [s] after its last diagnostics, of which there is one a second, a node is taken to hang
MOST_TROUBLES = 3  # lines on top of the panel
FOLLOW_SHARE = 0.1  # of the way to the robot that a picture makes up for
FOLLOW_JUMP = 2.0  # [m] beyond which it is made up for at once
OVER, AGAIN = "This run is over", "To see it again, leave this page open and run"
FAREWELL = 0.3  # [s] for the last words to reach the pages
PAIR_WIDTH, PAIR_MIDDLE = 2.8, 0.5  # [m] of the robot and the dancer on its left
FREE_SHARE = 0.4  # of a phone's page, from the top: the panel covers the rest


class ViewState:
    """Newest message of each kind, turned into numbers when it is drawn: the work is done at the drawing rate.

    The `on_` methods take messages, the `take_` methods give what they say in numbers.

    Attributes:
        joints: (n,) [rad] as of the last `take_joints`, NaN until heard.
        markers: topic -> its newest markers; None where nothing is new.
        clip_time: [s]; None until heard.
        walking: state of the walker; empty until heard.
        policy: state of the learned policy; empty until heard.
        terms: what it observes, by term.
        power: state of the robot's driver and its reason; empty until heard.
        supplies: bus -> its supply in words.
        nodes: node -> its last diagnostics.
        parts: node, part of it -> its last diagnostics.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._joints: Any = None
        self._targets: Any = None
        self._dancer: Any = None
        self._truth: Any = None
        self._odometry: Any = None
        self._heard = 0.0  # when the last odometry came
        self.walking = self.power = self.policy = ""
        self.terms: dict[str, list[float]] = {}
        self.supplies: dict[str, str] = {}
        self.parts: dict[tuple[str, str], NodeStatus] = {}
        self.markers: dict[str, list[Any] | None] = {}
        self.clip_time: float | None = None
        self.nodes: dict[str, NodeStatus] = {}
        self._told: dict[str, float] = {}
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
        self._odometry, self._heard = message, time.monotonic()

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
        self._told |= dict.fromkeys(found, time.monotonic())
        self.nodes |= found
        self.parts |= part_statuses(message)

    def troubles(self, now: float | None = None) -> list[str]:
        """Nodes that hang, report errors, or warn, the worst first: a line each, Markdown.

        Args:
            now: time.monotonic() [s]; None: at present.
        """
        now = time.monotonic() if now is None else now
        lines = []
        for name, status in list(self.nodes.items()):
            if (age := now - self._told[name]) > SILENT:
                lines.append((3, f"**{name} has said nothing for {age:.0f} s**"))
            elif status.level:
                text = status.message.replace("*", r"\*").replace("<", "&lt;")
                lines.append((status.level, f"**{name}**: {text}"))
        return [line for _, line in sorted(lines, key=lambda found: -found[0])]

    def take_joints(self) -> bool:
        """Read the newest joint states; whether every joint is known."""
        m = self._joints
        if m is not None and len(m.position) == len(m.name):
            places, own = self.robot.order_of(m.name)
            self.joints[own] = np.asarray(m.position)[places]
        return bool(np.isfinite(self.joints).all())

    def take_targets(self) -> dict[str, tuple[float, float, float]]:
        """The newest targets, each once."""
        m, self._targets = self._targets, None
        if m is None:
            return {}
        positions = {
            k.ns: (k.pose.position.x, k.pose.position.y, k.pose.position.z) for k in m.markers if k.action == 0
        }
        return {name: p for name, p in positions.items() if np.isfinite(p).all()}

    def take_markers(self, topic: str) -> list[Any] | None:
        """The newest markers of a topic, once."""
        markers, self.markers[topic] = self.markers.get(topic), None
        return markers

    def take_dancer(self) -> np.ndarray:
        """The newest figure of the dancer (2 B, 3); empty when nothing is new."""
        m, self._dancer = self._dancer, None
        points = m.markers[0].points if m is not None and m.markers else []
        return np.array([[p.x, p.y, p.z] for p in points]).reshape(-1, 3)

    def root_pose(self) -> pin.SE3 | None:
        """Pose of the root link: the robot's own estimate while it comes, else the simulator's; None without.

        A walker that has ended leaves its last estimate: the robot may have fallen since.
        """
        silent = time.monotonic() - self._heard > STALE
        message = self._truth if self._truth is not None and silent else self._odometry or self._truth
        if message is None:
            return None
        p, o = message.pose.pose.position, message.pose.pose.orientation
        return pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w]))


class ViewerPage:
    """A browser page of one robot."""

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
        """Cameras begin in front of the robot; it and the dancer on its left stand next to the panel, not behind it."""
        h = float(np.nan_to_num(self.robot.height, nan=1.6))
        far = 1.35 * max(h, 1.5)
        camera = self.server.initial_camera
        camera.position = (far, 0.15, 0.45 * far + 0.35 * h)
        camera.look_at = (0.0, 0.75, 0.52 * max(h, 1.5))
        camera.up = (0.0, 0.0, 1.0)

    def _look_from_a_phone(self, client: Any) -> None:
        """Put robot and dancer into the part that the panel leaves free, on a page that is taller than wide."""
        camera = client.camera
        aspect = float(camera.aspect)
        if aspect >= 1:
            return
        h = max(float(np.nan_to_num(self.robot.height, nan=1.6)), 1.5)
        middle, eye = 0.6 * h, 0.95 * h  # with arms overhead
        far = PAIR_WIDTH / (2 * math.tan(camera.fov / 2) * aspect)
        # The axis of view is below them by the angle under which the middle of the free part is seen.
        down = math.atan((1 - FREE_SHARE) * math.tan(camera.fov / 2)) + math.atan((eye - middle) / far)
        begins = np.array(self.server.initial_camera.position)

        def look(moved: Any) -> None:
            # A page that loads slowly puts its camera where all begin after it has connected: it is sent back then.
            if moved is None or np.allclose(moved.position, begins, atol=1e-3):
                camera.position = (far, PAIR_MIDDLE, eye)
                camera.look_at = (0.0, PAIR_MIDDLE, eye - far * math.tan(down))

        camera.on_update(look)
        look(None)

    @property
    def clients(self) -> int:
        """Number of open pages."""
        return len(self.server.get_clients())

    def draw(self, state: ViewState, age: float, now: float) -> None:
        """Bring the page up to date.

        Args:
            state: newest messages.
            age: of the joint states [s].
            now: for the plots [s].
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
            words = f"**no joint states for {age:.0f} s**: the picture is old"
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
            told = next((s for name, s in state.nodes.items() if name.endswith("/policy")), None)
            policy.set_state(state.policy, str(told.values.get("reason", "")) if told is not None else "")
            policy.set_terms(state.terms)
        if errors:
            self.panel.set_errors(now, errors)

    def _draw_targets(self) -> dict[str, float]:
        """Draw the targets and their errors; the error of each that is a point of the robot [m]."""
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
        """Bring the robot before the cameras: what they see moves the other way, smoothly: a step's sway stays."""
        if not self.scene.visible("follow"):
            return
        way = -place * [1.0, 1.0, 0.0] - self._offset
        self._offset += way if np.abs(way).max() > FOLLOW_JUMP else FOLLOW_SHARE * way
        self.scene.move_world(self._offset)

    def say_over(self, replay: str) -> None:
        """Tell every open page that the run is over, and the command that plays it again; pages outlive the server."""
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
        """Close the server."""
        self.server.stop()
