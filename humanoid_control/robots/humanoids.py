"""Third-party humanoids: locations of their models on this machine, and their robot files.

`config/robots/models.yaml` names them; `config/robots/NAME.yaml` holds points, soles and joints. Collision shapes are
fitted to the meshes at first use and kept in the user's folder. Models are never downloaded.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem, RobotError
from humanoid_control.files import check_keys, check_row, list_of, mapping_of, schema_file, text
from humanoid_control.paths import home_dir, share_dir, state_dir
from humanoid_control.robots.description.robot_file import RobotFile, read_robot_file
from humanoid_control.robots.description.urdf import UrdfTree

SCHEMA = "humanoid_models/1"
MODELS_VARIABLE = "HUMANOID_MODELS"
GUESS = "1"  # increment when the fit changes, to refit kept shapes
LAID = ("collision", "collision_from", "disabled_pairs", "unwatched_links")  # fields that depend on the meshes


@dataclass(frozen=True)
class Humanoid:
    """Humanoid with a third-party model.

    Attributes:
        files: (repository or package, path in it); the first found is used.
        get: command to install the first.
        robot_file: written part, or None.
    """

    name: str
    title: str
    files: tuple[tuple[str, str], ...]
    get: str
    robot_file: Path | None

    def find(self) -> Path | None:
        """Return the model's file, or None."""
        return next((found for place, path in self.files if (found := find_in(place, path)) is not None), None)

    def path(self) -> Path:
        """Return the model's file.

        Raises:
            RobotError: if missing; names the command.
        """
        found = self.find()
        if found is None:
            rest = f", and set {MODELS_VARIABLE} to the folder that it is in" if "git clone" in self.get else ""
            raise RobotError(f"the model of {self.title} ('{self.name}') is not on this machine: {self.get}{rest}")
        return found


@cache
def humanoids() -> dict[str, Humanoid]:
    """Return the humanoids of config/robots/models.yaml by name.

    Raises:
        RobotError: if the file is invalid.
    """
    folder = share_dir() / "config" / "robots"
    path = folder / "models.yaml"
    where = str(path)
    d = schema_file(path, SCHEMA, "list of models")
    check_keys(d, ("schema", "models"), ("models",), where)
    out = {}
    for name, row in mapping_of(d, "models", where).items():
        at, keys = f"{where}: {name}", ("title", "files", "get")
        check_row(row, keys, at)
        check_keys(row, keys, keys, at)
        files = tuple((place, str(file)) for one in list_of(row, "files", at) for place, file in one.items())
        own = folder / f"{name}.yaml"
        out[name] = Humanoid(name, text(row, "title", at), files, text(row, "get", at), own if own.is_file() else None)
    return out


def found_humanoids() -> list[str]:
    """Return the names of installed humanoids."""
    return [name for name, humanoid in humanoids().items() if humanoid.find() is not None]


# -------- Where models lie


def find_in(place: str, path: str) -> Path | None:
    """Return a file of a repository or package on this machine, or None.

    Folders in $HUMANOID_MODELS may be named after the place, also `owner+name` or `name-main`.
    """
    return next((p for p in _places(place, path) if p.is_file()), None)


def _places(place: str, path: str) -> Iterator[Path]:
    for base in _folders_of(MODELS_VARIABLE):
        yield from (base / path, base / place / path)
        if base.is_dir():
            yield from (f / path for pattern in (f"*[+_]{place}", f"{place}-*") for f in sorted(base.glob(pattern)))
    caches = Path(os.environ.get("XDG_CACHE_HOME") or home_dir() / ".cache")
    yield Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE") or caches / "robot_descriptions") / place / path
    if place == "mujoco_menagerie":  # its cache appends a version: unitree_g1-0123456789abcdef
        robot, _, inside = path.partition("/")
        store = Path(os.environ.get("MENAGERIE_CACHE_DIR") or caches / "mujoco_menagerie")
        yield from sorted(store.glob(f"models/{robot}-*/{inside}"))[::-1]
    for text_ in dict.fromkeys([*sys.path, sys.prefix]):
        share = Path(text_ or ".") / "share"
        yield from (share / place / path, share.parent / "cmeel.prefix" / "share" / place / path)
    module = place.replace("-", "_")
    if module.isidentifier() and (spec := PathFinder.find_spec(module)) is not None:
        yield from (Path(p) / path for p in spec.submodule_search_locations or ())
    yield from (prefix / "share" / place / path for prefix in _folders_of("AMENT_PREFIX_PATH"))


def _folders_of(variable: str) -> list[Path]:
    return [Path(p).expanduser() for p in os.environ.get(variable, "").split(os.pathsep) if p]


# -------- Their robot files


def humanoid_file(humanoid: Humanoid, tree: UrdfTree, path: Path, lay: Callable[[Path, Path], Path]) -> RobotFile:
    """Return the robot file of a humanoid, with shapes fitted to the model.

    All is guessed if links or joints are missing.

    Args:
        lay: guesses the robot file of a model in a folder and returns its path.

    Raises:
        RobotError: if guess or written file fail.
    """
    laid = read_robot_file(laid_file(humanoid.name, tree, path, lay))
    written = read_robot_file(humanoid.robot_file) if humanoid.robot_file is not None else RobotFile()
    if humanoid.robot_file is None or not _fits(written, tree):
        return replace(laid, name=humanoid.name, title=humanoid.title)
    shapes = {name: getattr(written, name) or getattr(laid, name) for name in LAID}
    return replace(written, **shapes, name=humanoid.name, title=humanoid.title)


def laid_file(name: str, tree: UrdfTree, path: Path, lay: Callable[[Path, Path], Path]) -> Path:
    """Return the guessed robot file of a model, made at first use and kept in the user's folder.

    Raises:
        RobotError: if the guess fails.
        EnvironmentProblem: if it cannot be kept.
    """
    digest = hashlib.sha256(f"{GUESS}\n{tree.text()}".encode()).hexdigest()[:16]
    folder = state_dir() / "robots" / f"{name}-{digest}"
    kept = folder / path.with_suffix(".yaml").name
    if kept.is_file():
        return kept
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise EnvironmentProblem(f"{folder}: shapes cannot be stored there: {e.strerror}") from None
    return lay(path, folder)


def _fits(file: RobotFile, tree: UrdfTree) -> bool:
    links = {*tree.links, *file.frames}
    joints = {j.get("name", "") for j in tree.joints}
    named = {f.link for f in file.frames.values()} | {link for link, _ in file.points.values()}
    named |= {foot.link for foot in file.feet} | ({file.anchor} if file.anchor else set())
    moved = {*file.imitation_joints, *file.meanings.values(), *(j for p in file.postures.values() for j in p)}
    return named <= links and moved <= joints
