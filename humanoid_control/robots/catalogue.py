"""Loading of robots by name or path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from humanoid_control.errors import RobotError, UnknownNameError, nearest_names, shown
from humanoid_control.paths import share_dir
from humanoid_control.robots.description.mjcf import read_description
from humanoid_control.robots.description.robot_file import SCHEMA, RobotFile, read_robot_file
from humanoid_control.robots.description.urdf import UrdfTree
from humanoid_control.robots.humanoids import found_humanoids, humanoid_file, humanoids, laid_file
from humanoid_control.robots.names import CATALOGUE, HUMANOIDS, KNOWN, SETS
from humanoid_control.robots.robot import Robot


def load_robot(name_or_path: str | Path, base: str | None = None, guess: bool = False) -> Robot:
    """Load a robot of the catalogue, a model or a third-party humanoid by name, or a URDF or MJCF by path.

    The first use of a third-party humanoid fits shapes to its meshes, which takes minutes. Optional files next to
    `robot.urdf`: `robot.yaml`, `robot.volumes.yaml`, `robot.drives.yaml`, `robot.tendons.yaml`.

    Args:
        name_or_path: 'hrp2', or 'my_robot.urdf'.
        base: 'fixed' holds the anchor link, 'floating' frees the root; default: robot file.
        guess: guess a missing robot file, kept in the user's folder (`humanoid robots map`).

    Raises:
        UnknownNameError: if it is neither a known name nor a file.
        RobotError: if a file is invalid, or a model is not installed.
    """
    path = urdf_path(name_or_path)
    tree = read_description(path)
    robot = Robot(tree, _robot_file(str(name_or_path), path, tree, guess), base)
    robot.folder = path.resolve().parent
    volumes = volumes_path(path)
    robot.volumes = volumes if volumes.exists() else None
    drives = path.with_suffix(".drives.yaml")
    robot.drives = drives if drives.exists() else None
    tendons = path.with_suffix(".tendons.yaml")
    robot.tendons = tendons if tendons.exists() else None
    return robot


def _robot_file(name: str, path: Path, tree: UrdfTree, guess: bool) -> RobotFile:
    """Read the robot file, or create the one of a third-party humanoid."""
    beside = path.with_suffix(".yaml")
    if name in KNOWN or name not in humanoids():
        if beside.exists():
            return read_robot_file(beside)
        return read_robot_file(laid_file(path.stem, tree, path, _lay_shapes)) if guess else RobotFile()
    if beside.exists() and SCHEMA in beside.read_text(errors="replace"):
        own = read_robot_file(beside)
        title = own.title if own.title != tree.name else ""  # `humanoid robots map` writes the name of the URDF
        return replace(own, name=name, title=title or humanoids()[name].title)
    return humanoid_file(humanoids()[name], tree, path, _lay_shapes)


def _lay_shapes(model: Path, folder: Path) -> Path:
    from humanoid_control.robots.guess.robot_file import guess_robot_file  # slow import
    from humanoid_control.terminal import warn

    warn(f"fitting shapes to the meshes of {model.name}, only the first time: one to four minutes")
    return guess_robot_file(model, folder)[0]


def load_robots(
    names: Iterable[str | Path], base: str | None = None, imitate: bool = False, guess: bool = False
) -> list[Robot]:
    """Load several robots, each once.

    Args:
        names: names, paths, or SETS: 'all', 'dube2012', 'humanoids' (installed third-party models).
        imitate: require imitation points.

    Raises:
        UnknownNameError: if a name is unknown.
        RobotError: if one fails to load, two share a name, or none is given.
    """
    robots: list[Robot] = []
    found = robot_names(names)
    for one in found:  # fail before shapes are fitted, which may take minutes
        urdf_path(one)
    for one in found:
        robot = load_robot(one, base, guess)
        if any(robot.name == other.name for other in robots):
            raise RobotError(f"two robots are named '{robot.name}': give them in separate runs")
        if imitate:
            robot.require_imitation_points()
        robots.append(robot)
    if not robots:
        raise RobotError(f"no robot given: give names, paths of URDFs, or one of {', '.join(SETS)}")
    return robots


def robot_names(names: Iterable[str | Path]) -> list[str]:
    """Return names and paths, each once, with sets expanded."""
    found = (found_humanoids() if name == HUMANOIDS else SETS.get(name, (name,)) for name in map(str, names))
    return list(dict.fromkeys(one for several in found for one in several))


def catalogue_rows(names: Iterable[str] = CATALOGUE) -> list[dict[str, Any]]:
    """Return one row per robot.

    Returns:
        name, robot (title), height_m, mass_kg, joints, imitation, collision_shapes, collision_pairs; kind of provenance
            -> number of values.
    """
    robots = {name: load_robot(name) for name in names}
    return [
        {
            "name": name,
            "robot": r.title,
            "height_m": r.height,
            "mass_kg": round(r.mass, 1),
            "joints": r.n,
            "imitation": len(r.imitation_joints),
            "collision_shapes": len(r.shapes),
            "collision_pairs": len(r.pairs),
            **r.provenance,
        }
        for name, r in robots.items()
    ]


def urdf_path(name_or_path: str | Path) -> Path:
    """Return the URDF file of a catalogue name or path.

    Raises:
        UnknownNameError: if it is neither.
        RobotError: if the path is not a file.
    """
    text = str(name_or_path)
    if not text.strip():
        raise RobotError(f"no robot given: give the path of a URDF, or one of {', '.join(KNOWN)}")
    if text in KNOWN:
        return share_dir() / "urdf" / f"{text}.urdf"
    if text in humanoids():
        return humanoids()[text].path()
    try:
        path = Path(text).expanduser()
        if path.is_dir():
            raise RobotError(f"{path} is a folder: give the URDF file in it")
        if path.is_file():
            return path
        if path.exists():
            raise RobotError(f"{path} is a device or a pipe: give a URDF file")
    except (OSError, ValueError, RuntimeError) as e:  # too long; a null byte; ~ of an unknown user
        raise RobotError(
            f"'{shown(text)}' is not the path of a URDF file: {shown(getattr(e, 'strerror', None) or e)}"
        ) from None
    if path.suffix or "/" in text:
        near = sorted(p.name for p in path.parent.glob("*.urdf") if p.is_file()) if path.parent.is_dir() else []
        offer = f"; URDF files there: {', '.join(near[:5])}" if near else ""
        raise RobotError(f"URDF file not found: {path}{offer}")
    near = nearest_names(text, (*KNOWN, *humanoids()))
    raise UnknownNameError("robot", text, near or KNOWN, hint="(or give the path of a URDF)")


def volumes_path(name_or_path: str | Path) -> Path:
    """Return the path of a robot's swept-sphere volumes: `hrp2.urdf` -> `hrp2.volumes.yaml`.

    Raises:
        UnknownNameError: if the robot is unknown.
        RobotError: if the path is not a file.
    """
    return urdf_path(name_or_path).with_suffix(".volumes.yaml")
