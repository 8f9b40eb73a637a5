"""Use of the ROS API: only names that are installed here, none that a later release removed, private ones by a list."""

import ast
import functools
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.package.statements import statements
from test.package.violations import assert_none, place

pytest.importorskip("rclpy", reason="needs ROS 2")

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "humanoid_control").rglob("*.py"), *(ROOT / "launch").glob("*.py")])
ROS = ("rclpy", "launch", "launch_ros", "ament_index_python", "tf2_ros", "rcl_interfaces", "lifecycle_msgs")
# Deprecated in rclpy up to Kilted, and removed in Lyrical (rclpy, pull request 1456).
REMOVED_MODULES = {"rclpy.qos_event"}
REMOVED_NAMES = {"QoSEventHandler"}
REMOVED_METHODS = {"warn"}  # of loggers
# Not public, with the version of rclpy in which each was read: 9.1 is Kilted; 10 becomes Lyrical.
PRIVATE = {
    "_parameter_overrides": {"tick_node.py"},  # read with a default
    "take_message": {"tick_node.py"},  # `Subscription.handle` is public, its method is not documented
}


def imported(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, module, name) of each import from a package of ROS; no name: the module itself."""
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ROS:
            yield from ((node.lineno, node.module, a.name) for a in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, a.name, "") for a in node.names if a.name.split(".")[0] in ROS)


@functools.cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    """Trees of the files that could break a rule: files of nodes, and all that contain a word of a rule."""
    words = (*ROS, "rmw_qos_policy_", "declare_parameter", "logger")

    def concerned(path: Path, text: str) -> bool:
        return "nodes" in path.parts or any(word in text.lower() for word in words)

    texts = ((path, path.read_text()) for path in FILES)
    return tuple((path, ast.parse(text)) for path, text in texts if concerned(path, text))


def removed(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what) of each use of something that Lyrical does not have any more."""
    for line, module, name in imported(tree):
        if module in REMOVED_MODULES or name in REMOVED_NAMES or f"{module}.{name}" in REMOVED_MODULES:
            yield line, f"{module} {name}".strip()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("RMW_QOS_POLICY_"):
            yield node.lineno, node.attr
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in REMOVED_METHODS and "logger" in ast.unparse(node.func.value).lower():
            yield node.lineno, f"logger.{node.func.attr}"
        if node.func.attr == "declare_parameter" and len(node.args) + len(node.keywords) < 2:
            yield node.lineno, "declare_parameter with a name alone"


def test_nothing_is_used_that_lyrical_removed():
    assert_none(f"{place(path, line)}: {what} is gone in Lyrical" for path, t in trees() for line, what in removed(t))


def test_the_check_finds_each_of_what_lyrical_removed():
    source = """
from rclpy.qos_event import SubscriptionEventCallbacks
from rclpy.event_handler import QoSEventHandler
self.get_logger().warn("x")
node.declare_parameter("a")
q = ReliabilityPolicy.RMW_QOS_POLICY_RELIABILITY_RELIABLE
self.get_logger().warning("x"); warnings.warn("x"); node.declare_parameter("a", 1.0)
"""
    assert sorted(line for line, _ in removed(ast.parse(source))) == [2, 3, 4, 5, 6]


def test_every_name_of_ros_that_is_used_is_installed():
    wrong = []
    for path, tree in trees():
        for line, module, name in imported(tree):
            spec = importlib.util.find_spec(module.split(".")[0])
            if spec is None or spec.origin is None:  # launch and tf2_ros are not among the wheels, but a folder is here
                continue
            try:
                found = importlib.import_module(module)
                if name and not hasattr(found, name):
                    importlib.import_module(f"{module}.{name}")
            except ImportError as e:
                if "experimental" not in module:  # looked for, with another executor where it is not there
                    wrong.append(f"{place(path, line)}: {module} {name}: {e}")
    assert_none(wrong)


def test_private_names_of_rclpy_are_those_of_the_list():
    from rclpy.lifecycle import LifecycleNode
    from rclpy.node import Node

    own = {n for c in (Node, LifecycleNode) for n in vars(c)} | set(PRIVATE)
    private = {n for n in own if n.startswith("_") and not n.startswith("__") and "__" not in n} | set(PRIVATE)
    for path, tree in trees():
        if "nodes" not in path.parts:
            continue
        for node in ast.walk(tree):
            named = getattr(node, "attr", getattr(node, "value", ""))
            if isinstance(named, str) and named in private and path.name not in PRIVATE.get(named, ()):
                defined = {d.name for d in ast.walk(tree) if isinstance(d, ast.FunctionDef)}
                assert named in defined, f"{place(path, node.lineno)}: {named} is private to rclpy"


def test_the_page_names_every_private_name():
    page = (ROOT / "docs" / "release.md").read_text()
    assert all(f"`{name}`" in page for name in PRIVATE)
