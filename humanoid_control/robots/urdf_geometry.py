"""Geometry of a robot's URDF, meshes included, for coal; other programs collide by it."""

from __future__ import annotations

from pathlib import Path

import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.meshes import find_mesh, load_mesh, mesh_unit
from humanoid_control.robots.description.urdf import UrdfTree, parse_urdf
from humanoid_control.robots.robot import Robot

TAGS = {"collision": pin.GeometryType.COLLISION, "visual": pin.GeometryType.VISUAL}


def urdf_geometry(robot: Robot, tag: str = "collision") -> pin.GeometryModel:
    """Return the geometry of a robot's URDF, one object a shape or mesh, without pairs.

    Args:
        tag: 'collision' or 'visual'.

    Raises:
        RobotError: if the geometry or a mesh file is missing or damaged.
    """
    tree = parse_urdf(robot.urdf, robot.name)
    if not list(tree.document.iterfind(f"link/{tag}")):
        raise RobotError(f"{robot.name}: its URDF has no {tag} geometry")
    _absolute_paths(tree, robot, tag)
    # pinocchio's loader crashes on some damaged files: read each in another process first.
    files = dict.fromkeys(Path(mesh.get("filename", "")) for mesh in tree.document.iter("mesh"))
    if (broken := next((f for f in files if load_mesh(f) is None), None)) is not None:
        raise RobotError(f"{robot.name}: the mesh file {broken} cannot be read: truncated or damaged?")
    return pin.buildGeomFromUrdfString(robot.model, tree.text(), TAGS[tag])


def _absolute_paths(tree: UrdfTree, robot: Robot, tag: str) -> None:
    """Make mesh paths absolute, and remove the geometry of the other tag."""
    for link in tree.document.findall("link"):
        for e in [e for other in TAGS if other != tag for e in link.findall(other)]:
            link.remove(e)
    for mesh in tree.document.iter("mesh"):
        name = mesh.get("filename", "")
        path = find_mesh(name, robot.folder) if robot.folder is not None else None
        if path is None:
            raise RobotError(f"{robot.name}: the mesh file {name} is not found from {robot.folder or 'nowhere'}")
        mesh.set("filename", str(path))
        if (unit := mesh_unit(path)) != 1.0:  # the loader ignores it
            scale = [float(x) * unit for x in mesh.get("scale", "1 1 1").split()]
            mesh.set("scale", " ".join(f"{x:.9g}" for x in scale))
