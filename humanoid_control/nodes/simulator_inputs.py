"""What the simulator is told: commands, pushes, states from outside; checked before it reaches the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import PoseStamped, WrenchStamped
from sensor_msgs.msg import JointState

from humanoid_control.errors import ConfigError, HumanoidError, NotANumberError, UnknownNameError, nearest_names
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.messages import WORLD
from humanoid_control.nodes.qos import EVENTS
from humanoid_control.simulation import Engine


class SimulatorInputs:
    """Subscriptions of the simulator. What is wrong with a message is said in diagnostics, and it changes nothing."""

    def __init__(self, node: Any, engine: Engine) -> None:
        self.node, self.engine, self.robot, self.health = node, engine, engine.robot, node.health
        self._tension = node.params.tension
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self.restart()
        node.listen(JointState, "joint_commands", self._guarded("command", self.on_command))
        for message, topic, callback in (
            (JointState, "set_state", self.on_set_state),
            (PoseStamped, "set_base", self.on_set_base),
            (WrenchStamped, "push", self.on_push),
        ):
            node.create_subscription(message, f"~/{topic}", self._guarded(topic, callback), EVENTS)

    def restart(self) -> None:
        """Forget what was commanded."""
        self._last = float("inf")  # simulated time of the last command [s]
        self._without_position = np.zeros(self.robot.n, dtype=bool)

    def _guarded(self, key: str, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(message: Any) -> None:
            try:
                callback(message)
                self.health.clear(key)
            except HumanoidError as e:
                self.health.report(key, Level.ERROR if isinstance(e, NotANumberError) else Level.WARN, str(e))

        return call

    # -- commands ---------------------------------------------------------------------------------------------------

    def on_command(self, m: JointState) -> None:
        """Positions, velocities, efforts, each for all names or left empty; what is given makes the kind of drive."""
        if m.name != self._order[0]:
            self._order = (list(m.name), *self.robot.order_of(m.name))
            unknown = [n for n in m.name if n not in self.robot.index]
            text = ", ".join(_offer(n, self.robot.index) for n in unknown[:3])
            self.health.check("names", bool(unknown), Level.WARN, f"unknown joints in command: {text}")
            deaf = [self.robot.joint_names[k] for k in self._order[2] if k in self.engine.uncommanded]
            text = f"tendons at constant tensions move {', '.join(deaf[:3])}: commands for them are passed over"
            self.health.check("deaf", bool(deaf), Level.WARN, text)
        if not (len(m.position) or len(m.velocity) or len(m.effort)):
            raise ConfigError("command without a position, velocity or effort: passed over")
        position, velocity, effort = (
            self._in_order(kind, values, "command") if len(values) else None
            for kind, values in (("position", m.position), ("velocity", m.velocity), ("effort", m.effort))
        )
        self.engine.command(position, velocity, effort)
        ours = self._order[2]
        self._without_position[ours] = position is None
        self._last = self.engine.time

    def _in_order(self, kind: str, values: Any, what: str) -> np.ndarray:
        names, theirs, ours = self._order
        if len(values) != len(names):
            raise ConfigError(f"{what} without a {kind} for each name: passed over")
        out = np.full(self.robot.n, np.nan)
        out[ours] = np.asarray(values)[theirs]
        bad = ours[~np.isfinite(out[ours])]
        if len(bad):
            raise NotANumberError(f"{what}: {kind} of {self.robot.joint_names[bad[0]]} is not a number: held")
        return out

    def hold_when_silent(self, timeout: float) -> None:
        """Joints under velocity or effort command are held where they are once the commands cease."""
        silent = self.engine.time - self._last > timeout
        self.health.check("silent", silent, Level.WARN, "no commands: last position held")
        if silent and self._without_position.any():
            self.engine.command(np.where(self._without_position, self.engine.joints, np.nan))
            self._without_position[:] = False

    def pull(self, tension: float) -> None:
        """Let the tendons pull with this tension [N], where it has changed."""
        if tension != self._tension:
            self._tension = tension
            self.engine.set_tension(tension)

    # -- from outside -------------------------------------------------------------------------------------------------

    def on_set_state(self, m: JointState) -> None:
        """Joints, by name, put to positions and velocities; the others stay where they are, at rest."""
        unknown = [n for n in m.name if n not in self.robot.index]
        if unknown:
            raise UnknownNameError("joint", unknown[0], self.robot.index, hint="(set_state: nothing was changed)")
        self._order = (list(m.name), *self.robot.order_of(m.name))
        joints, velocities = self.engine.joints.copy(), np.zeros(self.robot.n)
        for kind, values, out in (("position", m.position, joints), ("velocity", m.velocity, velocities)):
            if len(values) or kind == "position":
                new = self._in_order(kind, values, "set_state")
                out[np.isfinite(new)] = new[np.isfinite(new)]
        pose, twist = self._base()
        self.engine.set_state(joints, velocities, pose, twist)
        self.restart()

    def on_set_base(self, m: PoseStamped) -> None:
        """The root link put to a pose in the world, at rest; the joints stay as they are."""
        if m.header.frame_id not in ("", WORLD):
            raise ConfigError(f"set_base takes poses in the frame '{WORLD}', not '{m.header.frame_id}'")
        p, o = m.pose.position, m.pose.orientation
        numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
        if not np.isfinite(numbers).all() or np.linalg.norm(numbers[3:]) < 0.1:
            raise NotANumberError("set_base: the pose is not a number, or its quaternion is zero: nothing was changed")
        numbers[3:] /= np.linalg.norm(numbers[3:])
        self.engine.set_state(X_world_root=pin.XYZQUATToSE3(numbers))
        self.restart()

    def _base(self) -> tuple[pin.SE3 | None, np.ndarray | None]:
        if self.robot.base == "fixed":
            return None, None
        pose, twist = self.engine.base_state()
        return pin.XYZQUATToSE3(pose), twist

    def on_push(self, m: WrenchStamped) -> None:
        """A wrench at the origin of the link in `frame_id`, in its axes now; their direction is kept while it acts."""
        R = self.engine.link_pose(m.header.frame_id).rotation
        f, t = m.wrench.force, m.wrench.torque
        wrench = np.concatenate([R @ (f.x, f.y, f.z), R @ (t.x, t.y, t.z)])
        self.engine.push(m.header.frame_id, wrench, self.node.params.push_duration)


def _offer(name: str, known: Any) -> str:
    near = nearest_names(name, known, 1)
    return f"{name} (did you mean {near[0]}?)" if near else name
