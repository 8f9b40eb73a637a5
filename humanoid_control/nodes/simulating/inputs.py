"""Validated inputs of the simulator: commands, states, pushes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import PoseStamped, WrenchStamped
from sensor_msgs.msg import JointState

from humanoid_control.errors import (
    ConfigError,
    HumanoidError,
    NotANumberError,
    UnknownNameError,
    nearest_names,
)
from humanoid_control.estimation import JointPlausibility, named_twice
from humanoid_control.nodes.base.command_owner import COMMANDS_IN, EVENTS_TIMEOUT, CommandArbiter, gid_of, listen_to_one
from humanoid_control.nodes.base.health import Level
from humanoid_control.nodes.base.joint_gains import GainedCommands
from humanoid_control.nodes.base.messages import (
    EVENTS,
)
from humanoid_control.nodes.simulating.gained_drives import GainedDrives
from humanoid_control.simulation import Engine
from humanoid_control.simulation.drives.command_blend import CommandBlend, ReferenceRate
from humanoid_control.simulation.drives.position_control import POSITION
from humanoid_control.simulation.settings import WINCHES

FARTHEST = 1e6  # [m] bound of the distance from the world origin
STRONGEST = 1e15  # [N], [N m] bound of a push: smaller ones may diverge, which stops the world with a report
MOST_TIMES = 10.0  # multiple of its limit above which a commanded velocity or effort is implausible
# share of the speed limit for blending in: full speed on all joints at once would make the robot unsteady
RETURN_SHARE = 0.9
RETURNS = 0.1  # [s] of simulated time without commands after which the next one is blended in
HELD, LET_DOWN = "no commands: last position held", "no commands: joints with gains are lowered"
LATE = 0.2  # [s] of simulated time without commands after which their silence is reported


class SimulatorInputs:
    """Subscriptions of the simulator. Faulty messages are reported and discarded.

    Positions after a pause are blended in at 90 % of the joint speed limits.
    """

    def __init__(self, node: Any, engine: Engine) -> None:
        self.node, self.engine, self.robot, self.health = node, engine, engine.robot, node.health
        self._tension = node.params.tension
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        r = self.robot
        self.arbiter = CommandArbiter(node, "joint_commands")
        self.blend, self.rate = CommandBlend(r.velocity, RETURN_SHARE), ReferenceRate(r.velocity)
        self._plausible = JointPlausibility(r.joint_names, r.lower, r.upper, r.velocity, encoders=False)
        self._most = {"velocity": MOST_TIMES * r.velocity, "effort": MOST_TIMES * np.maximum(r.effort, 1.0)}
        self.gained = GainedDrives(engine, node.params.gate, node.params.gains_timeout, node.params.may_touch)
        self.pairs = GainedCommands(node, self._guarded("command", self._take))
        self.restart()
        take = self._guarded("arrival", self.on_command)
        node.listen(JointState, "joint_commands", take, COMMANDS_IN, takes_info=True)
        take = self._guarded("set_state", self.on_set_state)
        listen_to_one(node, JointState, "~/set_state", take, EVENTS_TIMEOUT, EVENTS)
        take = self._guarded("set_base", self.on_set_base)
        listen_to_one(node, PoseStamped, "~/set_base", take, EVENTS_TIMEOUT, EVENTS)
        listen_to_one(node, WrenchStamped, "~/push", self._guarded("push", self.on_push), EVENTS_TIMEOUT, EVENTS)

    def restart(self) -> None:
        """Discard all commands."""
        self._last = float("inf")  # simulated time of the last command [s]
        self._received_at = np.full(self.robot.n, -np.inf)  # simulated time of the last command of each joint [s]
        self._plausible.reset()
        self.gained.command.release()  # the engine holds all joints after a reset
        self._changes = -1  # owner changes at the last command
        self._given: tuple[np.ndarray | None, ...] = (None, None, None)  # last command, for the blend
        self.worst = ("", 0.0)
        self.blend.end()
        self.rate.restart(self.engine.drives, self.engine.joints)
        self._commanded = np.zeros(self.robot.n, dtype=bool)  # since the last period
        self._without_position = np.zeros(self.robot.n, dtype=bool)

    def _guarded(self, key: str, callback: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any) -> None:
            try:
                callback(*given)
                self.health.clear(key)
            except HumanoidError as e:
                self.health.report(key, Level.ERROR if isinstance(e, NotANumberError) else Level.WARN, str(e))

        return call

    # -- commands ---------------------------------------------------------------------------------------------------

    def on_command(self, m: JointState, info: Mapping[str, Any]) -> None:
        """Accept a command of the followed publisher."""
        if self.arbiter.accepts(info, self.node.params.command_timeout):
            self.pairs.command(m, gid_of(info))

    def _take(self, m: JointState, gains: JointState | None) -> None:
        """Apply positions, velocities and efforts, each for all names or empty.

        Joints without a finite number are not commanded. Joints with gains follow torques, see `GainedDrives`.
        """
        if m.name != self._order[0]:
            self._order = (list(m.name), *self.robot.order_of(m.name))
            unknown = [n for n in m.name if n not in self.robot.index]
            text = ", ".join(_with_suggestion(n, self.robot.index) for n in unknown[:3])
            self.health.check("names", bool(unknown), Level.WARN, f"unknown joints in command: {text}")
            deaf = [self.robot.joint_names[k] for k in self._order[2] if k in self.engine.uncommanded]
            if self.node.params.drives == WINCHES:  # their commands are meant for the controller of the winches
                deaf = []
            text = f"tendons at constant tensions move {', '.join(deaf[:3])}: commands for them are ignored"
            self.health.check("deaf", bool(deaf), Level.WARN, text)
        if not (len(m.position) or len(m.velocity) or len(m.effort)):
            raise ConfigError("command without a position, velocity or effort: ignored")
        if twice := named_twice(m.name):
            raise ConfigError(f"command names joint '{twice[:60]}' twice: ignored")
        position, velocity, effort = (
            self._in_order(kind, values, "command") if len(values) else None
            for kind, values in (("position", m.position), ("velocity", m.velocity), ("effort", m.effort))
        )
        own = self._order[2]
        if gains is not None:
            # Joints under gains follow torques, so they leave the position command.
            under = self.gained.take(position, velocity, effort, gains)
            own = own[~under[own]]
            self._received_at[under] = self._last = self.engine.time
            self._without_position[under], self._commanded[under] = True, True
            for values in (position, velocity, effort):
                if values is not None:
                    values[under] = np.nan
        elif self.gained.command.any:
            self.gained.release()
        self._drop_implausible(own, position, velocity=velocity, effort=effort)
        if position is not None:  # otherwise a remaining velocity would be followed alone
            for values in (velocity, effort):
                if values is not None:
                    values[np.isnan(position)] = np.nan
        given = [x for x in (position, velocity, effort) if x is not None]
        commanded = np.isfinite(given).any(axis=0)
        if not commanded.any():
            return
        self._begin_blend(position)
        self._given = (position, velocity, effort)
        if position is None:
            self.blend.end()
        if not self.blend.active:
            self.engine.command(position, velocity, effort)
        self._commanded |= commanded
        self._without_position[commanded] = position is None
        self._received_at[commanded] = self._last = self.engine.time
        self._changes = self.arbiter.changes

    def _begin_blend(self, position: np.ndarray | None) -> None:
        """Blend in joints (n,) after a pause or a new owner."""
        new = self.engine.time - self._received_at > RETURNS
        if self.engine.time - self._last > RETURNS or self.arbiter.changes != self._changes:
            self.blend.end()
            new[:] = True
        if position is not None and (np.isfinite(position) & new).any():
            held = np.where(self._without_position, self.engine.joints, self.engine.drives.q_ref)
            self.blend.begin(held, np.clip(position, self.robot.lower, self.robot.upper), new)

    def lead(self, dt: float) -> None:
        """Move the references for `dt` [s], within the speed limits."""
        if self.blend.active:
            self._lead_back(dt)
        self.rate.limit(self.engine.drives, self._commanded, self.engine.time, dt)
        self._commanded[:] = False

    def _lead_back(self, dt: float) -> None:
        position, velocity, effort = self._given
        assert position is not None
        before = self.blend.reference
        reference = self.blend.step(np.clip(position, self.robot.lower, self.robot.upper), dt)
        self._commanded[:] = True
        if not self.blend.active:
            self.engine.command(position, velocity, effort)
            return
        commanded = np.isfinite(position)  # drives advance with this speed until the end of the period
        self.engine.command(
            np.where(commanded, before, np.nan), np.where(commanded, (reference - before) / dt, np.nan), effort
        )

    def note_errors(self) -> None:
        """Record references and the largest tracking error."""
        drives = self.engine.drives
        self.rate.note(drives, self.engine.joints)
        error = np.where(drives.mode == POSITION, np.abs(drives.q_ref - self.engine.joints), 0.0)
        k = int(np.argmax(error))
        if error[k] > self.worst[1]:
            self.worst = (self.robot.joint_names[k], float(error[k]))

    def _drop_implausible(self, own: np.ndarray, position: np.ndarray | None, **others: np.ndarray | None) -> None:
        """Remove numbers that no joint can follow."""
        texts, now = [], self.engine.time
        for kind, values in others.items():
            if values is None:
                continue
            most = self._most[kind]
            for k in own[np.abs(values[own]) > most[own]]:
                name = self.robot.joint_names[k]
                texts.append(f"{kind} of {name} is {values[k]:.4g}, the maximum is {most[k]:.4g}: rejected")
                values[k] = np.nan
            values[~np.isfinite(values)] = np.nan
        if position is not None:
            position[own[~self._plausible.check(own, position[own], now)]] = np.nan
        if text := self._plausible.problem(now):
            texts.insert(0, text)
        self.health.check("implausible", bool(texts), Level.WARN, f"command: {'; '.join(texts[:4])}")

    def _in_order(self, kind: str, values: Any, what: str) -> np.ndarray:
        names, places, own = self._order
        if len(values) != len(names):
            raise ConfigError(f"{what} without a {kind} for each name: ignored")
        out = np.full(self.robot.n, np.nan)
        out[own] = np.asarray(values)[places]
        bad = own[~np.isfinite(out[own])]
        if len(bad) and what != "command":  # by the convention of ros2_control such a joint is not commanded
            raise NotANumberError(f"{what}: {kind} of {self.robot.joint_names[bad[0]]} is not a number: held")
        return out

    def hold_when_silent(self, timeout: float) -> None:
        """Hold joints under velocity or effort commands after `timeout` [s]."""
        silence = self.engine.time - self._last
        silent, moves = silence > timeout, bool(self._without_position.any())
        text = f"no commands: the last ones continue for {timeout:g} s" if moves and not silent else HELD
        text = LET_DOWN if self.gained.command.any else text
        self.health.check("silent", silent or silence > LATE, Level.WARN, text)
        if silent:
            self.blend.end()
        alone = self._without_position & ~self.gained.command.which & (self.engine.time - self._received_at > timeout)
        if alone.any():
            self.engine.drives.hold(alone, self.engine.joints)
            self._commanded |= alone
            self._without_position[alone] = False

    def pull(self, tension: float) -> None:
        """Set the tension of all tendons [N]."""
        if tension != self._tension:
            self._tension = tension
            self.engine.set_tension(tension)

    # -- states and pushes ---------------------------------------------------------------------------------------------

    def on_set_state(self, m: JointState) -> None:
        """Set named joints to positions and velocities; others stop."""
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
        """Place the root link at a world pose, at rest."""
        world = self.node.params.world
        if m.header.frame_id not in ("", world):
            raise ConfigError(f"set_base takes poses in the frame '{world}', not '{m.header.frame_id}'")
        p, o = m.pose.position, m.pose.orientation
        numbers = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
        if not (np.abs(numbers) < FARTHEST).all() or np.linalg.norm(numbers[3:]) < 0.1:
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
        """Apply a wrench at the origin of link `frame_id`, in its present axes, fixed in the world."""
        link = self.node.params.local_frame(m.header.frame_id)
        R = self.engine.link_pose(link).rotation
        f, t = m.wrench.force, m.wrench.torque
        if not (np.abs([f.x, f.y, f.z, t.x, t.y, t.z]) < STRONGEST).all():
            raise NotANumberError("push: the wrench is non-numeric or too large: ignored")
        wrench = np.concatenate([R @ (f.x, f.y, f.z), R @ (t.x, t.y, t.z)])
        self.engine.push(link, wrench, self.node.params.push_duration)


def _with_suggestion(name: str, known: Any) -> str:
    name = name[:60]  # the search for similar names gets slower with length
    near = nearest_names(name, known, 1)
    return f"{name} (did you mean {near[0]}?)" if near else name
