"""Worlds in the compiled multibody engine: ideal drives, motors and gears, tendons at constant tensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.packed import BoundRecord, Packed
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.couplings import Vector, checked_vector
from humanoid_control.multibody.force_elements import ForceElements, JointElement, PathElement
from humanoid_control.multibody.kinematics_pass import kinematics_pass
from humanoid_control.multibody.model import ENVIRONMENT, Model, PinocchioBodies, from_pinocchio
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact.forces import (
    contact_points,
    contact_settle,
    contact_table,
    engine_links,
    place_carriers,
)
from humanoid_control.simulation.drives.drive_train import ELASTIC, RIGID, build_drive_train
from humanoid_control.simulation.drives.motors_gears import decays, shaft_table
from humanoid_control.simulation.drives.position_control import DriveGains, default_gains, drive_table, driven_gains
from humanoid_control.simulation.drives.tendon_plant import TendonPlant, TendonStates
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.base import EngineBase
from humanoid_control.simulation.worlds.step import (
    Motors,
    MotorWiring,
    PushTable,
    Schedule,
    WorldArrays,
    WorldState,
    push_table,
    run_driven_steps,
    run_steps,
)


class CompiledWorld(EngineBase):
    """Robot in the compiled multibody engine; a subclass steps.

    Attributes:
        arrays: bodies in the engine's form.
        points: contact points.
        layers: (np, 3) their deflections [m].
        forces: (np, 3) on the robot in the world, of the last step [N].
        with_matrix: memory for the mass matrix is allocated.
    """

    with_matrix = False

    def __init__(
        self,
        robot: Robot,
        settings: WorldSettings,
        gains: DriveGains,
        pinocchio: pin.Model,
        tree: PinocchioBodies,
        model: Model,
    ) -> None:
        """Allocate the bodies `model`, among them the moving joints `pinocchio` as `tree`."""
        settings.check()
        self.settings = settings
        super().__init__(robot, gains, settings.gravity, settings.coast)
        self.arrays = Arrays(model, (0.0, 0.0, -settings.gravity), self.with_matrix)
        self._links = engine_links(pinocchio, tree)
        self.points = contact_points(robot, self._links, settings.touching)
        contact = contact_table(self.points, len(model.bodies), settings.ground, settings.contact)
        none = ForceElements(model, []).table
        self._world = Packed(WorldArrays(self.arrays.tables, self.arrays.work, contact, none))
        touching = len(contact.body)
        self.layers, self.forces = np.zeros((touching, 3)), np.zeros((touching, 3))
        memory = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv), np.zeros(robot.n)
        self._state = Packed(WorldState(*memory, self.layers, self.forces))
        self._drives = drive_table(robot, self.drives, gains)
        self._no_pushes = Packed(push_table([]))

    def attach(self, elements: Sequence[PathElement | JointElement]) -> ForceElements:
        """Replace all springs, ropes and muscles.

        Forces are explicit: stiffness that oscillates a body in fewer than about six steps diverges.

        Args:
            elements: points in link axes (`ENVIRONMENT`: fixed), bodies of joint elements are joint names.

        Returns:
            The elements; their commands may change.

        Raises:
            UnknownNameError: if a link or joint is unknown.
            RobotError: see `ForceElements`.
        """
        model, placed = self.arrays.model, list[PathElement | JointElement]()
        for e in elements:
            points = [self._attached(*p) for p in e.points] if isinstance(e, PathElement) else []
            placed.append(replace(e, points=points) if isinstance(e, PathElement) else e)
        out = ForceElements(model, placed)
        self._world = Packed(self._world.record._replace(elements=out.table))
        return out

    def _attached(self, link: str, r: Vector) -> tuple[str, Vector]:
        """Convert a point of a link (3,) to the carrying body of the engine."""
        if link == ENVIRONMENT:
            return link, r
        frame = self.pushes.frame(link)
        at = checked_vector(r, f"a point of link '{link}'")
        if link not in self._links:  # fixed to the environment
            return ENVIRONMENT, self.model.frames[frame].placement.act(at)
        body, X = self._links[link]
        return self.arrays.model.bodies[body].name, X.act(at)

    def _settle(self, q: np.ndarray) -> None:
        """Settle the contact layers of a robot at rest at the engine's configuration q."""
        self.forces[:] = 0.0
        if self.points is not None:
            w = self._world.record
            kinematics_pass(w.tables, q, np.zeros(self.arrays.model.nv), w.work)
            place_carriers(w.work.W, w.contact)
            contact_settle(w.contact, self.layers)

    def _schedule(self, h: float, steps: int) -> Schedule:
        return Schedule(self.time, float(self.drives.since), float(self.drives.coast), h, steps)

    def _push_table(self) -> Packed[PushTable]:
        if not self.pushes:
            return self._no_pushes
        rows = []
        for p in self.pushes.active(self.time):
            if p.link in self._links:  # else fixed to the environment
                body, X = self._links[p.link]
                rows.append((body, p.until, X.act(p.point), p.wrench))
        return Packed(push_table(rows))

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """See `engine.Engine.foot_wrenches`."""
        if self.points is None:
            return self.soles.no_wrenches()
        pin.forwardKinematics(self.model, self.data, self.q)
        corners = self.forces[: 4 * len(self.soles.names)]  # soles come first
        return self.soles.wrenches(self.data, corners.reshape(-1, 4, 3))


# -------- Ideal drives


class MultibodyWorld(CompiledWorld):
    """Robot with ideal drives: semi-implicit Euler, implicit in drives and contact."""

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        tree = from_pinocchio(robot.model)
        given, gains = settings or WorldSettings(), gains or default_gains(robot)
        super().__init__(robot, given, gains, robot.model, tree, Model(tree.bodies))
        self.reset()

    def _place(self) -> None:
        self._settle(self.q)

    def step(self, steps: int = 1) -> None:
        """See `engine.Engine.step`."""
        if self.diverged:
            return
        h, x, pushes = self.settings.step, self._state.record, self._push_table()
        x.q[:], x.v[:], x.acceleration[:], x.torque[:] = self.q, self.v, self.acceleration, self.torque
        done, bad = run_steps(
            self._world.table, self._state.table, self._drives.table, pushes.table, self._schedule(h, steps)
        )
        self.q, self.v, self.acceleration, self.torque = (a.copy() for a in x[:4])
        self.time += done * h
        self._moved()
        if bad >= 0:
            self._fail(self._coordinate(bad))


# -------- Motors and gears

SHORT = {RIGID: 5.0e-4, ELASTIC: 2.5e-4}  # [s] longest substep of motors and gears


class DrivenWorld(CompiledWorld):
    """Robot with rotors, screws and gears; current-controlled motors follow position loops.

    Attributes:
        train: bodies and shafts.
        current: (m,) [A], in the order of `train.shafts`.
        full_q: including elastic rotors.
        full_v: including elastic rotors.
    """

    def __init__(self, robot: Robot, settings: WorldSettings, gains: DriveGains | None = None) -> None:
        """Build the world with drives 'rigid' or 'elastic'.

        Raises:
            RobotError: if the drives file is missing or invalid.
        """
        self.train = build_drive_train(robot, settings.drives)
        t = self.train
        super().__init__(robot, settings, gains or driven_gains(robot), t.pinocchio, t.tree, t.model)
        self._substeps = max(1, int(np.ceil(settings.step / SHORT[settings.drives] - 1e-9)))
        own = {s.joints[0]: k for k, s in enumerate(t.shafts) if s.elastic}
        m = len(t.shafts)
        self._wiring = MotorWiring(
            np.array([robot.index[j] for j in t.joints]),
            np.array([robot.index[j] for j in t.held], dtype=np.int64),
            robot.velocity,
            np.array([own.get(j, -1) for j in t.joints]),
            np.zeros(robot.n),
            np.zeros(robot.n),
            np.zeros(m),
            np.zeros(m),
            np.zeros(m),
        )
        shafts = shaft_table(t)
        self._motors = Motors(shafts, self._wiring, decays(shafts.motor, settings.step / self._substeps))
        self._packed_motors = BoundRecord(Motors)
        self.full_q, self.full_v = t.model.neutral(), np.zeros(t.model.nv)
        self._full_a = np.zeros(t.model.nv)
        self.reset()

    @property
    def current(self) -> np.ndarray:
        return self._wiring.current

    def _place(self) -> None:
        r, t, w = self.robot, self.train, self._wiring
        k = len(t.joints)
        self.full_q[: r.iq], self.full_v[: r.iv] = self.q[: r.iq], self.v[: r.iv]
        joints, rates = self.joints, self.joint_velocity
        self.full_q[r.iq : r.iq + k], self.full_v[r.iv : r.iv + k] = joints[w.joint], rates[w.joint]
        w.angles[:], w.rates[:], w.current[:] = joints, rates, 0.0
        for s in t.shafts:
            if s.elastic:  # relaxed gears
                c, j = t.model.coordinates.index(s.body), r.index[s.joints[0]]
                self.full_q[t.model.qpos[c]], self.full_v[c] = s.drive.ratio * joints[j], s.drive.ratio * rates[j]
        self._full_a[:] = 0.0
        self._settle(self.full_q)

    def step(self, steps: int = 1) -> None:
        """See `engine.Engine.step`."""
        if self.diverged:
            return
        h = self.settings.step / self._substeps
        x, pushes = self._state.record, self._push_table()
        x.q[:], x.v[:], x.acceleration[:], x.torque[:] = self.full_q, self.full_v, self._full_a, self.torque
        schedule, world, state = self._schedule(h, steps * self._substeps), self._world.table, self._state.table
        drives, motors = self._drives.table, self._packed_motors.table(*self._motors)
        done, bad = run_driven_steps(world, state, drives, pushes.table, motors, schedule)
        self.full_q, self.full_v, self._full_a, self.torque = (a.copy() for a in x[:4])
        self.time += done * h
        self._read()
        self._moved()
        if bad >= 0:
            self._fail(self.train.model.coordinates[bad])

    def _read(self) -> None:
        """Extract the robot's q, v and acceleration from all coordinates."""
        r, w = self.robot, self._wiring
        q, v, a = np.empty(r.nq), np.empty(r.nv), np.zeros(r.nv)
        k = len(w.joint)
        q[: r.iq], v[: r.iv], a[: r.iv] = self.full_q[: r.iq], self.full_v[: r.iv], self._full_a[: r.iv]
        joints, rates = w.angles.copy(), w.rates.copy()
        joints[w.joint], rates[w.joint] = self.full_q[r.iq : r.iq + k], self.full_v[r.iv : r.iv + k]
        q[r.iq :], v[r.iv :] = joints, rates
        a[r.iv + w.joint] = self._full_a[r.iv : r.iv + k]
        self.q, self.v, self.acceleration = q, v, a


# -------- Tendons


RAMP = 0.5  # [s] tension ramp: a step would jerk the joints
SWING = 5.0  # [rad/s] assumed natural frequency for the damping ratio: constant tensions have no stiffness


class TensionWorld(MultibodyWorld):
    """Robot with constant tendon tensions T: joint torques -G(q)^T T, without posture control.

    Joints without tendons keep ideal drives. Tendon torques are explicit; damping and stops are implicit.

    Attributes:
        plant: the tendons.
        tensions: (M,) [N] in the order of `plant.names`; may change at any time.
    """

    tensions: np.ndarray
    _ramp: tuple[np.ndarray, float] | None = None  # target tensions (M,) [N], end time [s]

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        """Build the world.

        Raises:
            RobotError: if the robot has no valid tendon file.
        """
        given = settings or WorldSettings()
        self.plant = TendonPlant(robot, given.moment_arm_error, given.seed)
        super().__init__(robot, given, gains or tension_gains(robot))
        self.uncommanded = self.plant.joints
        self.tensions = self._tensions_of(given.tension)

    def set_tension(self, tension: float) -> None:
        """See `engine.Engine.set_tension`."""
        super().set_tension(tension)
        self._ramp = self._tensions_of(tension), self.time + RAMP

    def _tensions_of(self, tension: float) -> np.ndarray:
        same = np.full(len(self.plant.names), tension)
        return same if tension else self.holding(self.robot.postures["neutral"])

    def reset(self, joints: np.ndarray | str = "neutral") -> None:
        """See `engine.Engine.reset`; a tension ramp jumps to its end."""
        if self._ramp is not None:
            self.tensions, self._ramp = self._ramp[0], None
        super().reset(joints)

    def _lead_tensions(self) -> None:
        assert self._ramp is not None
        target, end = self._ramp
        left = round((end - self.time) / self.settings.step)
        if left > 1:
            self.tensions = self.tensions + (target - self.tensions) / left
        else:
            self.tensions, self._ramp = target, None

    def holding(self, joints: np.ndarray) -> np.ndarray:
        """Return the smallest tensions (M,) [N] that best hold a posture (n,) [rad] against gravity.

        The equilibrium may be unstable.
        """
        weight = pin.computeGeneralizedGravity(self.model, self.data, self.robot.q(joints))
        return self.plant.states(joints, weight[self.robot.iv :]).tensions

    def step(self, steps: int = 1) -> None:
        """See `engine.Engine.step`."""
        moved = self.plant.joints
        for _ in range(steps):
            if self.diverged:
                return
            if self._ramp is not None:
                self._lead_tensions()
            pull = self.plant.torques(self.joints, self.tensions)
            self.drives.effort[moved] = pull
            super().step(1)
            self.torque[moved] = pull

    def tendon_states(self) -> TendonStates:
        """See `engine.Engine.tendon_states`."""
        return TendonStates(self.plant.names, self.plant.measure(self.joints)[0].copy(), self.tensions.copy())


def tension_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """Return `default_gains`, with damping and stops only for joints that tendons cross.

    Damping: 2 * damping_ratio * inertia * 5 rad/s, neutral posture.

    Raises:
        RobotError: if the robot has no valid tendon file.
    """
    gains = default_gains(robot, stiffness, damping_ratio)
    free = TendonPlant(robot).joints
    inertia = np.diag(pin.crba(robot.model, robot.model.createData(), robot.q("neutral")))[robot.iv :]
    kp, kd, rotor, effort = gains.kp.copy(), gains.kd.copy(), gains.rotor.copy(), gains.effort.copy()
    kp[free], kd[free], rotor[free], effort[free] = 0.0, 2 * damping_ratio * SWING * inertia[free], 0.0, np.inf
    return replace(gains, kp=kp, kd=kd, rotor=rotor, effort=effort)
