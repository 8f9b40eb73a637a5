"""From a name or a path to a Robot."""

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
    """Load a robot of the catalogue, a model or a humanoid of others by name, or any robot from its URDF or MJCF.

    At the first use of a humanoid of others by its name, shapes are laid around its meshes, which takes minutes.
    Next to the URDF `robot.urdf` may lie a robot file `robot.yaml` (docs/adding_a_robot.md). Its swept-sphere volumes
    `robot.volumes.yaml` (docs/collision_volumes.md), its drives `robot.drives.yaml` and its tendons
    `robot.tendons.yaml` (docs/tendons.md) are read by who needs them.

    Args:
        name_or_path: 'hrp2', or 'my_robot.urdf'.
        base: 'fixed' holds the anchor link still, 'floating' frees the root; default: as in the robot file.
        guess: where no robot file lies beside a URDF or MJCF, one is guessed at the first use, as by
            `humanoid robots map`, and kept below the user's folder.

    Raises:
        UnknownNameError: not in the catalogue and not a file; the nearest names are offered.
        RobotError: the file is not a usable URDF, MJCF or robot file; the model of a humanoid is not on this machine.
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
    """The robot file next to a description; of a humanoid of others the one that is made for it."""
    beside = path.with_suffix(".yaml")
    if name in KNOWN or name not in humanoids():
        if beside.exists():
            return read_robot_file(beside)
        return read_robot_file(laid_file(path.stem, tree, path, _lay_shapes)) if guess else RobotFile()
    if beside.exists() and SCHEMA in beside.read_text(errors="replace"):
        own = read_robot_file(beside)
        title = own.title if own.title != tree.name else ""  # `humanoid robots map` writes the URDF's own name
        return replace(own, name=name, title=title or humanoids()[name].title)
    return humanoid_file(humanoids()[name], tree, path, _lay_shapes)


def _lay_shapes(model: Path, folder: Path) -> Path:
    from humanoid_control.robots.guess.robot_file import guess_robot_file  # slow to import, and seldom needed
    from humanoid_control.terminal import warn

    warn(f"laying shapes around the meshes of {model.name}, only this once: one to four minutes")
    return guess_robot_file(model, folder)[0]


def load_robots(
    names: Iterable[str | Path], base: str | None = None, imitate: bool = False, guess: bool = False
) -> list[Robot]:
    """Load several robots, each once.

    Args:
        names: of robots, paths of URDFs, names of SETS, which stand for several: 'all', 'dube2012', or 'humanoids':
            those of other makers with models on this machine.
        base, guess: as `load_robot`.
        imitate: make sure that they can: that they have the points that are tracked.

    Raises:
        UnknownNameError, RobotError: one of them cannot be loaded, two have the same name, or none is named.
    """
    robots: list[Robot] = []
    found = robot_names(names)
    for one in found:  # before the shapes of the first are laid, which may take minutes
        urdf_path(one)
    for one in found:
        robot = load_robot(one, base, guess)
        if any(robot.name == other.name for other in robots):
            raise RobotError(f"there are two robots called '{robot.name}': take them one after the other")
        if imitate:
            robot.require_imitation_points()
        robots.append(robot)
    if not robots:
        raise RobotError(f"no robot is named: give names, paths of URDFs, or one of {', '.join(SETS)}")
    return robots


def robot_names(names: Iterable[str | Path]) -> list[str]:
    """Names and paths, each once, with those of SETS and 'humanoids' in the place of the sets."""
    found = (found_humanoids() if name == HUMANOIDS else SETS.get(name, (name,)) for name in map(str, names))
    return list(dict.fromkeys(one for several in found for one in several))


def catalogue_rows(names: Iterable[str] = CATALOGUE) -> list[dict[str, Any]]:
    """One row a robot: size, number of joints, shapes and pairs, and where its numbers come from.

    Args:
        names: of CATALOGUE, MODELS or REFERENCES.

    Returns:
        name, robot (title), height_m, mass_kg, joints, imitation (joints that imitation moves), collision_shapes,
        collision_pairs; then kind of provenance -> number of values.
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
    """The URDF file of a catalogue name or a path.

    Raises:
        UnknownNameError: neither.
        RobotError: a path at which there is no file.
    """
    text = str(name_or_path)
    if not text.strip():
        raise RobotError(f"no robot is named: give the path of a URDF, or one of {', '.join(KNOWN)}")
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
            f"'{shown(text)}' is no path of a URDF file: {shown(getattr(e, 'strerror', None) or e)}"
        ) from None
    if path.suffix or "/" in text:
        near = sorted(p.name for p in path.parent.glob("*.urdf") if p.is_file()) if path.parent.is_dir() else []
        offer = f"; URDF files there: {', '.join(near[:5])}" if near else ""
        raise RobotError(f"there is no URDF file {path}{offer}")
    near = nearest_names(text, (*KNOWN, *humanoids()))
    raise UnknownNameError("robot", text, near or KNOWN, hint="(or give the path of a URDF)")


def volumes_path(name_or_path: str | Path) -> Path:
    """Path of a robot's swept-sphere volumes: next to its URDF, `hrp2.urdf` -> `hrp2.volumes.yaml`.

    Raises:
        UnknownNameError, RobotError: no such robot.
    """
    return urdf_path(name_or_path).with_suffix(".volumes.yaml")
