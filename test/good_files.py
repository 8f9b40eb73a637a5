"""A small good file of every kind that the package reads, with what reads it: material to be damaged."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.evaluation.bag import BagReader, BagWriter, typestore
from humanoid_control.evaluation.reaching import read_reach
from humanoid_control.evaluation.recorded_run import read_run
from humanoid_control.human.forces.force_plates import read_force_plates
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.human.models.marker_template import read_template
from humanoid_control.human.models.person_file import read_person_file
from humanoid_control.mocap import clean, find_body_points, load_clip
from humanoid_control.mocap.marker_sets import find_marker_set
from humanoid_control.multibody.model import from_pinocchio
from humanoid_control.robots import load_robot
from humanoid_control.robots.description.meshes import link_geometry
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.drive_mechanisms import mechanisms_of
from humanoid_control.robots.drives import drives_of
from humanoid_control.robots.self_collision import CollisionMonitor
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.tendons import load_mapping, read_cardsflow, read_mjcf, save_mapping
from humanoid_control.tendons.mappings.neural import fit_neural
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.mappings.table import build_table
from test.c3d_writer import c3d_file
from test.reference.straight_tendons import ARM_LENGTHS, LIMITS

URDF = """<?xml version="1.0"?>
<robot name="small">
  <link name="base_link"/>
  <link name="pelvis">
    <inertial><origin xyz="0 0 0.05" rpy="0 0 0.1"/><mass value="8.0"/>
      <inertia ixx="0.1" iyy="0.09" izz="0.05" ixy="0.001" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0"/><geometry><mesh filename="part.stl" scale="1 1 1"/></geometry></visual>
    <collision><origin xyz="0 0 0.1" rpy="0.1 0 0"/><geometry><box size="0.2 0.3 0.2"/></geometry></collision>
  </link>
  <joint name="root" type="fixed"><parent link="base_link"/><child link="pelvis"/><origin xyz="0 0 0.9"/></joint>
  {sides}
  <link name="head"><inertial><mass value="1.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>
    <collision name="ball"><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="neck" type="continuous"><parent link="pelvis"/><child link="head"/><origin xyz="0 0 0.6"/>
    <axis xyz="0 0 1"/><limit velocity="2" effort="5"/></joint>
  <link name="jaw"><inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>
  <joint name="jaw" type="revolute"><parent link="head"/><child link="jaw"/><axis xyz="0 1 0"/>
    <limit lower="-0.5" upper="0.5" velocity="1" effort="1"/></joint>
  <link name="lip"><inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>
  <joint name="lip" type="prismatic"><parent link="jaw"/><child link="lip"/><axis xyz="1 0 0"/>
    <limit lower="-0.1" upper="0.1" velocity="1" effort="1"/><mimic joint="jaw" multiplier="0.1" offset="0.01"/></joint>
</robot>
"""
SIDE = """<link name="S_thigh">
    <inertial><origin xyz="0 0 -0.2"/><mass value="3.0"/>
      <inertia ixx="0.05" iyy="0.05" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 -0.2"/><geometry><cylinder radius="0.05" length="0.3"/></geometry></collision>
  </link>
  <joint name="S_hip" type="revolute"><parent link="pelvis"/><child link="S_thigh"/><origin xyz="0 Y 0" rpy="0 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-1.5" upper="0.6" velocity="4" effort="80"/></joint>
  <link name="S_shank"><inertial><origin xyz="0 0 -0.2"/><mass value="2.0"/>
      <inertia ixx="0.03" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="S_knee" type="revolute"><parent link="S_thigh"/><child link="S_shank"/><origin xyz="0 0 -0.4"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="1.8" velocity="4" effort="80"/></joint>"""
ROBOT = """schema: humanoid_robot/1
name: small
title: A small robot
height: 1.6
base: fixed
anchor: pelvis
root_height: {neutral: 0.0}
root_rpy: [0, 0, 0]
postures: {neutral: {l_knee: 0.3, r_knee: 0.3}}
imitation_joints: [l_hip, r_hip]
optional_joints: [jaw]
meanings: {l_knee_flexion: l_knee}
points:
  mid_hip: {link: pelvis, xyz: [0, 0, 0]}
  l_wrist: {link: l_shank, xyz: [0, 0, -0.3]}
feet:
- {name: l, link: l_shank, x_min: -0.1, x_max: 0.1, y_min: -0.05, y_max: 0.05, z: -0.4}
collision:
- {name: belly, link: pelvis, shape: box, center: [0, 0, 0.1], size: [0.2, 0.3, 0.2], rpy: [0, 0, 0]}
- {name: l_leg, link: l_shank, shape: capsule, p0: [0, 0, 0], p1: [0, 0, -0.4], radius: 0.05}
- {name: r_leg, link: r_shank, shape: cylinder, p0: [0, 0, 0], p1: [0, 0, -0.4], radius: 0.05}
- {name: skull, link: head, shape: elliptic_capsule, top_center: [0, 0, 0.2], a: 0.1, b: 0.08, c: 0.05, l: 0.1}
- {name: chin, link: jaw, shape: ellipsoid, center: [0, 0, 0], semi_axes: [0.05, 0.06, 0.02]}
- {name: nose, link: head, shape: sphere, center: [0.1, 0, 0], radius: 0.02}
disabled_pairs:
- [skull, chin]
unwatched_links:
- [head, jaw]
"""
DRIVES = """schema: humanoid_drives/1
robot: small
motors:
- {name: big, torque_constant: 0.1, resistance: 0.5, inductance: 0.001, current_limit: 20, voltage_limit: 48,
   inertia: [1.0e-4, 8.0e-5]}
drives:
- name: l_knee
  kind: knee_screw
  joints: [l_knee]
  mirror: y
  motor: big
  lead: 0.005
  hinge: [-0.05, 0.0, -0.1]
  pivot: [-0.06, 0.0, -0.05]
  motor_counts: 4096
- name: l_hip
  kind: harmonic
  joints: [l_hip]
  motor: big
  axis: [0, 1, 0]
  ratio: 100
  elastic: {stiffness: 10000.0, damping: 5.0}
  friction: {coulomb: 0.01, viscous: 0.001, stiction: 0.02, load_share: 0.1}
  joint_counts: 65536
- {name: jaw, kind: four_bar, joints: [jaw], ratio: 50, crank: 0.03, coupler: 0.1, rocker: 0.03, ground: 0.1,
   crank_zero: 1.57, branch: 1}
"""
TENDONS = """schema: humanoid_tendons/1
robot: small
tendons:
- {name: l_quad, group: l_leg, mirror: y, min_tension: 5, max_tension: 300,
   points: [[pelvis, 0.05, 0.05, 0], {cylinder: l_thigh, centre: [0, 0, -0.4], axis: [0, 1, 0], radius: 0.03,
   side: [0.1, 0, -0.4]}, [l_shank, 0.03, 0, -0.1]]}
- {name: l_ham, group: l_leg, mirror: y, points: [[pelvis, -0.05, 0.05, 0], [l_thigh, -0.03, 0, -0.2], {pulley: 2},
   [l_thigh, -0.03, 0, -0.3], {sphere: l_thigh, centre: [0, 0, -0.4], radius: 0.03}, [l_shank, -0.03, 0, -0.1]]}
groups:
  l_leg: {own: [l_hip, l_knee]}
  r_leg: {own: [r_hip, r_knee], borrow: [], tendons: [r_quad]}
"""
VOLUMES = """schema: humanoid_ssv/1
robot: small
segments:
- name: l_thigh
  link: l_thigh
  mirror: y
  volumes:
  - {name: bone, type: line, radius: 0.065, vertices: [[0, 0, -0.05], [0, 0, -0.41]]}
  - {name: inner, type: point, radius: 0.07, vertices: [[0, -0.01, -0.2]], group: inside}
- name: head
  link: head
  volumes:
  - {name: face, type: triangle, radius: 0.03, vertices: [[0, 0, 0], [0, 0.1, 0.1], [0, -0.1, 0.1]], mirror: x}
pairs:
- [l_thigh:inside, r_thigh:inside]
- [head, l_thigh]
"""
MARKER_SET = """about: a set
landmarks:
  l_asis: [LASI]
  r_asis: [RASI]
  mid_psis: [[LPSI, RPSI], [SACR]]
points:
  l_hip: {rule: hip_centre}
  r_hip: {rule: hip_centre}
  sternum: [CLAV]
  l_shoulder: [LSHO]
  r_shoulder: [RSHO]
  l_elbow: [LELB]
  r_elbow: [RELB]
  l_wrist: [[LWRA, LWRB], [LWRI]]
  r_wrist: [[RWRA, RWRB]]
unused: [[T10]]
"""
MJCF = """<mujoco model="toy"><compiler angle="radian"/>
<default><default class="arm"><joint axis="0 1 0" range="-1 2"/></default></default>
<worldbody><site name="a" pos="0 0 .1"/>
  <body name="upper" childclass="arm"><joint name="elbow"/><geom name="g" type="cylinder" size=".02 .1"/>
    <site name="b" pos=".05 0 0"/><site name="s" pos="0 .1 0"/>
    <body name="lower" pos="0.2 0 0"><joint name="wrist" type="slide"/><site name="c" pos=".1 0 0"/></body></body>
</worldbody>
<equality><joint joint1="wrist" joint2="elbow" polycoef="0 0.1 0 0 0"/></equality>
<tendon><spatial name="t"><site site="a"/><geom geom="g" sidesite="s"/><site site="c"/></spatial>
  <spatial><site site="a"/><site site="b"/><pulley divisor="2"/><site site="b"/><site site="c"/></spatial></tendon>
</mujoco>"""
CARDSFLOW = """<?xml version="1.0" ?>
<cardsflow>
  <myoMuscle name="motor0" pid_control="1"><link name="pelvis"><viaPoint type="FIXPOINT">0.05 0.05 0</viaPoint></link>
    <link name="l_thigh"><viaPoint type="FIXPOINT">0.03 0 -0.3</viaPoint></link>
    <link name="l_shank"><viaPoint type="FIXPOINT">0.03 0 -0.1</viaPoint></link></myoMuscle>
  <myoMuscle name="motor1"><link name="pelvis"><viaPoint>-0.05 0.05 0</viaPoint></link>
    <link name="l_thigh"><viaPoint>-0.03 0 -0.3</viaPoint></link></myoMuscle>
</cardsflow>
"""
BODY = {
    "head": (0, 0, 1.7), "clavicle": (0.1, 0, 1.4), "LSHO": (0, 0.2, 1.45), "RSHO": (0, -0.2, 1.45),
    "LELB": (0, 0.25, 1.15), "RELB": (0, -0.25, 1.15), "LWRI": (0.1, 0.25, 0.9), "RWRI": (0.1, -0.25, 0.9),
    "LHIP": (0, 0.1, 0.9), "RHIP": (0, -0.1, 0.9), "LKNE": (0, 0.1, 0.5), "LANK": (0, 0.1, 0.1),
}  # fmt: skip
BONES = {
    "Hips": ("", (0, 0.9, 0)), "Head": ("Hips", (0, 0.7, 0)), "LeftArm": ("Hips", (0.2, 0.5, 0)),
    "LeftFoot": ("Hips", (0.1, -0.8, 0)), "RightFoot": ("Hips", (-0.1, -0.8, 0)),
}  # fmt: skip


PERSON = """schema: humanoid_person/1
name: two
sources: {lengths: nobody}
inertia:
  men: {thigh: [60, 41, 33, 33, 15], shank: [20, 45, 26, 25, 10]}
  women: {thigh: [60, 36, 37, 36, 16], shank: [20, 44, 27, 27, 9]}
bodies:
- {name: pelvis, size: leg, inertia: thigh, from: [0, 1, 0], to: [0, 0.6, 0]}
- {name: L1, size: leg}
- {name: tibia_r, size: leg, inertia: shank, from: [0, 0.5, 0.1], to: [0, 0.1, 0.1], portion: 0.5, along: y}
joints:
- body: pelvis
  parent: ground
  at: [0, 0.8, 0]
  turns: [[tilt, z], [list, x], [rotation, y]]
  moves: [[tx, x], [ty, y], [tz, z]]
- body: tibia_r
  parent: pelvis
  at: [0, 0.5, 0.1]
  turns: [[knee_r, -z], [turn_r, [0.1, 0.9, 0.1]]]
  slides: [{coordinate: knee_r, axis: x, stature: 1.8, rad: [-1, 0, 1], m: [0, 0.01, 0.03]}]
spine:
- {parent: pelvis, at: [0, 0.9, 0], length: 0.1, turns: [[bend, z]], levels: [[L1, 20, 1, [5]]]}
coordinates:
- {name: knee_r, range: [-10, 120], rest: 10, spread: 20}
- {name: turn_r, range: [-30, 30]}
- {name: bend, range: [-30, 30]}
landmarks:
  hip_r: {body: pelvis, at: [0, 0.6, 0.1], bone: true}
  ankle_r: {body: tibia_r, at: [0, 0.1, 0.1]}
"""
MARKERS = """schema: humanoid_markers/1
about: some markers
markers:
- [hip, RHIP, LHIP]
- [sacrum, SACR]
- {body: tibia, labels: [RTIB, LTIB]}
computed: [CentreOfMass]
computed_sides: [HJC]
"""


def use_person(path: Path) -> None:
    """A model of a person: built for both sexes, and placed."""
    file = read_person_file(path)
    for sex in ("men", "women"):
        person = file.build(1.7, 70.0, sex)
        _finite("poses", *person.body_poses(person.rest))


def _write(folder: Path, **files: str) -> None:
    """Texts by the name of their file, whose dots are written as __."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def _robot(folder: Path, **more: str) -> None:
    """The small robot `r.urdf`."""
    sides = "\n  ".join(SIDE.replace("S_", f"{s}_").replace("Y", y) for s, y in (("l", "0.1"), ("r", "-0.1")))
    _write(folder, r__urdf=URDF.format(sides=sides) if "{sides}" in URDF else URDF, **more)


def _body(frames: int = 6) -> np.ndarray:
    """Markers (T, M, 3) of a person who sways [m]."""
    at = np.array(list(BODY.values()), dtype=float)
    return at + 0.01 * np.arange(frames)[:, None, None]


def _c3d(folder: Path) -> None:
    """A C3D file of Intel reals: header, parameters, frames."""
    body = 1000 * _body()
    T, M, _ = body.shape

    def parameter(name: str, group: int, kind: int, dimensions: list[int], data: bytes) -> bytes:
        inside = struct.pack("<bB", kind, len(dimensions)) + bytes(dimensions) + data + b"\0"
        return struct.pack("<bb", len(name), group) + name.encode() + struct.pack("<H", len(inside) + 2) + inside

    labels = b"".join(name.encode().ljust(10) for name in BODY)
    section = struct.pack("<bb", 5, -1) + b"POINT" + struct.pack("<HB", 3, 0)
    section += parameter("USED", 1, 2, [], struct.pack("<h", M)) + parameter("RATE", 1, 4, [], struct.pack("<f", 100))
    section += parameter("FRAMES", 1, 2, [], struct.pack("<h", T)) + parameter("LABELS", 1, -1, [10, M], labels)
    section += parameter("UNITS", 1, -1, [2], b"mm") + b"\0\0"
    header = struct.pack("<BBHHHHHfHHf", 2, 0x50, M, 0, 1, T, 0, -1.0, 4, 0, 100.0)
    frames = np.concatenate([body, np.zeros((T, M, 1))], axis=2).astype("<f4").tobytes()
    parameters = bytes((1, 0x50, 2, 84)) + section
    (folder / "a.c3d").write_bytes(header.ljust(512, b"\0") + parameters.ljust(1024, b"\0") + frames)


def _plates(folder: Path) -> None:
    """A C3D file of one force plate."""
    corners = np.array([(500, 400, 0), (0, 400, 0), (0, 0, 0), (500, 0, 0)], dtype=float)
    parameters = {
        "ANALOG:UNITS": ["N"] * 3 + ["Nmm"] * 3,
        "FORCE_PLATFORM:USED": np.array([1]),
        "FORCE_PLATFORM:TYPE": np.array([2]),
        "FORCE_PLATFORM:CORNERS": corners.T[:, :, None],
        "FORCE_PLATFORM:ORIGIN": np.array([[0.0], [0.0], [-40.0]]),
        "FORCE_PLATFORM:CHANNEL": np.arange(1, 7)[:, None],
    }
    samples = np.outer(np.sin(np.arange(60) / 10) > 0, [10.0, 5, 700, 2000, 3000, 100])
    (folder / "a.c3d").write_bytes(c3d_file(samples, parameters))


def _loads(folder: Path) -> None:
    """Forces of OpenSim: a table and the file that says what is what."""
    names = [f"{what}{axis}" for what in ("f_v", "f_p", "t_") for axis in "xyz"]
    rows = ["\t".join(map(str, (k / 100, 10, 700 + k, 5, 0.1, 0, 0.2, 0, k, 0))) for k in range(30)]
    table = ["forces", "nRows=30", "nColumns=10", "endheader", "\t".join(["time", *names]), *rows]
    tags = {
        "applied_to_body": "calcn_r",
        "force_identifier": "f_v",
        "point_identifier": "f_p",
        "torque_identifier": "t",
    }
    force = "".join(f"<{tag}>{value}</{tag}>\n" for tag, value in tags.items())
    _write(
        folder,
        a__mot="\n".join(table),
        a__xml=f'<ExternalLoads name="x"><objects><ExternalForce name="r">\n{force}</ExternalForce></objects>\n'
        "<datafile>a.mot</datafile></ExternalLoads>",
    )


def use_wrenches(read: Callable[[Path], tuple[MeasuredWrench, ...]]) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        for wrench in read(path):
            wrench.zeroed().cut().center_of_pressure()

    return use


def _trc(folder: Path) -> None:
    body = 1000 * _body()
    lines = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    lines += [f"100\t100\t{len(body)}\t{len(BODY)}\tmm", "Frame#\tTime\t" + "\t\t\t".join(BODY), "\t\tX1\tY1\tZ1"]
    lines += [f"{k + 1}\t{k / 100}\t" + "\t".join(f"{v:.3f}" for v in row.ravel()) for k, row in enumerate(body)]
    _write(folder, a__trc="\n".join(lines) + "\n")


def _csv(folder: Path) -> None:
    lines = ["# unit: m", "time," + ",".join(f"{name}_{a}" for name in BODY for a in "xyz")]
    lines += [f"{k / 50}," + ",".join(f"{v:.4f}" for v in row.ravel()) for k, row in enumerate(_body())]
    _write(folder, a__csv="\n".join(lines) + "\n")


def _bvh(folder: Path) -> None:
    channels = "CHANNELS 3 Zrotation Xrotation Yrotation"
    lines = ["HIERARCHY", "ROOT Hips", "{", "OFFSET 0 90 0"]
    lines += ["CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"]
    for name, (_, at) in list(BONES.items())[1:]:
        lines += [f"JOINT {name}", "{", "OFFSET " + " ".join(str(100 * v) for v in at), channels]
        lines += ["End Site", "{", "OFFSET 0 10 0", "}", "}"]
    lines += ["}", "MOTION", "Frames: 5", "Frame Time: 0.01"]
    lines += [" ".join(f"{k + j / 10:.2f}" for j in range(3 + 3 * len(BONES))) for k in range(5)]
    _write(folder, a__bvh="\n".join(lines) + "\n")


def _asf_amc(folder: Path) -> None:
    lengths = {"spine": (0, 0.7, 0), "head": (0, 0.2, 0), "leg": (0, -0.8, 0), "foot": (0, 0, 0.1)}
    bones = "".join(
        f"  begin\n     id {k}\n     name {name}\n     direction {' '.join(map(str, at))}\n"
        f"     length {np.linalg.norm(at):.2f}\n     axis 0 0 20 XYZ\n    dof rx ry rz\n  end\n"
        for k, (name, at) in enumerate(lengths.items())
    )
    asf = f""":version 1.10
:units
  mass 1.0
  length 0.0254
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
{bones}:hierarchy
  begin
    root spine leg
    spine head
    leg foot
  end
"""
    frames = [f"{k}\nroot {k} 1 2 3 4 5\n" + "".join(f"{b} 1 {k} 3\n" for b in lengths) for k in range(1, 6)]
    _write(folder, a__asf=asf, a__amc=":FULLY-SPECIFIED\n:DEGREES\n" + "".join(frames))


def _smpl(folder: Path) -> None:
    turns = 0.01 * np.arange(6 * 66, dtype=float).reshape(6, 66) % 0.3
    motion = {"poses": turns, "trans": 0.01 * np.ones((6, 3)), "betas": np.zeros(10), "fps": 30.0}
    np.savez(folder / "a.npz", **motion)
    (folder / "a.pkl").write_bytes(pickle.dumps({"person": motion}))


def _gltf(folder: Path) -> None:
    from test.mocap.formats.test_gltf import person

    (folder / "a.glb").write_bytes(person().glb())
    scene = person()
    (folder / "a.gltf").write_bytes(scene.gltf("numbers.bin"))
    (folder / "numbers.bin").write_bytes(scene.numbers)


def _archive(folder: Path) -> None:
    _bvh(folder)
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "a.bvh", "a.bvh")
    (folder / "a.bvh").unlink()


def _heights(folder: Path) -> None:
    heights = 0.01 * np.arange(30.0).reshape(6, 5)
    np.savetxt(folder / "a.txt", heights)
    np.savez(folder / "a.npz", heights=heights, spacing=np.array([0.1, 0.1]), origin=np.array([0.0, -1.0]))


def _mappings(folder: Path) -> None:
    """A fitted mapping of each kind, as `save_mapping` writes them."""
    mappings = {
        "polynomial": fit_polynomial_on_grid(ARM_LENGTHS, (3, 3, 3, 3), 2),
        "neural": fit_neural(ARM_LENGTHS, random_postures(LIMITS, 100), 4, 10),
        "table": build_table(ARM_LENGTHS, random_postures(LIMITS, 50)),
    }
    for name, mapping in mappings.items():
        save_mapping(folder / f"{name}.npz", mapping)


def _stl(folder: Path) -> None:
    corners = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]], dtype="<f4")
    faces = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    rows = b"".join(np.zeros(3, "<f4").tobytes() + corners[list(f)].tobytes() + b"\0\0" for f in faces)
    (folder / "part.stl").write_bytes(b"solid".ljust(80) + struct.pack("<I", len(faces)) + rows)
    vertices = "".join(f"v {x:.2f} {y:.2f} {z:.2f}\n" for x, y, z in corners)
    _write(folder, part__obj=vertices + "".join("f " + " ".join(str(i + 1) for i in f) + "\n" for f in faces))


def _bag(folder: Path) -> None:
    """A bag of joint states, commands, targets, goals and diagnostics, a few of each."""
    store = typestore()
    t = {name.rpartition("/")[2]: cls for name, cls in store.types.items() if "/msg/" in name}
    bag = BagWriter(folder / "bag")
    joints = ["l_hip", "l_knee", "r_hip", "r_knee", "neck"]
    for topic in ("/joint_states", "/joint_commands"):
        bag.add_topic(topic, "sensor_msgs/msg/JointState")
    for topic in ("/targets", "/goals"):
        bag.add_topic(topic, "visualization_msgs/msg/MarkerArray", latched=True)
    bag.add_topic("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")

    def put(topic: str, k: int, message: Any) -> None:
        bag.write(topic, 10**9 + 10**7 * k, bytes(store.serialize_cdr(message, message.__msgtype__)))

    def marker(header: Any, name: str) -> Any:
        pose = t["Pose"](t["Point"](0.1, 0.2, 0.3), t["Quaternion"](0.0, 0.0, 0.0, 1.0))
        image = t["CompressedImage"](header, "", np.zeros(0, np.uint8))
        mesh = t["MeshFile"]("", np.zeros(0, np.uint8))
        size, color, stay = t["Vector3"](0.1, 0.1, 0.1), t["ColorRGBA"](1.0, 1.0, 1.0, 1.0), t["Duration"](1, 0)
        return t["Marker"](
            header, name, 1, 2, 0, pose, size, color, stay, False, [], [], "", image, [], "reachable", "", mesh, False
        )

    points = ("l_elbow", "r_elbow", "l_wrist", "r_wrist", "l_gh", "r_gh", "sternum", "l_hand", "r_hand")
    for k in range(8):
        header = t["Header"](t["Time"](1, 10**7 * k), "world")
        q = 0.01 * k + np.arange(5.0) / 10
        for topic in ("/joint_states", "/joint_commands"):
            put(topic, k, t["JointState"](header, joints, q, np.ones(5), np.zeros(0)))
        put("/targets", k, t["MarkerArray"]([marker(header, p) for p in points]))
        if k % 4 == 0:
            put("/goals", k, t["MarkerArray"]([marker(header, p) for p in points]))
            values = [t["KeyValue"]("rate", "100.0"), t["KeyValue"]("late", "3")]
            status = t["DiagnosticStatus"](0, "ik", "ok", "small", values)
            put("/diagnostics", k, t["DiagnosticArray"](header, [status]))
    bag.close()


# -------- What reads them


def _finite(what: str, *values: Any) -> None:
    for value in values:
        if not np.isfinite(np.asarray(value, dtype=float)).all():
            raise AssertionError(f"{what} of a file that was taken is not finite")


def use_robot(path: Path) -> None:
    """Load a robot and ask of it what its users do: a model, distances, another one of the room multibody."""
    robot = load_robot(path)
    low, high = robot.range_within(np.pi)
    _finite("limit", robot.velocity, robot.effort, low, high, robot.mass, *robot.postures.values())
    if not (robot.lower < robot.upper).all() or not (robot.velocity > 0).all():
        raise AssertionError("a limit of a robot that was taken is none")
    for joints in (robot.postures["neutral"], low + 0.3 * (high - low)):
        q = robot.q(robot.follow(np.array(joints)))
        _finite("centre of mass", robot.center_of_mass(q))
        _finite("point", robot.point_positions(q, robot.points))
        if np.isnan(robot.pair_distances(q)).any():
            raise AssertionError("a distance between shapes is no number")
    for follower, leader, multiplier, offset in robot.mimic:
        ends = multiplier * np.array([robot.lower[leader], robot.upper[leader]]) + offset
        if ends.min() < robot.lower[follower] - 1e-9 or ends.max() > robot.upper[follower] + 1e-9:
            raise AssertionError("a mimicking joint is led outside its limits")
    link_geometry(parse_urdf(robot.urdf, "r"), robot.folder, "visual")
    with contextlib.suppress(HumanoidError):  # bodies that cannot be are refused where they are simulated
        from_pinocchio(robot.model)


def use_drives(path: Path) -> None:
    robot = load_robot(path)
    drives_of(robot)
    mechanisms_of(robot)


def use_tendons(path: Path) -> None:
    geometry = tendon_geometry(load_robot(path))
    _finite("length", *geometry.raw(np.zeros((1, len(geometry.joint_names)))))


def use_volumes(path: Path) -> None:
    robot = load_robot(path)
    monitor = CollisionMonitor.of(robot, "volumes")
    if np.isnan(monitor.update(robot.q(), 10.0).distance).any():
        raise AssertionError("a distance between volumes is no number")


def use_clip(path: Path) -> None:
    clip = load_clip(path)
    if np.isinf(clip.positions).any() or not 0 < clip.rate < np.inf:
        raise AssertionError("a position or the rate of a clip that was taken is infinite")
    clip, _ = clean(clip)
    try:
        find_body_points(clip)
    except Exception as error:
        if "no marker set fits" not in str(error):
            raise


def use_mapping(path: Path) -> None:
    mapping = load_mapping(path)
    _finite("length", *mapping.evaluate(mapping.limits.mean(axis=1)[None]))


def use_heights(path: Path) -> None:
    ground = ground_of(f"file:path={path}")
    _finite("height", ground.height(0.1, 0.2))


def use_model(read: Callable[[Path], Any]) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        geometry = read(path).geometry()
        _finite("length", *geometry.raw(np.zeros((1, len(geometry.joint_names)))))

    return use


def use_bag(path: Path) -> None:
    """Read what `humanoid replay` reads, then what the reports do, which may find too little in it."""
    bag = BagReader(path)
    bag.rates()
    for _ in bag.messages(set(bag.topics)):
        pass
    bag.close()
    robot = load_robot(path.parent / "r.urdf")
    for read in (read_run, read_reach):
        try:
            read(path, robot)
        except ConfigError as error:
            if "\n" in str(error):
                raise AssertionError("more than one line") from error


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        make: writes good files into a folder.
        damaged: names of those to be damaged. asked: name of what is given to the reader.
        read: the reader, and something that uses what it gives.
    """

    make: Callable[[Path], None]
    damaged: tuple[str, ...]
    asked: str
    read: Callable[[Path], None]


def _robot_with(name: str, text: str, read: Callable[[Path], None]) -> FileKind:
    return FileKind(lambda folder: _robot(folder, **{name: text}), (name.replace("__", "."),), "r.urdf", read)


def _mesh(name: str) -> FileKind:
    def make(folder: Path) -> None:
        _robot(folder)
        _stl(folder)
        urdf = folder / "r.urdf"
        urdf.write_text(urdf.read_text().replace("part.stl", name))

    return FileKind(make, (name,), "r.urdf", use_robot)


def _cardsflow(folder: Path) -> None:
    _robot(folder)
    shutil.move(folder / "r.urdf", folder / "model.urdf")
    _write(folder, cardsflow__xml=CARDSFLOW)


def _bag_and_robot(folder: Path) -> None:
    _robot(folder)
    _bag(folder)


def _clip(make: Callable[[Path], None], *names: str) -> FileKind:
    return FileKind(make, names, names[-1], use_clip)


KINDS: dict[str, FileKind] = {
    "urdf": FileKind(_robot, ("r.urdf",), "r.urdf", use_robot),
    "robot": _robot_with("r__yaml", ROBOT, use_robot),
    "drives": _robot_with("r__drives__yaml", DRIVES, use_drives),
    "tendons": _robot_with("r__tendons__yaml", TENDONS, use_tendons),
    "volumes": _robot_with("r__volumes__yaml", VOLUMES, use_volumes),
    "stl": _mesh("part.stl"),
    "obj": _mesh("part.obj"),
    "marker set": FileKind(lambda f: _write(f, a__yaml=MARKER_SET), ("a.yaml",), "a.yaml", find_marker_set),
    "person": FileKind(lambda f: _write(f, a__yaml=PERSON), ("a.yaml",), "a.yaml", use_person),
    "markers": FileKind(lambda f: _write(f, a__yaml=MARKERS), ("a.yaml",), "a.yaml", read_template),
    "c3d": _clip(_c3d, "a.c3d"),
    "trc": _clip(_trc, "a.trc"),
    "csv": _clip(_csv, "a.csv"),
    "bvh": _clip(_bvh, "a.bvh"),
    "asf": _clip(_asf_amc, "a.asf", "a.amc"),
    "smpl": _clip(_smpl, "a.npz"),
    "pickle": _clip(_smpl, "a.pkl"),
    "glb": _clip(_gltf, "a.glb"),
    "gltf": _clip(_gltf, "numbers.bin", "a.gltf"),
    "archive": _clip(_archive, "a.zip"),
    "heights": FileKind(_heights, ("a.txt",), "a.txt", use_heights),
    "heights npz": FileKind(_heights, ("a.npz",), "a.npz", use_heights),
    "polynomial": FileKind(_mappings, ("polynomial.npz",), "polynomial.npz", use_mapping),
    "neural": FileKind(_mappings, ("neural.npz",), "neural.npz", use_mapping),
    "table": FileKind(_mappings, ("table.npz",), "table.npz", use_mapping),
    "mjcf": FileKind(lambda f: _write(f, a__xml=MJCF), ("a.xml",), "a.xml", use_model(read_mjcf)),
    "cardsflow": FileKind(_cardsflow, ("cardsflow.xml", "model.urdf"), "cardsflow.xml", use_model(read_cardsflow)),
    "wrenches c3d": FileKind(_plates, ("a.c3d",), "a.c3d", use_wrenches(read_force_plates)),
    "wrenches xml": FileKind(_loads, ("a.xml", "a.mot"), "a.xml", use_wrenches(read_loads)),
    "bag": FileKind(_bag_and_robot, ("bag/bag.mcap", "bag/metadata.yaml"), "bag", use_bag),
}
