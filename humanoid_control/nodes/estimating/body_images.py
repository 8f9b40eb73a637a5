"""Body image learnt by the tendon controller, also used by the state estimator.

A latched message holds the parameters of `BodyImage`, labelled with the routing hash.
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
LIVE = "live"  # value of the estimator parameter `body_image`: follow the topic
SAMPLE_PERIOD = 0.016  # [s] minimum time between training samples
OWNED = 10.0  # [s] after an image in which other publishers are rejected
ENOUGH = 50  # samples of a tendon needed for a correction


def message_of(image: BodyImage) -> Float64MultiArray:
    """Return an image as a message."""
    rows, columns = image.parameters.shape
    dim = [
        MultiArrayDimension(label=image.base.model_hash, size=rows, stride=rows * columns),
        MultiArrayDimension(label="a b kappa c d", size=columns, stride=columns),
    ]
    return Float64MultiArray(layout=MultiArrayLayout(dim=dim), data=floats(image.parameters.ravel()))


def take_message(image: BodyImage, m: Float64MultiArray) -> None:
    """Set the parameters of an image from a message.

    Raises:
        ConfigError: if robot, routing or size differ, or values are not finite.
    """
    label = m.layout.dim[0].label if m.layout.dim else ""
    if label != image.base.model_hash:
        raise ConfigError(f"{TOPIC}: is of another robot or routing; ignored")
    values = np.asarray(m.data, dtype=float)
    if values.size != image.parameters.size or not np.isfinite(values).all():
        raise ConfigError(f"{TOPIC}: expected {image.parameters.size} finite numbers, got {values.size}; ignored")
    image.parameters[:] = values.reshape(image.parameters.shape)


class FollowedImage:
    """Body image of a state estimator, from a file or a tendon controller.

    Attributes:
        mappings: corrected mappings of the groups by name, updated in place.
    """

    def __init__(
        self,
        node: TickNode,
        geometry: TendonGeometry,
        mappings: dict[str, JointMuscleMapping],
        stiffness: float,
        source: str,
    ) -> None:
        """Load the file, or start without corrections.

        Args:
            geometry: geometry of all M tendons.
            mappings: uncorrected mappings of the groups.
            stiffness: stiffness of every wire [N/m].
            source: path of a file, or `LIVE`.

        Raises:
            ConfigError: if stiffness is zero, or the file unusable.
        """
        if not stiffness > 0:
            raise ConfigError("body_image needs tendon_stiffness: the image also corrects the stretch of the wires")
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
        """Return path lengths (M,) [m] for corrected mappings, without wire stretch.

        Args:
            lengths: lengths since zero (M,) [m].
            tensions: tensions (M,) [N], or None.
            names: order of both.
        """
        rows = [self._image.base.muscle_names.index(n) for n in names]
        T = np.zeros(len(self._image.stiffness))
        paths = np.full(len(T), np.nan)
        paths[rows] = lengths
        T[rows] = 0.0 if tensions is None else np.nan_to_num(tensions)
        return self._image.corrected_paths(paths, T)[rows]


class BodyImageLearner:
    """Online learning of a body image from measured joint angles.

    Services: ~/learn (true: learn; false: freeze, and use the result) and ~/save (write the file).
    """

    def __init__(
        self,
        node: TickNode,
        robot: Robot,
        geometry: TendonGeometry,
        stiffness: Array,
        apply: Callable[[BodyImage], None],
    ) -> None:
        """Create the services; use the file if there is one.

        Args:
            node: node with the parameters learn_from and body_image.
            geometry: geometry of M tendons.
            stiffness: wire stiffness (M,) [N/m].
            apply: called with each image to use.

        Raises:
            ConfigError: if the file is unusable.
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
        if not self._source:
            return "not possible: learn_from is empty"
        return f"{'on' if self.learning else 'off'}, {int(self.image.samples.min())} samples of every tendon"

    def _use(self) -> None:
        self._apply(self.image)
        self._publisher.publish(message_of(self.image))

    def _on_angles(self, m: JointState) -> None:
        self._angles.take(m)
        self._fresh = True

    def add(self, readings: WinchReadings, now: float) -> None:
        """Learn from the newest data, if learning is on."""
        if not self.learning or not self._fresh or not readings.known or now - self._sampled < SAMPLE_PERIOD:
            return
        theta, states = self._angles.values[self._joints], readings.states
        before, self._before, self._fresh, self._sampled = self._before, (theta, now), False, now
        if before is None or not now - before[1] < 10 * SAMPLE_PERIOD:
            return  # the joint speed is unknown
        rates = np.nan_to_num((theta - before[0]) / (now - before[1]))
        paths = states.wire + states.tension / self.image.stiffness - self._geometry.zero
        self.image.add(theta, paths, states.tension, rates=rates)

    def _on_learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data and not self._source:
            response.success = False
            response.message = "nothing to learn from: set the parameter learn_from to a topic of true joint angles"
            return response
        was, self.learning, self._before = self.learning, bool(request.data), None
        response.success, response.message = True, "learning"
        if self.learning:
            return response
        taught = int((self.image.samples >= ENOUGH).sum())
        response.message = f"frozen; {taught} of {len(self.image.samples)} tendons learned"
        if was and taught:
            self._use()
        return response

    def _on_save(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._file is None:
            response.success, response.message = False, "no file: set the parameter body_image"
            return response
        try:
            self.image.save(self._file)
        except (OSError, HumanoidError) as e:
            response.success, response.message = False, f"{self._file}: not written: {e}"
            return response
        response.success, response.message = True, f"written: {self._file}"
        return response

    def slack_time(self) -> None:
        silent = self.learning and self._node.age(self._source, time.monotonic()) > 1.0
        self._node.health.check("learn_from", silent, Level.WARN, f"no {self._source}: not learning")
