"""Good files that describe a robot: URDF, robot file, drives, tendons, volumes, meshes; and what reads them."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from humanoid_control.errors import HumanoidError
from humanoid_control.multibody.model import from_pinocchio
from humanoid_control.robots import load_robot
from humanoid_control.robots.description.meshes import link_geometry
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.drive_mechanisms import mechanisms_of
from humanoid_control.robots.drives import drives_of
from humanoid_control.robots.self_collision import CollisionMonitor
from humanoid_control.robots.tendons import tendon_geometry
from test.good_files.kinds import FileKind, finite, write

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


def small_robot(folder: Path, **more: str) -> None:
    """The small robot `r.urdf`."""
    sides = "\n  ".join(SIDE.replace("S_", f"{s}_").replace("Y", y) for s, y in (("l", "0.1"), ("r", "-0.1")))
    write(folder, r__urdf=URDF.format(sides=sides) if "{sides}" in URDF else URDF, **more)


def _stl(folder: Path) -> None:
    corners = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]], dtype="<f4")
    faces = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    rows = b"".join(np.zeros(3, "<f4").tobytes() + corners[list(f)].tobytes() + b"\0\0" for f in faces)
    (folder / "part.stl").write_bytes(b"solid".ljust(80) + struct.pack("<I", len(faces)) + rows)
    vertices = "".join(f"v {x:.2f} {y:.2f} {z:.2f}\n" for x, y, z in corners)
    write(folder, part__obj=vertices + "".join("f " + " ".join(str(i + 1) for i in f) + "\n" for f in faces))


def use_robot(path: Path) -> None:
    """Load a robot and ask of it what its users do: a model, distances, another one of the room multibody."""
    robot = load_robot(path)
    low, high = robot.range_within(np.pi)
    finite("limit", robot.velocity, robot.effort, low, high, robot.mass, *robot.postures.values())
    if not (robot.lower < robot.upper).all() or not (robot.velocity > 0).all():
        raise AssertionError("a limit of a robot that was taken is none")
    for joints in (robot.postures["neutral"], low + 0.3 * (high - low)):
        q = robot.q(robot.follow(np.array(joints)))
        finite("centre of mass", robot.center_of_mass(q))
        finite("point", robot.point_positions(q, robot.points))
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
    finite("length", *geometry.raw(np.zeros((1, len(geometry.joint_names)))))


def use_volumes(path: Path) -> None:
    robot = load_robot(path)
    monitor = CollisionMonitor.of(robot, "volumes")
    if np.isnan(monitor.update(robot.q(), 10.0).distance).any():
        raise AssertionError("a distance between volumes is no number")


def _robot_with(name: str, text: str, read: Callable[[Path], None]) -> FileKind:
    return FileKind(lambda folder: small_robot(folder, **{name: text}), (name.replace("__", "."),), "r.urdf", read)


def _mesh(name: str) -> FileKind:
    def make(folder: Path) -> None:
        small_robot(folder)
        _stl(folder)
        urdf = folder / "r.urdf"
        urdf.write_text(urdf.read_text().replace("part.stl", name))

    return FileKind(make, (name,), "r.urdf", use_robot)


ROBOT_KINDS: dict[str, FileKind] = {
    "urdf": FileKind(small_robot, ("r.urdf",), "r.urdf", use_robot),
    "robot": _robot_with("r__yaml", ROBOT, use_robot),
    "drives": _robot_with("r__drives__yaml", DRIVES, use_drives),
    "tendons": _robot_with("r__tendons__yaml", TENDONS, use_tendons),
    "volumes": _robot_with("r__volumes__yaml", VOLUMES, use_volumes),
    "stl": _mesh("part.stl"),
    "obj": _mesh("part.obj"),
}
