"""One dataclass is the truth for a node's parameters: types, ranges, texts, generated files."""

import dataclasses

import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2: the nodes import rclpy")

from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.nodes.base.parameters import (
    NodeParameters,
    check_value,
    default_of,
    default_yaml,
    docs_table,
    param,
    parse_value,
)
from humanoid_control.session.stacks import NODES


@dataclasses.dataclass(frozen=True)
class Example(NodeParameters):
    speed: float = param(1.0, "how fast", "m/s", 0.0, 2.0, live=True)
    count: int = param(3, "how many", "", 1, 5)
    mode: str = param("walk", "what to do", choices=("walk", "stand"))
    on: bool = param(True, "whether")
    names: list = param(["a"], "which")  # noqa: RUF009


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("speed", 2, 2.0),
        ("speed", 0.5, 0.5),
        ("count", 5, 5),
        ("mode", "stand", "stand"),
        ("on", False, False),
        ("names", ("x", "y"), ["x", "y"]),
    ],
)
def test_values_in_range_are_taken_as_the_right_type(name, value, result):
    taken = check_value(Example, name, value)
    assert taken == result and type(taken) is type(result)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("speed", 3.0, "must be in 0 .. 2 m/s, got 3"),
        ("speed", float("nan"), "must be in 0 .. 2"),
        ("speed", "fast", "must be float"),
        ("speed", True, "must be float"),
        ("count", 2.5, "must be int"),
        ("count", 0, "1 .. 5"),
        ("mode", "wlak", "did you mean walk"),
        ("on", 1, "must be bool"),
        ("sped", 1.0, "did you mean speed"),
    ],
)
def test_wrong_values_are_refused_with_the_reason(name, value, message):
    with pytest.raises(HumanoidError, match=message):
        check_value(Example, name, value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("speed", "1.5", 1.5),
        ("count", "4", 4),
        ("on", "False", False),
        ("mode", "stand", "stand"),
        ("names", "a, b", ["a", "b"]),
    ],
)
def test_texts_from_a_command_line(name, text, value):
    assert parse_value(Example, name, text) == value


@pytest.mark.parametrize(("name", "text"), [("speed", "1,5"), ("count", "four"), ("on", "maybe"), ("count", "4.0")])
def test_texts_that_are_no_values(name, text):
    with pytest.raises(ConfigError, match=f"parameter {name} must be"):
        parse_value(Example, name, text)


@pytest.mark.parametrize("name", NODES)
def test_every_parameter_is_described_and_its_default_is_in_range(name):
    cls = NODES[name].parameter_class()
    for f in dataclasses.fields(cls):
        assert len(f.metadata["meaning"]) > 8
        assert check_value(cls, f.name, default_of(f)) == default_of(f)


@pytest.mark.parametrize("name", NODES)
def test_default_yaml_is_yaml_with_all_defaults(name):
    cls = NODES[name].parameter_class()
    values = yaml.safe_load(default_yaml(name, cls))["/**"][name]["ros__parameters"]
    assert values == {f.name: default_of(f) for f in dataclasses.fields(cls)}
    table = docs_table(cls)
    assert all(f"`{key}`" in table for key in values)


def test_generated_pages_are_up_to_date():
    from humanoid_control.cli.docs import generated_pages
    from humanoid_control.paths import share_dir

    for relative, text in generated_pages().items():
        assert (share_dir() / relative).read_text() == text, f"{relative} is out of date: run `humanoid docs`"
