"""One closed loop: targets of joints, a law, winches, what their drives measure, an estimate, and back.

Errors are those of the plant: the controller, the estimator and the drives know the robot's file alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.simulation.drives.winches import perturbed, units_of
from humanoid_control.simulation.settings import WINCHES, WorldSettings
from humanoid_control.simulation.worlds.winch_world import WinchWorld
from humanoid_control.tendons.control.body_image import BodyImage, group_images
from humanoid_control.tendons.control.commands import WinchCommand, WinchStates
from humanoid_control.tendons.control.holdable import with_payload
from humanoid_control.tendons.control.laws import JointReference, TendonController
from humanoid_control.tendons.control.settings import TendonControllerSettings
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.settings import EstimatorSettings

ANGLES = ("true", "absolute", "r2", "r3", "none")
KNOWN = np.radians(2.0)  # [rad] to which a start is known for r2 and r3
SLACK = 4.0  # [N] below which the estimator leaves a tendon out, as in the stack `tendons`


@dataclass(frozen=True)
class PlantErrors:
    """What the plant has that the controller does not know; each is drawn with the seed of a run.

    Attributes:
        name: for tables.
        moment_arm: standard deviation of the factors of moment arms.
        stiffness: standard deviation of the factors of the wires' stiffness.
        path_friction: share of the tension.
        attachments: standard deviation of each coordinate of an attachment [m]; lengths are zeroed at neutral.
        payload: mass at the left wrist [kg].
    """

    name: str = "exact"
    moment_arm: float = 0.0
    stiffness: float = 0.0
    path_friction: float = 0.0
    attachments: float = 0.0
    payload: float = 0.0


@dataclass(frozen=True)
class LoopSettings:
    """A loop and its move.

    Attributes:
        law: of the controller. angles: one of `ANGLES`, which the law is given.
        rate: of the ticks [Hz]. late: ticks by which a command comes late.
        share: of the ranges around neutral from which postures are drawn.
        length_noise [m], tension_noise [N]: standard deviations of what drives measure.
        move, hold: seconds of a move and of the hold after it.
        controller: settings but for the law.
    """

    law: str = "hybrid"
    angles: str = "absolute"
    rate: float = 250.0
    late: int = 1
    share: float = 0.4
    length_noise: float = 1e-4
    tension_noise: float = 1.0
    move: float = 1.0
    hold: float = 1.0
    controller: TendonControllerSettings = field(default_factory=TendonControllerSettings)

    def __post_init__(self) -> None:
        if self.angles not in ANGLES:
            raise UnknownNameError("source of angles", self.angles, ANGLES)
        if not (50 <= self.rate <= 1000 and 0 <= self.late <= 20):
            raise ConfigError(f"closed loop: rate {self.rate:g} Hz (50..1000), late {self.late} ticks (0..20)")


@dataclass(frozen=True)
class LoopTrace:
    """What happened: of T ticks, D joints, M tendons.

    Attributes:
        time: (T,) [s]. reference, joints, estimate: (T, D) [rad]. tensions: (T, M) true ones [N].
        settings: of the loop.
    """

    time: np.ndarray
    reference: np.ndarray
    joints: np.ndarray
    estimate: np.ndarray
    tensions: np.ndarray
    settings: LoopSettings

    @property
    def settled(self) -> np.ndarray:
        """(T,) True in the second half of the hold."""
        s = self.settings
        return self.time >= s.move + 0.5 * s.hold - 1e-9

    @property
    def error(self) -> np.ndarray:
        """(T, D) joints less reference [deg]."""
        return np.degrees(self.joints - self.reference)

    def numbers(self) -> dict[str, float]:
        """Hold: rms over joints; worst: of any joint; moving: rms; swing: peak to peak, all [deg]; peak [N]."""
        error, settled = self.error, self.settled
        hold = error[settled]
        moving = error[self.time < self.settings.move]
        return {
            "hold": float(np.sqrt((hold**2).mean())),
            "worst": float(np.sqrt((hold**2).mean(axis=0)).max()),
            "moving": float(np.sqrt((moving**2).mean())),
            "swing": float(np.ptp(hold, axis=0).max()),
            "peak": float(self.tensions.max()),
            "estimate": float(np.sqrt((np.degrees(self.estimate - self.joints)[settled] ** 2).mean())),
        }


class ClosedLoop:
    """A robot on winches, a controller, and what tells it the angles.

    Attributes:
        world: the plant. controller, estimator: what knows the file alone; the estimator is None for true angles.
    """

    def __init__(
        self, robot: Robot, settings: LoopSettings, errors: PlantErrors | None = None, seed: int = 0, engine: str = ""
    ) -> None:
        """Build the loop.

        Args:
            robot: with tendons and a fixed base. errors: of its plant. seed: of errors and noise.
            engine: 'mujoco', or the multibody engine.
        """
        self.errors = e = errors or PlantErrors()
        self.robot, self.settings, self.rng = robot, settings, np.random.default_rng(seed)
        world_settings = WorldSettings(
            drives=WINCHES,
            moment_arm_error=e.moment_arm,
            winch_error=e.stiffness,
            path_friction=e.path_friction,
            seed=seed,
        )
        self.geometry = tendon_geometry(robot)
        tendons = perturbed(self.geometry.tendons, e.attachments, seed) if e.attachments else None
        loaded = loaded_robot(robot, e.payload) if e.payload else robot
        if engine == "mujoco":
            from humanoid_control.simulation.worlds.mujoco_winches import MujocoWinchWorld

            self.world: WinchWorld | MujocoWinchWorld = MujocoWinchWorld(loaded, world_settings, tendons=tendons)
        else:
            self.world = WinchWorld(loaded, world_settings, tendons=tendons)
        self.units = units_of(robot)
        law = replace(settings.controller, law=settings.law)
        self.controller = TendonController(robot.model, self.geometry, self.units, law, robot.q("neutral"))
        self.stiffness = np.array([u.stiffness for u in self.units])
        self.image: BodyImage | None = None
        self.estimator = self._estimator() if settings.angles not in ("true", "none") else None
        self.period = 1.0 / settings.rate
        self._steps = round(self.period / self.world.settings.step)

    def _estimator(self) -> TendonEstimator:
        groups = tendon_groups(self.robot)
        observation = EstimatorSettings(
            self.settings.angles,
            length_noise=max(5e-4, self.settings.length_noise),
            start_noise=KNOWN if self.settings.angles != "absolute" else np.radians(5.0),
            slack_tension=SLACK,
        )
        mappings = tendon_mappings(self.robot, groups)
        if self.image is not None:
            mappings = group_images(self.image, mappings)
        e = TendonEstimator(groups, mappings, observation)
        self._tendon_order = np.array([self.geometry.tendon_names.index(n) for n in e.muscle_names])
        self._joint_order = np.array([e.joint_names.index(n) for n in self.geometry.joint_names])
        return e

    def use(self, image: BodyImage) -> None:
        """Exchange the mapping of estimator and controller for what an image has learnt by now."""
        self.image = image
        if self.settings.angles not in ("true", "none"):
            self.estimator = self._estimator()
        self.controller.use(image)

    # -- a run ------------------------------------------------------------------------------------------------------

    @property
    def joints(self) -> np.ndarray:
        """True angles (D,) of the joints that tendons cross [rad]."""
        return self.world.joints[self.world.winches.joints].copy()

    def measured(self) -> WinchStates:
        """What the drives measure, with noise."""
        s, states = self.settings, self.world.winch_states()
        m = len(states.wire)
        wire = states.wire + s.length_noise * self.rng.standard_normal(m)
        tension = np.maximum(0.0, states.tension + s.tension_noise * self.rng.standard_normal(m))
        return WinchStates(wire, states.speed, tension)

    def paths(self, states: WinchStates) -> np.ndarray:
        """Lengths of the paths (M,) since zero by wire and stretch, as the unit's stiffness has it [m]."""
        return states.wire + states.tension / self.stiffness - self.geometry.zero

    def estimate(self, states: WinchStates) -> np.ndarray:
        """Angles (D,) that the law is given [rad]."""
        if self.estimator is None:
            return self.joints
        paths = self.paths(states)
        if self.image is not None:
            paths = self.image.corrected_paths(paths, states.tension)
        return self.estimator.step(paths[self._tendon_order], states.tension[self._tendon_order])[self._joint_order]

    def start(self) -> None:
        """Put the robot into its neutral posture, and let winches and estimate settle for 0.2 s."""
        self.world.reset()
        self._zero()
        if self.estimator is not None:
            self.estimator.reset(dict(zip(self.geometry.joint_names, self.joints.tolist(), strict=True)))
        for _ in range(round(0.2 / self.period)):
            self.world.step(self._steps)
            states = self.measured()
            angles = self.estimate(states)
        self.controller.reset(angles, states)

    def _zero(self) -> None:
        """Zero the encoders of the drums here: they read what the file's paths are long, wherever attachments are."""
        r, file = self.world.winches.record, self.geometry.lengths(self.joints) + self.geometry.zero
        if self.errors.attachments:
            r.slipped[:] = self.world.winches.plant.measure(self.world.joints)[0] - file
            r.wire[:] -= r.slipped

    def posture(self) -> np.ndarray:
        """A random posture (D,) within the share of the ranges around neutral [rad]."""
        j = self.world.winches.joints
        neutral, lower, upper = self.robot.postures["neutral"][j], self.robot.lower[j], self.robot.upper[j]
        at = self.rng.uniform(-1, 1, len(j))
        return neutral + self.settings.share * np.where(at > 0, at * (upper - neutral), -at * (lower - neutral))

    def run(
        self, goal: np.ndarray, event: Callable[[float, ClosedLoop], None] | None = None, start: bool = True
    ) -> LoopTrace:
        """Move to a posture and hold it.

        Args:
            goal: (D,) [rad]. event: called with the time [s] before each tick, for faults and pushes.
            start: begin at neutral; else where the robot is.
        """
        if start:
            self.start()
        s, begin = self.settings, self.controller.reference.copy()
        rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        waiting: list[WinchCommand] = []
        for k in range(round((s.move + s.hold) * s.rate)):
            time = k * self.period
            if event is not None:
                event(time, self)
            states = self.measured()
            angles = self.estimate(states)
            reference = minimum_jerk(begin, goal, time / s.move, s.move)
            given = self.controller.step(reference, None if s.angles == "none" else angles, states, self.period)
            waiting.append(WinchCommand(*(row.copy() for row in given)))
            if len(waiting) > s.late:
                self.world.set_tendon_commands(waiting.pop(0))
            rows.append((time, reference.position, self.joints, angles, self.world.winches.record.tension.copy()))
            self.world.step(self._steps)
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return LoopTrace(columns[0], columns[1], columns[2], columns[3], columns[4], s)


def minimum_jerk(begin: np.ndarray, goal: np.ndarray, share: float, duration: float) -> JointReference:
    """Reference on the way between two postures (D,), at a share of the time (Flash and Hogan 1985)."""
    x = min(max(share, 0.0), 1.0)
    way = goal - begin
    position = x**3 * (10 - 15 * x + 6 * x**2)
    velocity = 30 * x**2 * (1 - x) ** 2 / duration
    acceleration = 60 * x * (1 - x) * (1 - 2 * x) / duration**2
    return JointReference(begin + position * way, velocity * way, acceleration * way, np.zeros(len(way)))


def loaded_robot(robot: Robot, mass: float, point: str = "l_wrist") -> Robot:
    """The robot with a point mass [kg] at a tracked point, which its controller does not know.

    Raises:
        UnknownNameError: no such point.
    """
    if point not in robot.points:
        raise UnknownNameError("point", point, robot.points, hint=f"(robot {robot.name})")
    out = copy.copy(robot)
    out.model = with_payload(robot.model, {point: mass})
    return out
