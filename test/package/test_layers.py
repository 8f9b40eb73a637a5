"""Imports point inwards only: nodes and commands use the algorithms, never the other way round."""

import ast
import graphlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "humanoid_control"
RING = {
    **dict.fromkeys(("errors", "paths", "jit", "cholesky", "whole_files", "yaml_file"), 0),
    **dict.fromkeys(("robots", "capture", "collision", "tendons", "multibody"), 1),
    **dict.fromkeys(("imitation", "ik", "walking", "simulation", "motion"), 2),
    **dict.fromkeys(("nodes", "cli", "viewer"), 3),
}
ROS = {
    "rclpy",
    "sensor_msgs",
    "std_msgs",
    "visualization_msgs",
    "geometry_msgs",
    "diagnostic_msgs",
    "nav_msgs",
    "launch",
}
SIDEWAYS = {("robots", "collision"), ("robots", "tendons")}  # the only room of ring 1 that may use another one
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return names


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_inwards(path):
    own = room(path)
    if own == "__init__":
        return
    assert own in RING, f"{own} is not a known room"
    for name in imported(path):
        if RING[own] < 3:
            assert name.split(".")[0] not in ROS, f"{path.name} imports {name}: only ring 3 knows ROS"
        if name.startswith("humanoid_control.") and (other := name.split(".")[1]) != own:
            assert RING[other] <= RING[own], f"{path.name} ({own}) imports {name}: outwards"
            if RING[other] == RING[own] == 1:
                assert (own, other) in SIDEWAYS, f"{path.name} ({own}) imports {name}: sideways"


@pytest.mark.parametrize(
    "name,parts_of",
    [
        ("simulation", {"contact", "drives", "steps", "worlds"}),
        ("tendons", {"routing", "files", "mappings", "filters"}),
    ],
)
def test_parts_of_a_room_import_one_way(name, parts_of):
    """Sub-packages and single files of the room, by what they import when they are loaded: no circle."""
    room_of, needs = PACKAGE / name, {}
    for path in room_of.rglob("*.py"):
        own = path.relative_to(room_of).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        names = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
        parts = {n.split(".")[2] for n in names if n.startswith(f"humanoid_control.{name}.")}
        needs.setdefault(own, set()).update(parts - {own})
    assert parts_of <= set(needs)
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError with the circle


def test_every_room_is_a_package():
    rooms = {room(p) for p in FILES} - {"__init__", *(name for name, ring in RING.items() if ring == 0)}
    assert all((PACKAGE / r / "__init__.py").is_file() for r in rooms)


@pytest.mark.parametrize("path", [p for p in FILES if room(p) == "nodes"], ids=lambda p: p.name)
def test_node_files_are_wiring(path):
    """A node file is short; what it does is done by a room of ring 1 or 2."""
    lines = len(path.read_text().splitlines())
    assert lines <= 260, f"{path.name} has {lines} lines"
