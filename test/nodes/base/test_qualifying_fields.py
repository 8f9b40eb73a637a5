"""Every type that a node subscribes to has a rule for each field that qualifies its values."""

import ast
import importlib
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import humanoid_control
from humanoid_control.nodes.base.qualifying_fields import QUALIFYING_FIELDS, qualifying_fields_table

WORDS = ("header", "frame", "covariance", "action", "lifetime", "texture")  # of fields that qualify others
OUTSIDE = ("/session/", "tick_node.py", "command_owner.py")  # observers of runs; the base, which subscribes for others
CHOSEN = {  # types that are chosen while a node runs, by the name of the variable
    "twist": ("Twist", "TwistStamped"),
    "steps": ("MarkerArray", "PoseArray", "Path"),
    "message": ("JointState", "Odometry"),
}


def subscribed_types():
    """(file, message class) of all subscriptions of all nodes."""
    root = Path(humanoid_control.__file__).parent
    for path in (root / "nodes").rglob("*.py"):
        if any(part in str(path) for part in OUTSIDE):
            continue
        module = None
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            k = {"listen": 0, "poll": 0, "create_subscription": 0, "listen_to_one": 1}.get(name)
            if k is None or len(call.args) < 3 or not isinstance(call.args[k], ast.Name):
                continue
            given = call.args[k].id
            module = module or importlib.import_module(
                f"humanoid_control.{path.relative_to(root).with_suffix('')}".replace("/", ".")
            )
            for kind in CHOSEN.get(given, (given,)):
                if (message := getattr(module, kind)) is not None:  # the wheels lack tf2_msgs
                    yield path.name, message


def kind_of(message):
    return f"{message.__module__.split('.')[0]}/{message.__name__}"


TYPES = {kind_of(message): message for _, message in subscribed_types()}


def test_all_nodes_were_walked_over():
    files = {path for path, _ in subscribed_types()}
    assert {"walker.py", "robot_driver.py", "viewer.py", "live_source.py", "plates.py", "inputs.py"} <= files
    assert len(TYPES) >= 14


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_subscribed_type_has_a_rule_for_each_qualifying_field(kind):
    rules = QUALIFYING_FIELDS[kind]
    found = set(names_in(TYPES[kind]))
    missing = {name for name in found if not any(rule in name for rule in rules)}
    assert not missing, f"{kind}: no rule for {missing}"


def names_in(message, depth=4):
    """Names of qualifying fields of a type, and of the messages in it."""
    for name, kind in message.get_fields_and_field_types().items():
        if any(word in name for word in WORDS):
            yield name
        inner = kind.split("<")[-1].split("[")[0].split(",")[0].rstrip(">")
        if "/" in inner and depth and name != "header":
            package, words = inner.split("/")
            yield from names_in(getattr(importlib.import_module(f"{package}.msg"), words), depth - 1)


def test_the_page_of_topics_has_the_rules():
    page = (Path(humanoid_control.__file__).parents[1] / "docs" / "topics.md").read_text()
    assert "\n".join(qualifying_fields_table()) in page
