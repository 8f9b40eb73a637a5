"""The body image between nodes: learnt by the tendon controller, used by controller and state estimator alike.

A message holds the parameters of `BodyImage`, row by row; its label is the hash of the routing they belong to. It is
latched, so that an estimator that is restarted takes what was learnt before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout
from std_srvs.srv import SetBool, Trigger

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.nodes.base.command_owner import listen_to_one
from humanoid_control.nodes.base.messages import LATCHED, JointPositions, floats
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot
from humanoid_control.tendons.control.body_image import BodyImage, CorrectedMapping, group_images
from humanoid_control.tendons.control.references import WinchReadings
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.routing.geometry import TendonGeometry

TOPIC = "body_image"
LIVE = "live"  # value of the estimator's parameter `body_image`: follow the topic
SAMPLE_PERIOD = 0.016  # [s] between two samples that are learnt from, at least
OWNED = 10.0  # [s] after an image in which those of another publisher are refused
ENOUGH = 50  # samples of a tendon below which freezing changes nothing


def message_of(image: BodyImage) -> Float64MultiArray:
    """Return the message that holds an image."""
    rows, columns = image.parameters.shape
    dim = [
        MultiArrayDimension(label=image.base.model_hash, size=rows, stride=rows * columns),
        MultiArrayDimension(label="a b kappa c d", size=columns, stride=columns),
    ]
    return Float64MultiArray(layout=MultiArrayLayout(dim=dim), data=floats(image.parameters.ravel()))


def take_message(image: BodyImage, m: Float64MultiArray) -> None:
    """Set an image's parameters to those of a message.

    Raises:
        ConfigError: another robot or routing, another number of parameters, or one that is not finite; nothing changes.
    """
    label = m.layout.dim[0].label if m.layout.dim else ""
    if label != image.base.model_hash:
        raise ConfigError(f"{TOPIC}: is of another robot or routing; ignored")
    values = np.asarray(m.data, dtype=float)
    if values.size != image.parameters.size or not np.isfinite(values).all():
        raise ConfigError(f"{TOPIC}: expected {image.parameters.size} finite numbers, got {values.size}; ignored")
    image.parameters[:] = values.reshape(image.parameters.shape)


class FollowedImage:
    """The body image that a state estimator uses: of a file, or as a tendon controller publishes it.

    Attributes:
        mappings: of the groups by name, corrected in place whenever the image changes.
    """

    def __init__(
        self,
        node: TickNode,
        geometry: TendonGeometry,
        mappings: dict[str, JointMuscleMapping],
        stiffness: float,
        source: str,
    ) -> None:
        """Begin with the file, or without corrections.

        Args:
            node: that subscribes. geometry: of all M tendons. mappings: of the groups, without corrections.
            stiffness: of every wire [N/m]. source: path of a file, or `LIVE`.

        Raises:
            ConfigError: no stiffness; a file that does not exist, is damaged, or of another robot.
        """
        if not stiffness > 0:
            raise ConfigError("body_image needs tendon_stiffness: an image corrects the wires' stretch too")
        self._node = node
        self._image = BodyImage.of_geometry(geometry, np.full(len(geometry.tendon_names), stiffness))
        if source != LIVE:
            self._image.load(Path(source).expanduser())
        self.mappings = group_images(self._image, mappings)
        if source == LIVE:
            listen_to_one(node, Float64MultiArray, TOPIC, self._on_image, OWNED, LATCHED)

    def _on_image(self, m: Float64MultiArray) -> None:
        try:
            take_message(self._image, m)
        except ConfigError as e:
            self._node.health.report(TOPIC, Level.WARN, str(e))
            return
        self._node.health.clear(TOPIC)
        for mapping in self.mappings.values():
            assert isinstance(mapping, CorrectedMapping)
            mapping.take(self._image)

    def paths(self, lengths: Array, tensions: Array | None, names: tuple[str, ...]) -> Array:
        """Lengths (M,) [m] for the corrected mappings, of lengths that contain the stretch of the wires.

        Args:
            lengths: (M,) since zero [m]. tensions: (M,) [N], None where they are unknown. names: order of both.
        """
        rows = [self._image.base.muscle_names.index(n) for n in names]
        T = np.zeros(len(self._image.stiffness))
        paths = np.full(len(T), np.nan)
        paths[rows] = lengths
        T[rows] = 0.0 if tensions is None else np.nan_to_num(tensions)
        return self._image.corrected_paths(paths, T)[rows]


class BodyImageLearner:
    """Learns a body image while the tendon controller runs, from angles that another topic knows.

    Services ~/learn (true: learn; false: freeze, and use what was learnt from now on) and ~/save (write the file).
    """

    def __init__(
        self,
        node: TickNode,
        robot: Robot,
        geometry: TendonGeometry,
        stiffness: Array,
        apply: Callable[[BodyImage], None],
    ) -> None:
        """Offer the services; with a file, use it.

        Args:
            node: with the parameters learn_from and body_image. robot: of the node. geometry: of its M tendons.
            stiffness: (M,) of the wires [N/m]. apply: called with an image that is to be used from now on.

        Raises:
            ConfigError: a file that is damaged, or of another robot, routing or wire.
        """
        p: Any = node.params
        self._node, self._apply, self._geometry = node, apply, geometry
        self._source = p.learn_from
        self.image = BodyImage.of_geometry(geometry, stiffness)
        self._file = Path(p.body_image).expanduser() if p.body_image else None
        self._publisher = node.create_publisher(Float64MultiArray, TOPIC, LATCHED)
        self._angles = JointPositions(robot)
        self._joints = np.array([robot.joint_index(n) for n in geometry.joint_names])
        self._before: tuple[Array, float] | None = None
        self._sampled, self._fresh = -np.inf, False
        self.learning = False
        if self._file is not None and self._file.exists():
            self.image.load(self._file)
            self._use()
        if self._source:
            node.listen(JointState, self._source, self._on_angles)
        node.create_service(SetBool, "~/learn", self._on_learn)
        node.create_service(Trigger, "~/save", self._on_save)

    @property
    def state(self) -> str:
        """State of learning, for diagnostics."""
        if not self._source:
            return "not possible: learn_from names no topic"
        return f"{'on' if self.learning else 'off'}, {int(self.image.samples.min())} samples of every tendon"

    def _use(self) -> None:
        self._apply(self.image)
        self._publisher.publish(message_of(self.image))

    def _on_angles(self, m: JointState) -> None:
        self._angles.take(m)
        self._fresh = True

    def add(self, readings: WinchReadings, now: float) -> None:
        """Learn from the newest angles, wires and tensions, where learning is on and the angles are new."""
        if not self.learning or not self._fresh or not readings.known or now - self._sampled < SAMPLE_PERIOD:
            return
        theta, states = self._angles.values[self._joints], readings.states
        before, self._before, self._fresh, self._sampled = self._before, (theta, now), False, now
        if before is None or not now - before[1] < 10 * SAMPLE_PERIOD:
            return  # how fast the joints move is unknown
        rates = np.nan_to_num((theta - before[0]) / (now - before[1]))
        paths = states.wire + states.tension / self.image.stiffness - self._geometry.zero
        self.image.add(theta, paths, states.tension, rates=rates)

    def _on_learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Learn, or freeze and use what was learnt."""
        if request.data and not self._source:
            response.success = False
            response.message = "nothing to learn from: name a topic of true joint angles in the parameter learn_from"
            return response
        was, self.learning, self._before = self.learning, bool(request.data), None
        response.success, response.message = True, "learning"
        if self.learning:
            return response
        taught = int((self.image.samples >= ENOUGH).sum())
        response.message = f"frozen; {taught} of {len(self.image.samples)} tendons learnt"
        if was and taught:
            self._use()
        return response

    def _on_save(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Write the image to the file of the parameter body_image."""
        if self._file is None:
            response.success, response.message = False, "no file: name one in the parameter body_image"
            return response
        try:
            self.image.save(self._file)
        except (OSError, HumanoidError) as e:
            response.success, response.message = False, f"{self._file}: not written: {e}"
            return response
        response.success, response.message = True, f"written: {self._file}"
        return response

    def slack_time(self) -> None:
        """Report what keeps it from learning."""
        silent = self.learning and self._node.age(self._source, time.monotonic()) > 1.0
        self._node.health.check("learn_from", silent, Level.WARN, f"no {self._source}: nothing is learnt")
