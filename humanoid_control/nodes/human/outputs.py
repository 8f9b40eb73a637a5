"""Outputs of the node `human_motion`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.human.elements import GROUND
from humanoid_control.human.live.body_points import PersonPoints
from humanoid_control.human.live.live_fit import LiveFrame
from humanoid_control.human.live.live_forces import LiveForces
from humanoid_control.human.model import Person
from humanoid_control.nodes.base.messages import (
    STREAM_OUT,
    SerializedJointState,
    segments_marker,
    target_markers,
)
from humanoid_control.nodes.base.serialized_markers import IdlePublisher, SerializedMarkers
from humanoid_control.nodes.base.transforms import TransformOutput, transform

MEASURED, FITTED, ERROR = (0.15, 0.45, 0.95), (0.95, 0.5, 0.1), (0.85, 0.1, 0.15)
HOLLOW = 0.25  # opacity of measured markers, which enclose the smaller fitted ones
WIDE, NARROW = 0.034, 0.018  # [m]
METRES_A_NEWTON = 0.001  # scale of force arrows
LEAST_FORCE = 10.0  # [N] minimum force of an arrow
# opaque layers first, inside transparent ones
FITTED_LAYER, MEASURED_LAYER, ERROR_LAYER, BONES_LAYER, FIRST_ARROW = range(5)


class HumanOutputs:
    """Publishers of one person.

    Attributes:
        points: body points for imitation.
    """

    def __init__(self, node: Any, person: Person, feet: tuple[str, ...], world: str, rate: float) -> None:
        """Create the publishers.

        Args:
            rate: rate of markers and transforms [Hz].
        """
        self.person, self.points, self.world, self.rate = person, PersonPoints(person), world, rate
        self._feet = feet
        self._joints = node.create_publisher(JointState, "human/joint_states", STREAM_OUT)
        self._residual = node.create_publisher(WrenchStamped, "human/residual", STREAM_OUT)
        self._points = node.create_publisher(MarkerArray, "human/points", STREAM_OUT)
        self._markers = IdlePublisher(node.create_publisher(MarkerArray, "human/markers", STREAM_OUT))
        self._tf = TransformOutput(node)
        self._next_tf = 0.0
        self._state = SerializedJointState(person.names)
        self._wrench = WrenchStamped()
        self._frame = node.params.frame
        self._wrench.header.frame_id = self._frame(f"human/{person.body_names[0]}")
        self._body = SerializedMarkers(target_markers(self.points.names, world)) if not self.points.missing else None
        self._picture = SerializedMarkers(self._layers(len(person.markers)))
        self._shown: tuple[Time, LiveFrame, np.ndarray] | None = None
        self._placed: tuple[np.ndarray, np.ndarray] | None = None

    def become(self, person: Person) -> None:
        """Switch to the same person in another size."""
        self.person, self.points, self._shown, self._placed = person, PersonPoints(person), None, None

    def publish(self, stamp: Time, frame: LiveFrame, forces: LiveForces, turn: np.ndarray, now: float) -> None:
        """Publish one frame.

        Args:
            turn: rotation (3, 3) from person axes to the world.
            now: monotonic time [s].
        """
        self._joints.publish(self._state.fill(stamp, frame.q, forces.velocity, forces.tau))
        self._shown, self._placed = (stamp, frame, turn), None
        if forces.left is not None and self._residual.get_subscription_count():
            self._send_residual(stamp, forces.residual, self._poses()[0][0].T @ turn)
        if self._body is not None and self._points.get_subscription_count():
            self._body.set_stamp(stamp)
            self._body.set_positions(self.points.points(self.points.joints(*self._poses())))
            self._points.publish(self._body.bytes())
        if self._tf.sends and now >= self._next_tf:
            self._next_tf = max(self._next_tf + 1 / self.rate, now)
            self._tf.publish(*self._transforms(stamp, *self._poses()))

    def _poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rotations (nb, 3, 3) and origins (nb, 3) of the bodies in the world."""
        assert self._shown is not None
        if self._placed is None:
            _, frame, turn = self._shown
            R, p = self.person.body_poses(frame.q)
            self._placed = turn @ R[0], p[0] @ turn.T
        return self._placed

    def _send_residual(self, stamp: Time, residual: np.ndarray, turn: np.ndarray) -> None:
        """Publish the residual in pelvis axes; `turn` (3, 3): from ground axes."""
        self._wrench.header.stamp = stamp
        f, t = self._wrench.wrench.force, self._wrench.wrench.torque
        f.x, f.y, f.z = (turn @ residual[:3]).tolist()
        t.x, t.y, t.z = (turn @ residual[3:]).tolist()
        self._residual.publish(self._wrench)

    def picture(self, left: float, arrows: Callable[[], np.ndarray]) -> None:
        """Publish markers to subscribers, between ticks.

        Args:
            left: time to the next tick [s].
            arrows: returns centre of pressure [m] and force [N] of each foot in the world (F, 2, 3); NaN without load.
        """
        if self._shown is not None:
            self._markers.publish(left, self.rate, lambda: self._drawn(arrows()))

    def _drawn(self, arrows: np.ndarray) -> bytes:
        assert self._shown is not None
        stamp, frame, turn = self._shown
        fitted = frame.fitted @ turn.T
        seen = np.isfinite(frame.measured).all(axis=1)
        measured = np.where(seen[:, None], frame.measured @ turn.T, fitted)
        opaque = np.where(seen, HOLLOW, 0.0)
        hollow = np.column_stack([np.tile(MEASURED, (len(seen), 1)), opaque])
        full = np.column_stack([np.tile(FITTED, (len(seen), 1)), np.where(seen, 1.0, 0.4)])
        m = self._picture
        m.set_stamp(stamp)
        m.set_points(MEASURED_LAYER, measured, hollow)
        m.set_points(FITTED_LAYER, fitted, full)
        m.set_points(ERROR_LAYER, np.stack([measured, fitted], axis=1).reshape(-1, 3))
        m.set_points(BONES_LAYER, self.points.segments(self.points.joints(*self._poses())))
        for k, (at, force) in enumerate(arrows):
            drawn = bool(np.isfinite(at).all() and np.linalg.norm(force) > LEAST_FORCE)
            m.show(FIRST_ARROW + k, drawn)
            if drawn:
                m.set_points(FIRST_ARROW + k, np.stack([at, at + METRES_A_NEWTON * force]))
        return m.bytes()

    def _layers(self, count: int) -> MarkerArray:
        layers = []
        for ns, color, width in (("fitted", FITTED, NARROW), ("measured", MEASURED, WIDE)):
            m = Marker(ns=ns, type=Marker.SPHERE_LIST, action=Marker.ADD)
            m.scale.x = m.scale.y = m.scale.z = width
            m.pose.orientation.w = 1.0
            m.points = [Point() for _ in range(count)]
            m.colors = [ColorRGBA(r=color[0], g=color[1], b=color[2], a=1.0) for _ in range(count)]
            layers.append(m)
        layers.append(segments_marker("error", ERROR, 0.004, self.world))
        layers[-1].points = [Point() for _ in range(2 * count)]
        layers.append(segments_marker("bones", (0.35, 0.35, 0.4), 0.02, self.world))
        layers[-1].points = [Point() for _ in range(2 * max(len(self.points.bones), 1))]
        for side in self._feet:
            arrow = Marker(ns=f"force {side}", type=Marker.ARROW, action=Marker.ADD)
            arrow.color = ColorRGBA(r=0.2, g=0.65, b=0.3, a=1.0)
            arrow.scale.x, arrow.scale.y, arrow.scale.z = 0.02, 0.045, 0.06
            arrow.pose.orientation.w = 1.0
            arrow.points = [Point(), Point()]
            layers.append(arrow)
        for layer in layers:
            layer.header.frame_id = self.world
        return MarkerArray(markers=layers)

    def _transforms(self, stamp: Time, R: np.ndarray, p: np.ndarray) -> list[Any]:
        import pinocchio as pin

        out, index = [], {name: k for k, name in enumerate(self.person.body_names)}
        for k, joint in enumerate(self.person.joints):
            X, parent = pin.SE3(R[k], p[k]), self.world
            if joint.parent != GROUND:
                up = index[joint.parent]
                X, parent = pin.SE3(R[up], p[up]).actInv(X), self._frame(f"human/{joint.parent}")
            out.append(transform(stamp, parent, self._frame(f"human/{self.person.body_names[k]}"), X))
        return out
