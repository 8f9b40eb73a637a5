"""Robot description as a checked URDF tree, from URDF or from MJCF through MuJoCo's own parser.

A body becomes a link in its own frame. Its joints j, about anchors p_j and axes a_j in the body frame with references
q0_j, become a chain of URDF joints and massless links:

    X_parent_body(q) = X_parent_body Prod_j T(p_j) Rot(a_j, q_j - q0_j) T(-p_j).

Joints coupled by an equality become mimic joints.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.documents import parse_xml, read_xml_text
from humanoid_control.errors import RobotError, first_few, first_line, shown
from humanoid_control.files import why
from humanoid_control.robots.description.meshes import in_confines
from humanoid_control.robots.description.urdf import UrdfTree, parse_urdf

SPEED = 10.0  # [rad/s] of every joint, since MJCF has no speed limits; a dancer's arms reach it
STRAIGHT = 1e-9  # larger coefficients of second and higher order make a coupling nonlinear
LIGHT = 1e-6  # [kg, kg m^2] of bodies that lose their mass with a missing mesh: MuJoCo requires a mass
SAMPLES = 50  # of a nonlinear coupling, for its linear fit
FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(2, 8)  # mjtGeom
NEEDED = "reading MJCF needs MuJoCo: pip install 'humanoid_control[mujoco]' (or pip install mujoco)"


def read_description(path: Path) -> UrdfTree:
    """Read a URDF or MJCF, recognised by content.

    Raises:
        RobotError: as `parse_urdf` and `read_mjcf`.
    """
    try:
        text = read_xml_text(path)
    except (OSError, UnicodeDecodeError) as e:
        raise RobotError(f"{path}: cannot be read as a URDF: {why(e)}") from None
    return read_mjcf(path) if is_mjcf(text) else parse_urdf(text, str(path))


def is_mjcf(text: str) -> bool:
    """Return whether the outermost element is <mujoco>."""
    at, end = 0, len(text)
    while (at := text.find("<", at)) >= 0:
        if text.startswith("<!--", at):
            at = text.find("-->", at) if "-->" in text[at:] else end
        elif text[at + 1 : at + 2] not in ("?", "!"):
            return text[at + 1 : at + 7] == "mujoco" and not text[at + 7 : at + 8].isalpha()
        at += 1
    return False


def read_mjcf(path: Path) -> UrdfTree:
    """Read the robot of an MJCF file: the body in the world with the most joints.

    Scenery and a free joint are dropped; ball joints become three hinges. Notes report losses.

    Raises:
        RobotError: if MuJoCo is missing or rejects the file, no body has joints, or an inner joint is free.
    """
    try:
        import mujoco
    except ImportError:
        raise RobotError(f"{path}: {NEEDED}") from None
    notes: list[str] = []
    warn = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)  # else MuJoCo writes MUJOCO_LOG.TXT
    try:
        spec = _spec_of(mujoco, path)
        _drop_missing_meshes(spec, path, notes)
        _drop_scenery(spec)
        model = _compiled(spec, path, notes)
    except (ValueError, RuntimeError, FileNotFoundError, mujoco.FatalError) as e:
        raise RobotError(f"{path}: MuJoCo cannot read it: {shown(first_line(e))}") from None
    finally:
        mujoco.set_mju_user_warning(warn)
    reader = _MjcfReader(mujoco, model, path, notes)
    tree = parse_urdf(ET.tostring(reader.document(), encoding="unicode"), str(path))
    return replace(tree, notes=(*notes, *tree.notes))


def _spec_of(mujoco: Any, path: Path) -> Any:
    """Parse the document; MuJoCo's parser accepts only UTF-8 and gives poor XML errors."""
    try:
        return mujoco.MjSpec.from_file(str(path))
    except ValueError as e:
        if "XML parse error" not in str(e):
            raise
    text = read_xml_text(path)
    parse_xml(text, str(path), "an MJCF file")
    spec = mujoco.MjSpec.from_string(re.sub(r"\A\s*<\?xml.*?\?>", "", text, count=1, flags=re.DOTALL))
    spec.modelfiledir = str(path.parent)
    return spec


def _compiled(spec: Any, path: Path, notes: list[str]) -> Any:
    """Compile the model; MuJoCo balances impossible inertias, with a note."""
    try:
        return spec.compile()
    except ValueError as e:
        if "balanceinertia" not in str(e):
            raise
        spec.compiler.balanceinertia = True
        model = spec.compile()
        notes.append(f"{path}: contains physically impossible inertias; MuJoCo's balanced ones are used")
        return model


def _drop_missing_meshes(spec: Any, path: Path, notes: list[str]) -> None:
    """Remove missing meshes and their geoms, which MuJoCo would reject."""
    folder = path.resolve().parent / (spec.meshdir or "")
    files = [(m, folder / _plain(m.file, spec)) for m in spec.meshes if m.file]
    missing = [m for m, file in files if not (file.is_file() and in_confines(file, path.parent))]
    missing = [m for m in missing if m.file not in spec.assets]
    if not missing:
        return
    names = {m.name or Path(m.file).stem for m in missing}
    weighed = []
    for geom in [g for g in spec.geoms if g.meshname in names]:
        if not geom.parent.explicitinertial:
            weighed.append(geom.parent.name)
        spec.delete(geom)
    for mesh in missing:
        spec.delete(mesh)
    text = f"{path}: mesh files not found: {first_few(sorted(names))}; their geometry is left out"
    if weighed:
        spec.compiler.boundmass, spec.compiler.boundinertia = LIGHT, LIGHT
        text += f", nor the mass of {first_few(sorted(set(weighed)))}"
    notes.append(text)


def _drop_scenery(spec: Any) -> None:
    """Remove scene elements, which may refer to missing files or bodies."""
    for kind in ("keys", "sensors", "pairs", "excludes", "skins", "hfields", "textures"):
        for element in list(getattr(spec, kind)):
            if kind == "hfields":
                for geom in [g for g in spec.geoms if g.hfieldname == element.name]:
                    spec.delete(geom)
            spec.delete(element)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)


def _plain(file: str, spec: Any) -> str:
    return Path(file).name if getattr(spec, "strippath", False) else file


class _MjcfReader:
    """Conversion of one robot in a compiled MuJoCo model to a <robot> element."""

    def __init__(self, mujoco: Any, model: Any, path: Path, notes: list[str]) -> None:
        self.mujoco, self.m, self.path, self.notes = mujoco, model, path.resolve(), notes
        self.where = str(path)
        self._taken: set[str] = set()
        bodies, joints = range(model.nbody), range(model.njnt)
        self.root = self._robot()
        self.below = [b for b in bodies if b > 0 and self._top(b) == self.root]
        named = [(b, model.body(b).name or f"body_{b}") for b in self.below]
        self.link = {b: self._free_name(name) for b, name in named}
        self._taken.clear()
        own = [j for j in joints if model.jnt_bodyid[j] in self.link]
        self.joint = {j: self._free_name(model.joint(j).name or f"joint_{j}") for j in own}
        self.effort = {j: self._effort(j) for j in own}
        self.couplings = self._couplings()

    def document(self) -> ET.Element:
        """Return the element <robot>.

        Raises:
            RobotError: if an inner joint is free.
        """
        name = bytes(self.m.names).split(b"\0")[0].decode(errors="replace")
        robot = ET.Element("robot", name=self.path.stem if name in ("", "MuJoCo Model") else name)
        for b in self.below:
            joints = self._joints_of(b)
            free = [j for j in joints if self.m.jnt_type[j] == FREE]
            if free and b != self.root:
                raise RobotError(f"{self.where}: joint '{self.joint[free[0]]}' is free inside the robot")
            moving = [j for j in joints if self.m.jnt_type[j] != FREE]
            if b == self.root and not moving:
                robot.append(self._link(b))
                continue
            if b == self.root:
                ET.SubElement(robot, "link", name="world")
            self._attach(robot, b, moving)
        return robot

    # -- which bodies

    def _top(self, body: int) -> int:
        while self.m.body_parentid[body] != 0:
            body = int(self.m.body_parentid[body])
        return body

    def _robot(self) -> int:
        count: dict[int, int] = {}
        for body in range(1, self.m.nbody):
            count[self._top(body)] = count.get(self._top(body), 0) + int(self.m.body_jntnum[body])
        best = max(count, key=lambda b: count[b], default=0)
        if not best or not count[best]:
            raise RobotError(f"{self.where}: contains no body with joints")
        others = [self.m.body(b).name or f"body_{b}" for b in count if b != best and count[b] > 1]
        if others:
            self.notes.append(f"{self.where}: only the body with the most joints is read, not {first_few(others)}")
        return best

    def _joints_of(self, body: int) -> list[int]:
        first, count = int(self.m.body_jntadr[body]), int(self.m.body_jntnum[body])
        return list(range(first, first + count)) if count else []

    def _free_name(self, name: str) -> str:
        out = next(n for k in range(1, 10**6) if (n := name if k == 1 else f"{name}_{k}") not in self._taken)
        self._taken.add(out)
        return out

    # -- joints

    def _attach(self, robot: ET.Element, body: int, joints: list[int]) -> None:
        """Append the body's link, and joints and massless links to its parent."""
        parent = "world" if body == self.root else self.link[int(self.m.body_parentid[body])]
        X = _pose(self.m.body_pos[body], self.m.body_quat[body])
        if not joints:
            robot.append(self._link(body))
            robot.append(_joint(f"{self.link[body]}_fixed", "fixed", parent, self.link[body], X))
            return
        steps = [step for j in joints for step in self._turns(j)]
        for k, (name, j, axis, anchor, q0) in enumerate(steps):
            last = k == len(steps) - 1 and not anchor.any()
            child = self.link[body] if last else f"{self.link[body]}__{name}"
            slides = self.m.jnt_type[j] == SLIDE
            back = pin.SE3(np.eye(3), -q0 * axis) if slides else pin.SE3(pin.exp3(-q0 * axis), np.zeros(3))
            X = X * pin.SE3(np.eye(3), anchor) * back
            if not last:
                ET.SubElement(robot, "link", name=child)
            else:
                robot.append(self._link(body))
            element = _joint(name, "prismatic" if slides else "revolute", parent, child, X)
            ET.SubElement(element, "axis", xyz=_numbers(axis))
            self._limit(element, j)
            robot.append(element)
            parent, X = child, pin.SE3(np.eye(3), -anchor)
        if parent != self.link[body]:
            robot.append(self._link(body))
            robot.append(_joint(f"{self.link[body]}_fixed", "fixed", parent, self.link[body], X))

    def _turns(self, j: int) -> list[tuple[str, int, np.ndarray, np.ndarray, float]]:
        """Return name, joint, axis (3,), anchor (3,) in the body frame, reference of each hinge or slide of a joint."""
        anchor = np.where(np.abs(self.m.jnt_pos[j]) > 1e-12, self.m.jnt_pos[j], 0.0)
        if self.m.jnt_type[j] != BALL:
            q0 = float(self.m.qpos0[self.m.jnt_qposadr[j]])
            return [(self.joint[j], j, np.array(self.m.jnt_axis[j]), anchor, q0)]
        self.notes.append(f"{self.where}: ball joint '{self.joint[j]}' is converted to three hinges about x, y and z")
        return [(f"{self.joint[j]}_{n}", j, axis, anchor, 0.0) for n, axis in zip("xyz", np.eye(3), strict=True)]

    def _limit(self, element: ET.Element, j: int) -> None:
        low, high = self.m.jnt_range[j] if self.m.jnt_limited[j] else (-np.inf, np.inf)
        if self.m.jnt_type[j] == BALL:
            high = high if self.m.jnt_limited[j] else np.pi
            low = -high
        if self.m.jnt_type[j] in (HINGE, SLIDE) and j in self.couplings:
            leader, multiplier, offset = self.couplings[j]
            if leader is None:
                low = high = offset
            else:
                mimic = {"joint": self.joint[leader], "multiplier": repr(multiplier), "offset": repr(offset)}
                ET.SubElement(element, "mimic", mimic)
        numbers = {"lower": low, "upper": high, "velocity": SPEED, "effort": self.effort[j]}
        ET.SubElement(element, "limit", {key: repr(float(v)) for key, v in numbers.items()})

    def _effort(self, j: int) -> float:
        """Return the largest actuator effort of a joint [N, N m]; 0 if unknown."""
        m, mj, out = self.m, self.mujoco, []
        if m.jnt_actfrclimited[j]:
            out.append(float(np.abs(m.jnt_actfrcrange[j]).max()))
        kinds = (int(mj.mjtTrn.mjTRN_JOINT), int(mj.mjtTrn.mjTRN_JOINTINPARENT))
        for a in (a for a in range(m.nu) if m.actuator_trntype[a] in kinds and m.actuator_trnid[a, 0] == j):
            gear = abs(float(m.actuator_gear[a, 0]))
            if m.actuator_forcelimited[a]:
                out.append(gear * float(np.abs(m.actuator_forcerange[a]).max()))
            motor = m.actuator_biastype[a] == int(mj.mjtBias.mjBIAS_NONE)
            if motor and m.actuator_gaintype[a] == int(mj.mjtGain.mjGAIN_FIXED) and m.actuator_ctrllimited[a]:
                out.append(gear * float(np.abs(m.actuator_ctrlrange[a]).max() * abs(m.actuator_gainprm[a, 0])))
        return min((v for v in out if v > 0), default=0.0)

    def _couplings(self) -> dict[int, tuple[int | None, float, float]]:
        """Return joint -> (leader, multiplier, offset) of joint equalities; without leader: fixed at the offset.

        y - y0 = a0 + a1 (x - x0) + ... with references x0 and y0; nonlinear couplings are linearised by least squares.
        """
        m, mj = self.m, self.mujoco
        out: dict[int, tuple[int | None, float, float]] = {}
        loops = 0
        for e in range(m.neq):
            if not m.eq_active0[e]:
                continue
            if m.eq_type[e] != int(mj.mjtEq.mjEQ_JOINT):
                loops += m.eq_type[e] in (int(mj.mjtEq.mjEQ_CONNECT), int(mj.mjtEq.mjEQ_WELD))
                continue
            y, x = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
            if y not in self.joint or y in out or (x >= 0 and x not in self.joint):
                continue
            a, y0 = np.array(m.eq_data[e, :5]), float(m.qpos0[m.jnt_qposadr[y]])
            if x < 0:
                out[y] = (None, 0.0, y0 + float(a[0]))
                continue
            x0 = float(m.qpos0[m.jnt_qposadr[x]])
            if np.abs(a[2:]).max() > STRAIGHT:
                a = self._straight(a, y, x)
            out[y] = (x, float(a[1]), y0 + float(a[0] - a[1] * x0))
        if loops:
            self.notes.append(
                f"{self.where}: {loops} loop(s) closed by connect or weld are ignored: their joints move freely"
            )
        return out

    def _straight(self, a: np.ndarray, y: int, x: int) -> np.ndarray:
        low, high = self.m.jnt_range[x] if self.m.jnt_limited[x] else (-np.pi, np.pi)
        t = np.linspace(low, high, SAMPLES) - self.m.qpos0[self.m.jnt_qposadr[x]]
        bent = np.polynomial.polynomial.polyval(t, a)
        slope, start = np.polyfit(t, bent, 1)
        off = float(np.abs(start + slope * t - bent).max())
        self.notes.append(
            f"{self.where}: joint '{self.joint[y]}' follows '{self.joint[x]}' nonlinearly; its linear approximation "
            f"is off by up to {off:.2g} rad"
        )
        return np.array([start, slope, 0.0, 0.0, 0.0])

    # -- links

    def _link(self, body: int) -> ET.Element:
        link, m = ET.Element("link", name=self.link[body]), self.m
        if m.body_mass[body] > 0:
            R = _pose(np.zeros(3), m.body_iquat[body]).rotation
            tensor = R @ np.diag(m.body_inertia[body]) @ R.T
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "origin", xyz=_numbers(m.body_ipos[body]))
            ET.SubElement(inertial, "mass", value=repr(float(m.body_mass[body])))
            entries = {f"i{'xyz'[i]}{'xyz'[j]}": repr(float(tensor[i, j])) for i in range(3) for j in range(i, 3)}
            ET.SubElement(inertial, "inertia", entries)
        for g in np.flatnonzero(m.geom_bodyid == body):
            shape = self._geometry(int(g))
            if shape is None:
                continue
            X, geometry = shape
            collides = m.geom_contype[g] or m.geom_conaffinity[g]
            element = ET.SubElement(link, "collision" if collides else "visual")
            if collides and m.geom(g).name:
                element.set("name", m.geom(g).name)
            element.append(_origin(X))
            ET.SubElement(element, "geometry").append(geometry)
        return link

    def _geometry(self, g: int) -> tuple[pin.SE3, ET.Element] | None:
        m, kind, size = self.m, int(self.m.geom_type[g]), self.m.geom_size[g]
        X = _pose(m.geom_pos[g], m.geom_quat[g])
        radius, half = float(size[0]), float(size[1])
        if kind == SPHERE:
            return X, ET.Element("sphere", radius=repr(radius))
        if kind in (CAPSULE, CYLINDER):  # along z
            tag = "capsule" if kind == CAPSULE else "cylinder"
            return X, ET.Element(tag, radius=repr(radius), length=repr(2 * half))
        if kind == BOX:
            return X, ET.Element("box", size=_numbers(2 * size))
        if kind == ELLIPSOID:
            return _capsule_around(X, size)
        if kind != MESH:
            return None
        # MuJoCo stores vertices v of a file as T^-1 (s v), with the pose T of the mesh's inertia.
        k = int(m.geom_dataid[g])
        at = int(m.mesh_pathadr[k])
        file = bytes(m.paths)[at:].split(b"\0")[0].decode(errors="replace") if at >= 0 else ""
        if not file:
            return None
        X = X * _pose(m.mesh_pos[k], m.mesh_quat[k]).inverse()
        name = f"file://{(Path.cwd() / file).resolve()}"
        return X, ET.Element("mesh", filename=name, scale=_numbers(m.mesh_scale[k]))


def _pose(xyz: np.ndarray, wxyz: np.ndarray) -> pin.SE3:
    return pin.SE3(pin.Quaternion(*(float(v) for v in wxyz)).normalized().matrix(), np.array(xyz))


def _capsule_around(X: pin.SE3, radii: np.ndarray) -> tuple[pin.SE3, ET.Element]:
    """Return a capsule along an ellipsoid's longest axis: its middle radius, its ends."""
    order = np.argsort(radii)
    _, middle, longest = (float(radii[k]) for k in order)
    R = np.eye(3)[:, order]
    R[:, 0] *= np.linalg.det(R)
    return X * pin.SE3(R, np.zeros(3)), ET.Element("capsule", radius=repr(middle), length=repr(2 * (longest - middle)))


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(v)) for v in values)


def _origin(X: pin.SE3) -> ET.Element:
    return ET.Element("origin", xyz=_numbers(X.translation), rpy=_numbers(pin.rpy.matrixToRpy(X.rotation)))


def _joint(name: str, kind: str, parent: str, child: str, X: pin.SE3) -> ET.Element:
    joint = ET.Element("joint", name=name, type=kind)
    joint.append(_origin(X))
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    return joint
