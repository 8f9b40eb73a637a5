"""Robot: pinocchio model, limits, postures, tracked points, feet and collision shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import CoalPairs, ancestor_mask, build_geometry, watched_pairs
from humanoid_control.errors import RobotError, UnknownNameError, first_line, told_of
from humanoid_control.robots.description.robot_file import Foot, RobotFile, shapes_from_urdf
from humanoid_control.robots.description.tree_changes import placed_in_world, plain_urdf, rooted_at, with_frames
from humanoid_control.robots.description.urdf import UrdfTree

if TYPE_CHECKING:
    from humanoid_control import robots

FIXED, FLOATING = "fixed", "floating"
CONTACT_MARGIN = 0.002  # [m] margin of shapes around first contacts, close to the surfaces
IMITATION_POINTS = ("mid_hip", "sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist")


class Robot:
    """Robot with a floating base (free root) or a fixed base (held anchor link).

    Joint vectors `(n,)` follow `joint_names` [rad]. `q (nq,)` and `v (nv,)` are pinocchio's, with pose (x y z,
    quaternion x y z w) and velocity (linear, angular, in axes of the base) of a floating base in front. World: origin
    on the floor below the root, x forward, y left, z up.

    Attributes:
        height: [m].
        provenance: number of values by provenance.
        urdf: as published on `robot_description`.
        base: 'fixed' or 'floating'.
        anchor: link held by a fixed base.
        model: pinocchio model; points are operational frames.
        data: overwritten by all methods that compute kinematics.
        iq: first joint in q.
        iv: first joint in v.
        index: name -> joint index.
        lower: (n,) [rad]; infinite for continuous joints.
        upper: (n,) [rad]; infinite for continuous joints.
        velocity: (n,) limits [rad/s].
        effort: (n,) limits [N m].
        effort_known: (n,) False for a default.
        postures: name -> (n,), with `zero` (within limits) and `neutral`.
        imitation_joints: indices moved by imitation.
        optional_joints: indices kept neutral by imitation.
        meanings: anatomical name -> joint, such as `l_elbow_flexion`.
        points: tracked point -> frame id.
        feet: soles.
        pairs: (P, 2) shapes that must not touch.
        shapes_from: origin of unmeasured shapes, printed with results.
        ancestor_mask: (njoints, nv) 1 where a velocity moves a pinocchio joint.
        mimic: (follower, leader, multiplier, offset) with joint indices.
        X_world_root: root link in the neutral posture.
        folder: of the URDF, or None.
        volumes: swept-sphere file, or None.
        drives: drives file, or None.
        tendons: tendon file, or None.
        notes: dropped or wrong parts of the description.
    """

    def __init__(self, tree: UrdfTree, file: RobotFile, base: str | None = None) -> None:
        """Build the robot from a checked URDF.

        Args:
            file: data besides the URDF.
            base: 'fixed' or 'floating'; default: robot file.

        Raises:
            UnknownNameError: if the robot file names unknown links, joints or shapes.
            RobotError: if pinocchio rejects the model, or a posture violates limits.
        """
        self.name, self.title = file.name or tree.name, file.title or file.name or tree.name
        self.height, self.provenance, self.file = file.height, dict(file.provenance), file
        self.folder: Path | None = None
        self.volumes: Path | None = None
        self.drives: Path | None = None
        self.tendons: Path | None = None
        self._tree = tree = with_frames(tree, {name: (f.link, f.pose()) for name, f in file.frames.items()}).copy()
        self.notes = tree.notes
        self.base = base or file.base
        self.anchor = file.anchor or tree.root
        self.root_link = tree.root
        self._check_links(tree, file)
        height = np.array([0.0, 0.0, file.root_height.get("neutral", 0.0)])
        self.X_world_root = pin.SE3(pin.rpy.rpyToMatrix(*file.root_rpy), height)
        self.model = build_model(tree, file, self.base, self.anchor, self.X_world_root)
        self.model.name = self.name
        self.data = self.model.createData()
        self._read_joints(tree)
        self._read_postures(tree, file)
        self._read_collision(tree, file)

    @cached_property
    def urdf(self) -> str:
        """URDF, rooted as in the file."""
        return '<?xml version="1.0"?>\n' + plain_urdf(self._tree).text()

    @property
    def stated_accelerations(self) -> dict[str, float]:
        """Joint -> limit in the URDF [rad/s^2, m/s^2], the lower of acceleration and deceleration."""
        out = {}
        for joint in self._tree.joints:
            limit, name = joint.find("limit"), joint.get("name", "")
            if limit is not None and name in self.index:
                stated = [float(limit.get(k) or 0) for k in ("acceleration", "deceleration")]
                if positive := [v for v in stated if v > 0]:
                    out[name] = min(positive)
        return out

    # -- building ---------------------------------------------------------------------------------------------

    def _check_links(self, tree: UrdfTree, file: RobotFile) -> None:
        links = set(tree.links)
        uses = [("anchor", self.anchor), *((f"point '{k}'", link) for k, (link, _) in file.points.items())]
        uses += [(f"foot '{f.name}'", f.link) for f in file.feet]
        uses += [(f"shape '{s.name}'", link) for s in file.collision for link in (s.link, *s.against)]
        for what, link in uses:
            if link not in links:
                raise UnknownNameError("link", link, links, hint=f"({what} in {file.where or 'the robot file'})")
        if self.base not in (FIXED, FLOATING):
            raise RobotError(f"base must be '{FIXED}' or '{FLOATING}', got '{self.base}'")

    def _read_joints(self, tree: UrdfTree) -> None:
        model = self.model
        first = 2 if self.base == FLOATING else 1
        self.joint_names: tuple[str, ...] = tuple(model.names[first:])
        self.n = len(self.joint_names)
        self.nq, self.nv = int(model.nq), int(model.nv)
        self.iq, self.iv = self.nq - self.n, self.nv - self.n
        self.ancestor_mask = ancestor_mask(model)
        self.index = {name: k for k, name in enumerate(self.joint_names)}
        self.lower = np.array(model.lowerPositionLimit[self.iq :])
        self.upper = np.array(model.upperPositionLimit[self.iq :])
        self.velocity = np.array(model.upperVelocityLimit[self.iv :])
        self.effort = np.array(model.upperEffortLimit[self.iv :])
        self.effort_known = np.array([name not in tree.unknown_efforts for name in self.joint_names], dtype=bool)
        self.mimic = mimicking_joints(tree, self.index)

    def _read_postures(self, tree: UrdfTree, file: RobotFile) -> None:
        zero = np.clip(np.zeros(self.n), self.lower, self.upper)
        self.postures = {"zero": zero, "neutral": zero}
        for name, values in file.postures.items():
            posture = zero.copy()
            for joint, value in values.items():
                with told_of(f"{file.where}: posture '{name}'"):
                    posture[self.joint_index(joint)] = value
            outside = (posture < self.lower - 1e-9) | (posture > self.upper + 1e-9)
            if outside.any():
                joint = self.joint_names[int(np.argmax(outside))]
                raise RobotError(f"{file.where}: posture '{name}' puts joint '{joint}' outside its limits")
            self.postures[name] = posture
        with told_of(f"{file.where}: optional_joints"):
            self.optional_joints = np.array([self.joint_index(n) for n in file.optional_joints], dtype=int)
        self.meanings = {n: n for n in self.joint_names} | dict(file.meanings)
        for meaning, joint in file.meanings.items():
            if joint not in self.index:
                raise UnknownNameError("joint", joint, self.index, hint=f"(meaning '{meaning}' in {file.where})")
        self.feet: tuple[Foot, ...] = file.feet
        self.points = {
            name: self.model.getFrameId(point_label(name, tree), pin.FrameType.OP_FRAME) for name in file.points
        }
        names = file.imitation_joints or self._moving_points(file)
        with told_of(f"{file.where}: imitation_joints"):
            self.imitation_joints = np.array([self.joint_index(n) for n in names], dtype=int)

    def _moving_points(self, file: RobotFile) -> list[str]:
        frames = [self.points[p] for p in IMITATION_POINTS if p in self.points]
        moves = np.ones(self.n, dtype=bool)
        if frames:
            moves = np.any(self.ancestor_mask[[self.model.frames[f].parentJoint for f in frames]], axis=0)[self.iv :]
        left_out = {n for n in self.joint_names if n in file.optional_joints or n.split("_")[-1].startswith("toe")}
        return [n for n, m in zip(self.joint_names, moves, strict=True) if m and n not in left_out]

    def _read_collision(self, tree: UrdfTree, file: RobotFile) -> None:
        self.shapes = file.collision or shapes_from_urdf(tree)
        self.shapes_from = file.collision_from
        if not file.collision and next(tree.document.iter("mesh"), None) is not None:
            self.shapes_from = "the URDF's boxes, cylinders and spheres only, not its meshes"
        disabled = {frozenset(p) for p in file.disabled_pairs}
        known = {s.name for s in self.shapes}
        for pair in disabled:
            for name in pair - known:
                raise UnknownNameError("shape", name, known, hint=f"(disabled pair in {file.where})")
        apart = {frozenset(p) for p in file.unwatched_links}
        for pair in apart:
            for link in pair - set(tree.links):
                raise UnknownNameError("link", link, tree.links, hint=f"(unwatched links in {file.where})")
        for a, b in (tuple(pair) for pair in apart if len(pair) == 2):
            sides = [[s.name for s in self.shapes if s.link == link and not s.against] for link in (a, b)]
            disabled |= {frozenset((one, other)) for one in sides[0] for other in sides[1]}
        overlap_at = None if file.disabled_pairs else self.q("neutral")
        self.pairs = np.array(watched_pairs(self.model, self.shapes, disabled, overlap_at), dtype=int).reshape(-1, 2)
        self.geometry = build_geometry(self.model, self.shapes, self.pairs)
        self._clearance: CoalPairs | None = None

    def self_distance(self) -> CoalPairs:
        """Create the distances between this robot's collision shapes."""
        return CoalPairs(self.model, self.geometry)

    def collision_monitor(self, kind: str | None = None) -> robots.CollisionMonitor:
        """Create a monitor of the pairs that must not touch.

        Args:
            kind: exact 'shapes' or swept-sphere 'volumes'; default: volumes if there is a file.

        Raises:
            UnknownNameError: if the kind, or a name in the file, is unknown.
            RobotError: if the file does not fit.
        """
        from humanoid_control import robots  # imported on demand: its kernels load the compiler

        return robots.CollisionMonitor.of(self, kind)

    # -- names ------------------------------------------------------------------------------------------------

    def joint_index(self, name: str) -> int:
        """Return the index of a joint.

        Raises:
            UnknownNameError: if the joint is unknown.
        """
        try:
            return self.index[name]
        except KeyError:
            raise UnknownNameError("joint", name, self.index, hint=f"(robot {self.name})") from None

    def joint_for(self, meaning: str) -> str | None:
        """Return the joint of an anatomical motion such as `l_elbow_flexion`, or None."""
        joint = self.meanings.get(meaning)
        return joint if joint in self.index else None

    def range_within(self, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits (n,), clipped to -angle..angle [rad], for continuous joints."""
        return np.maximum(self.lower, -angle), np.minimum(self.upper, angle)

    @property
    def has_feet(self) -> bool:
        """True if it stands on legs: two soles with points."""
        return len(self.feet) >= 2 and {"l_foot_tcp", "r_foot_tcp"} <= set(self.points)

    @cached_property
    def _accelerations(self) -> robots.DriveAccelerations:
        from humanoid_control import robots  # imported on demand

        return robots.acceleration_limits(self)

    @property
    def acceleration_limits(self) -> np.ndarray:
        """Acceleration limits (n,) from robot file or drives; infinite: unknown."""
        return self._accelerations.acceleration

    @property
    def braking_limits(self) -> np.ndarray:
        """Decelerations (n,) that drives always reach before the end of a range."""
        return self._accelerations.braking

    def accelerations_within(self, most: float, scale: float = 1.0) -> robots.DriveAccelerations:
        """Return both limits times `scale`, clipped to `most` [rad/s^2]; infinite `scale`: `most` alone."""
        own = self._accelerations
        return type(own)(np.minimum(most, scale * own.acceleration), np.minimum(most, scale * own.braking))

    def order_of(self, names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Match joint names of a message: (positions in it, joint indices)."""
        rows = [(k, self.index[n]) for k, n in enumerate(names) if n in self.index]
        found = np.array(rows, dtype=int).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    # -- configurations -----------------------------------------------------------------------------------------

    def q(self, joints: str | np.ndarray = "neutral", X_world_root: pin.SE3 | None = None) -> np.ndarray:
        """Return a configuration (nq,).

        Args:
            joints: (n,) [rad], or a posture.
            X_world_root: pose of a floating root; default: standing in the neutral posture.
        """
        if isinstance(joints, str):
            if joints not in self.postures:
                raise UnknownNameError("posture", joints, self.postures, hint=f"(robot {self.name})")
            joints = self.postures[joints]
        if self.base == FIXED:
            return np.array(joints, dtype=float)
        return np.concatenate([pin.SE3ToXYZQUAT(X_world_root or self.X_world_root), joints])

    def joints(self, q: np.ndarray) -> np.ndarray:
        """Return the joint angles (n,) in a configuration."""
        return q[self.iq :]

    def from_mapping(self, values: Mapping[str, float], start: str = "neutral") -> np.ndarray:
        """Return a posture (n,) with some joints set by name [rad]."""
        out = self.postures[start].copy()
        for name, value in values.items():
            out[self.joint_index(name)] = value
        return out

    def follow(self, joints: np.ndarray) -> np.ndarray:
        """Set all mimic joints from their leaders, in place."""
        for follower, leader, multiplier, offset in self.mimic:
            joints[follower] = multiplier * joints[leader] + offset
        return joints

    # -- geometry -----------------------------------------------------------------------------------------------

    def point_positions(self, q: np.ndarray, names: Iterable[str]) -> np.ndarray:
        """Return world positions (P, 3) of tracked points [m]."""
        return self.frame_positions(q, [self.point_frame(n) for n in names])

    def frame_positions(self, q: np.ndarray, frames: Iterable[int]) -> np.ndarray:
        """Return world positions (F, 3) of frames [m]."""
        pin.framesForwardKinematics(self.model, self.data, q)
        return np.array([self.data.oMf[f].translation for f in frames]).reshape(-1, 3)

    def point_frame(self, name: str) -> int:
        """Return the frame id of a tracked point.

        Raises:
            UnknownNameError: if the point is unknown.
        """
        try:
            return self.points[name]
        except KeyError:
            raise UnknownNameError("point", name, self.points, hint=f"(robot {self.name})") from None

    def require_imitation_points(self) -> None:
        """Check for the points that imitation needs.

        Raises:
            RobotError: if points are missing.
        """
        missing = [name for name in IMITATION_POINTS if name not in self.points]
        if missing:
            raise RobotError(
                f"{self.name} lacks the points {', '.join(missing)}: imitation needs them in a robot file next to its "
                "URDF (docs/adding_a_robot.md; `humanoid robots map` guesses one)"
            )

    def link_poses(self, q: np.ndarray) -> dict[str, pin.SE3]:
        """Return the world pose of every link at q (nq,), valid until the next call."""
        pin.framesForwardKinematics(self.model, self.data, q)
        return {f.name: self.data.oMf[k] for k, f in enumerate(self.model.frames) if f.type == pin.FrameType.BODY}

    def center_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Return the centre of mass (3,) of all links in the world [m]."""
        moving = np.array(pin.centerOfMass(self.model, self.data, q))
        held, m = self.model.inertias[0], float(self.data.mass[0])  # pinocchio excludes links fixed to the world
        return (m * moving + held.mass * held.lever) / (m + held.mass)

    def pair_distances(self, q: np.ndarray) -> np.ndarray:
        """Return the distance (P,) of each pair of shapes [m]."""
        if self._clearance is None:
            self._clearance = self.self_distance()
        pin.forwardKinematics(self.model, self.data, q)
        return self._clearance.all_distances(self.data)

    def largest_margins(self) -> np.ndarray:
        """Return the largest feasible margin (P,) of each pair [m]: its neutral distance.

        Shapes around first contacts (`LinkShape.against`) get at most CONTACT_MARGIN.
        """
        if not len(self.pairs):
            return np.zeros(0)
        around = np.array([bool(s.against) for s in self.shapes], dtype=bool)
        contacts = around[self.pairs].any(axis=1)
        return np.clip(self.pair_distances(self.q()), 0.0, np.where(contacts, CONTACT_MARGIN, np.inf))

    def shape_clearance(self, q: np.ndarray) -> np.ndarray:
        """Return the distance (S,) of each shape to its nearest partner [m]."""
        d = self.pair_distances(q)
        out = np.full(len(self.shapes), np.inf)
        np.minimum.at(out, self.pairs[:, 0], d)
        np.minimum.at(out, self.pairs[:, 1], d)
        return out

    def segment_lengths(self) -> dict[str, float]:
        """Return spine, clavicle, upper_arm, lower_arm [m] in the zero posture, averaged over sides.

        Spine: mid-hip to sternum; clavicle: sternum to glenohumeral centre (Dube 2012, section 4.5).

        Raises:
            RobotError: if points are missing.
        """
        self.require_imitation_points()
        p = dict(zip(IMITATION_POINTS, self.point_positions(self.q("zero"), IMITATION_POINTS), strict=True))

        def both(a: str, b: str) -> float:
            return float(
                np.mean([np.linalg.norm(p[f"{s}_{a}" if a != "sternum" else a] - p[f"{s}_{b}"]) for s in "lr"])
            )

        return {
            "spine": float(np.linalg.norm(p["sternum"] - p["mid_hip"])),
            "clavicle": both("sternum", "gh"),
            "upper_arm": both("gh", "elbow"),
            "lower_arm": both("elbow", "wrist"),
        }

    @property
    def mass(self) -> float:
        """Total mass of all links [kg]."""
        return float(pin.computeTotalMass(self._full_model()))

    def anchored_model(self) -> pin.Model:
        """Return the model with a held anchor; its joint order may differ."""
        if self.base == FIXED:
            return self.model
        return build_model(self._tree, self.file, FIXED, self.anchor, self.X_world_root)

    def _full_model(self) -> pin.Model:
        free = pin.JointModelFreeFlyer()
        return self.model if self.base == FLOATING else self._tree.model(free)


# -------- Pinocchio model


def build_model(tree: UrdfTree, file: RobotFile, base: str, anchor: str, X_world_root: pin.SE3) -> pin.Model:
    """Build the pinocchio model, with tracked points as operational frames.

    Args:
        base: 'floating' frees the root; 'fixed' holds the anchor.
        X_world_root: root link in the neutral posture.

    Raises:
        RobotError: if pinocchio rejects the URDF.
    """
    try:
        if base == FLOATING:
            model = tree.model(pin.JointModelFreeFlyer())
        else:
            X_world_anchor = X_world_root * _pose_in_root(tree, file, anchor)
            model = placed_in_world(rooted_at(tree.bare(), anchor), X_world_anchor).model()
    except (ValueError, RuntimeError) as e:
        raise RobotError(f"{tree.where}: pinocchio cannot build a model: {first_line(e)}") from None
    for name, (link, xyz) in file.points.items():
        link_frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
        X = link_frame.placement * pin.SE3(np.eye(3), np.array(xyz))
        label, joint = point_label(name, tree), link_frame.parentJoint
        model.addFrame(
            pin.Frame(label, joint, model.getFrameId(link, pin.FrameType.BODY), X, pin.FrameType.OP_FRAME), False
        )
    return model


def joint_columns(data: pin.Data) -> np.ndarray:
    """Return `data.J` (6, nv), which pinocchio's bindings flatten for a single column."""
    J = data.J
    return J if J.ndim == 2 else J.reshape(6, 1)


def point_label(name: str, tree: UrdfTree) -> str:
    """Return the frame name of a tracked point, unlike all links and joints."""
    taken = {*tree.links, *(j.get("name") for j in tree.joints)}
    return f"point:{name}" if name in taken else name


def _pose_in_root(tree: UrdfTree, file: RobotFile, link: str) -> pin.SE3:
    model = tree.model()
    q = pin.neutral(model)
    for name, value in file.postures.get("neutral", {}).items():
        if model.existJointName(name):
            q[model.joints[model.getJointId(name)].idx_q] = value
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return (
        data.oMf[model.getFrameId(tree.root, pin.FrameType.BODY)].inverse()
        * data.oMf[model.getFrameId(link, pin.FrameType.BODY)]
    )


def mimicking_joints(tree: UrdfTree, index: Mapping[str, int]) -> list[tuple[int, int, float, float]]:
    """Return (follower, leader, multiplier, offset) with joint indices.

    Raises:
        UnknownNameError: if a leader is unknown.
    """
    out, joints = [], {j.get("name", "") for j in tree.joints}
    for joint in tree.joints:
        m = joint.find("mimic")
        if m is None:
            continue
        leader, follower = m.get("joint", ""), index.get(joint.get("name", ""))
        if leader not in joints:
            raise UnknownNameError("joint", leader, joints, hint=f"(mimicked by {joint.get('name')})")
        if follower is None or leader not in index:
            continue  # one is fixed
        out.append((follower, index[leader], float(m.get("multiplier", "1")), float(m.get("offset", "0"))))
    return out
