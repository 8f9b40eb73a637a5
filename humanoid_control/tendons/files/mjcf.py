"""Spatial tendons of MuJoCo models (MJCF), with bodies and joints as compiled by MuJoCo."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import EnvironmentProblem, HumanoidError, RobotError
from humanoid_control.files import FARTHEST
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import (
    CYLINDER,
    SPHERE,
    JointCoupling,
    Pulley,
    Tendon,
    TendonSet,
    Vec3,
    ViaPoint,
    Wrap,
    root_couplings,
)

NO_LIMIT = 1.0e3  # [rad, m] stands for "no limit"
EFFORT, SPEED = np.array([100.0]), np.array([3.0])  # joint limits, absent in MJCF
# Elements irrelevant to the paths; some refer to files that may be absent.
DROPPED = ("keys", "sensors", "actuators", "pairs", "excludes", "tuples", "skins", "flexes")
DROPPED_ASSETS = ("materials", "textures", "meshes", "hfields")


@dataclass(frozen=True)
class TendonModel:
    """Pinocchio model with inertias, armatures and damping, and the tendons on its links."""

    name: str
    model: pin.Model
    tendons: TendonSet

    def geometry(self, joints: Iterable[str] | None = None) -> TendonGeometry:
        """Return the geometry over some joints; default: all crossed."""
        return TendonGeometry(self.model, self.tendons, joints)


def read_mjcf(path: str | Path) -> TendonModel:
    """Read the bodies and spatial tendons of a MuJoCo model.

    Joint values are `qpos`, lengths `ten_length`. Fixed tendons, contacts and actuators are ignored. Masses come from
    <inertial> and solids; meshes weigh nothing. Of equalities only active <joint> elements count, as couplings.

    Raises:
        RobotError: if the model is invalid; names file and element.
        EnvironmentProblem: if MuJoCo is not installed.
    """
    path = Path(path)
    compiled = _Compiled(path)
    model = compiled.kinematics()
    tendons = compiled.tendons()
    if not tendons:
        raise RobotError(f"{path}: the model has no <spatial> tendons")
    return TendonModel(model.name, model, TendonSet(tuple(tendons), where=str(path), couplings=compiled.couplings()))


class _Compiled:
    """Compiled model: includes, defaults, frames, replicas and orientations are resolved."""

    def __init__(self, path: Path) -> None:
        try:
            import mujoco
        except ImportError:
            raise EnvironmentProblem(
                "reading a MuJoCo model needs the package mujoco: pip install 'humanoid_control[mujoco]'"
            ) from None
        if not path.is_file():
            raise RobotError(f"{path}: cannot be read as a MuJoCo model: file not found")
        self.where, self.mujoco = str(path), mujoco
        warn = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda text: None)  # avoids a MUJOCO_LOG.TXT in the working folder
        try:
            spec = mujoco.MjSpec.from_file(str(path))
            self._reduce(spec)
            self.name, self.m = spec.modelname, spec.compile()
        except ValueError as e:
            raise RobotError(f"{path}: MuJoCo does not read it: {' '.join(str(e).split())}") from None
        finally:
            mujoco.set_mju_user_warning(warn)
        m = self.m
        places = {"body": (m.body_pos, m.body_quat), "joint": (m.jnt_pos, m.jnt_axis), "site": (m.site_pos,)}
        places["geom"] = (m.geom_pos, m.geom_quat, m.geom_size)
        for kind, rows in places.items():
            values = np.hstack(rows)
            for k in np.flatnonzero(~(np.abs(values) <= FARTHEST).all(axis=1)):
                raise RobotError(
                    f"{path}: {kind} '{getattr(m, kind)(k).name}': its position is not finite, or beyond {FARTHEST:g} m"
                )
        bodies = (self.m.body(k) for k in range(self.m.nbody))
        self.bodies = [b.name or f"body_{b.id}" for b in bodies]

    def _reduce(self, spec: Any) -> None:
        """Delete elements irrelevant to tendons; keep every body and give massless bodies a mass."""
        for equality in list(spec.equalities):
            if equality.type != self.mujoco.mjtEq.mjEQ_JOINT or not equality.active:
                spec.delete(equality)
        solids = (self.mujoco.mjtGeom.mjGEOM_SPHERE, self.mujoco.mjtGeom.mjGEOM_CYLINDER)
        for kind in DROPPED:
            for element in list(getattr(spec, kind)):
                spec.delete(element)
        for geom in list(spec.geoms):
            if geom.meshname or geom.hfieldname or (geom.type not in solids and not geom.name):
                spec.delete(geom)
        for element in (*spec.geoms, *spec.sites, *spec.tendons):
            element.material = ""
        for kind in DROPPED_ASSETS:
            for element in list(getattr(spec, kind)):
                spec.delete(element)
        spec.compiler.boundmass, spec.compiler.boundinertia = 1e-3, 1e-6
        spec.compiler.fusestatic = spec.compiler.discardvisual = False

    def kinematics(self) -> pin.Model:
        """Return a pinocchio model with the bodies as links; the outermost is 'world'."""
        m, model = self.m, pin.Model()
        model.name = self.name
        at = [(0, pin.SE3.Identity())]  # per body: carrying joint, and pose in its frame
        model.addFrame(pin.Frame(self.bodies[0], 0, 0, at[0][1], pin.FrameType.BODY), False)
        for b in range(1, m.nbody):
            joint, X = at[m.body_parentid[b]]
            X = X * _pose(m.body_quat[b], m.body_pos[b])
            for k in range(m.body_jntnum[b]):
                joint, X = self._joint(model, joint, X, int(m.body_jntadr[b]) + k)
            at.append((joint, X))
            if joint:
                model.appendBodyToJoint(joint, self._inertia(b), X)
            model.addFrame(pin.Frame(self.bodies[b], joint, 0, X, pin.FrameType.BODY), False)
        for j in range(m.njnt):
            if m.jnt_type[j] in (self.mujoco.mjtJoint.mjJNT_HINGE, self.mujoco.mjtJoint.mjJNT_SLIDE):
                v, dof = model.joints[model.getJointId(self._name(j))].idx_v, m.jnt_dofadr[j]
                model.armature[v], model.damping[v] = m.dof_armature[dof], m.dof_damping[dof]
        return model

    def _inertia(self, b: int) -> pin.Inertia:
        m, X = self.m, _pose(self.m.body_iquat[b], self.m.body_ipos[b])
        about = X.rotation @ np.diag(m.body_inertia[b]) @ X.rotation.T
        return pin.Inertia(float(m.body_mass[b]), X.translation, about)

    def _name(self, j: int) -> str:
        body = int(self.m.jnt_bodyid[j])
        return self.m.joint(j).name or f"{self.bodies[body]}_joint_{j - int(self.m.body_jntadr[body])}"

    def _joint(self, model: pin.Model, parent: int, X: pin.SE3, j: int) -> tuple[int, pin.SE3]:
        """Add joint j; return its index and the body pose in its frame."""
        m, types = self.m, self.mujoco.mjtJoint
        name, kind = self._name(j), m.jnt_type[j]
        if kind == types.mjJNT_FREE:
            return model.addJoint(parent, pin.JointModelFreeFlyer(), X, name), pin.SE3.Identity()
        anchor = pin.SE3(np.eye(3), m.jnt_pos[j].copy())
        if kind == types.mjJNT_BALL:
            return model.addJoint(parent, pin.JointModelSpherical(), X * anchor, name), anchor.inverse()
        axis, reference = m.jnt_axis[j].copy(), float(m.qpos0[m.jnt_qposadr[j]])
        hinge = kind == types.mjJNT_HINGE
        turn = pin.AngleAxis(-reference, axis).matrix() if hinge else np.eye(3)
        back = pin.SE3(turn, np.zeros(3) if hinge else -reference * axis)
        low, high = m.jnt_range[j].tolist()
        if low > high:
            raise RobotError(f"{self.where}: joint '{name}': its range {low:g} .. {high:g} is empty")
        if not m.jnt_limited[j]:
            low, high = -NO_LIMIT, NO_LIMIT
        make = pin.JointModelRevoluteUnaligned if hinge else pin.JointModelPrismaticUnaligned
        limits = (np.array([low]), np.array([high]))
        index = model.addJoint(parent, make(*axis), X * anchor * back, name, EFFORT, SPEED, *limits)
        return index, anchor.inverse()

    def couplings(self) -> tuple[JointCoupling, ...]:
        """Return joint couplings q - q0 = a_0 + a_1 (x - x0) + ... + a_4 (x - x0)^4.

        Raises:
            RobotError: if a joint follows two others, or itself.
        """
        m, out = self.m, list[JointCoupling]()
        for e in range(m.neq):
            joint, master = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
            a, rest = m.eq_data[e, :5].copy(), float(m.qpos0[m.jnt_qposadr[joint]])
            if master < 0:
                out.append(JointCoupling(self._name(joint), "", (rest + float(a[0]),)))
                continue
            shifted = np.polynomial.Polynomial(a)(
                np.polynomial.Polynomial((-float(m.qpos0[m.jnt_qposadr[master]]), 1.0))
            )
            shifted += rest
            out.append(JointCoupling(self._name(joint), self._name(master), tuple(shifted.trim().coef.tolist())))
        try:
            root_couplings(out)
        except RobotError as error:
            raise RobotError(f"{self.where}: equality: {error}") from None
        return tuple(out)

    def tendons(self) -> list[Tendon]:
        """Return the spatial tendons, unnamed ones numbered."""
        m, found = self.m, list[Tendon]()
        for t in range(m.ntendon):
            first = int(m.tendon_adr[t])
            steps = range(first, first + int(m.tendon_num[t]))
            if any(m.wrap_type[w] == self.mujoco.mjtWrap.mjWRAP_JOINT for w in steps):
                continue
            name = m.tendon(t).name or f"tendon_{len(found)}"
            try:
                found.append(Tendon(name, tuple(self._step(w) for w in steps)))
            except HumanoidError as error:
                raise RobotError(f"{self.where}: spatial '{name}': {error}") from None
        return found

    def _step(self, w: int) -> ViaPoint | Wrap | Pulley:
        m, types = self.m, self.mujoco.mjtWrap
        kind, of = m.wrap_type[w], int(m.wrap_objid[w])
        if kind == types.mjWRAP_PULLEY:
            return Pulley(float(m.wrap_prm[w]))
        if kind == types.mjWRAP_SITE:
            return ViaPoint(self.bodies[m.site_bodyid[of]], _vec(m.site_pos[of]))
        body, side = self.bodies[m.geom_bodyid[of]], None
        if (site := int(m.wrap_prm[w])) >= 0:
            carrier = self.bodies[m.site_bodyid[site]]
            if carrier != body:
                raise RobotError(
                    f"the side site '{m.site(site).name}' is on body '{carrier}', its geom on '{body}'; "
                    "both must be on the same body"
                )
            side = _vec(m.site_pos[site])
        X = _pose(m.geom_quat[of], m.geom_pos[of])
        name = SPHERE if kind == types.mjWRAP_SPHERE else CYLINDER
        return Wrap(name, body, _vec(X.translation), float(m.geom_size[of, 0]), _vec(X.rotation[:, 2]), side)


def _pose(quat: np.ndarray, xyz: np.ndarray) -> pin.SE3:
    return pin.SE3(pin.Quaternion(*quat).matrix(), xyz.copy())


def _vec(x: np.ndarray) -> Vec3:
    return (float(x[0]), float(x[1]), float(x[2]))
