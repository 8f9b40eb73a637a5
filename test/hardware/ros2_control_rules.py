"""What ros2_control does with the files, from its public sources, as far as tests need it.

The grammar is that of hardware_interface's component parser; the publishing rules are those of JointStateTopicSystem;
the keys are those of the parameter files of the controllers and of the controller manager.
"""

import math
import xml.etree.ElementTree as ET
from types import SimpleNamespace

# Tag: (needed attributes, optional ones, children); the text of a leaf must not be empty where it is said so.
INTERFACE = ({"name"}, {"data_type", "size"}, {"param", "limits"})
GRAMMAR = {
    "ros2_control": (
        {"name", "type"},
        {"rw_rate", "is_async", "thread_priority"},
        {"hardware", "joint", "sensor", "gpio"},
    ),
    "hardware": (set(), set(), {"plugin", "group", "param"}),
    "joint": ({"name"}, {"mimic"}, {"command_interface", "state_interface", "param", "limits"}),
    "command_interface": INTERFACE,
    "state_interface": INTERFACE,
    "param": ({"name"}, set(), set()),
    "plugin": (set(), set(), set()),
    "limits": ({"enable"}, set(), set()),
}
KINDS = {"system", "actuator", "sensor"}
TEXTS = {"param", "plugin"}
NUMBERS = {"min", "max", "initial_value"}
SUPPORTED = ("position", "velocity", "effort")

CONTROLLER_KEYS = {
    "joint_trajectory_controller": {
        "joints": [str],
        "command_joints": [str],
        "command_interfaces": [str],
        "state_interfaces": [str],
        "allow_partial_joints_goal": bool,
        "interpolate_from_desired_state": bool,
        "allow_nonzero_velocity_at_trajectory_end": bool,
        "cmd_timeout": float,
        "constraints": {
            "goal_time": float,
            "stopped_velocity_tolerance": float,
            "decelerate_on_cancel": bool,
            "*joint": {"trajectory": float, "goal": float, "max_deceleration_on_cancel": float},
        },
    },
    "forward_position_controller": {"joints": [str], "interface_name": str},
    "controller_manager": {"update_rate": int, "enforce_command_limits": bool, "*controller": {"type": str}},
}


def check_element(element: ET.Element) -> None:
    """Raise where the component parser would, or would pass something over in silence."""
    needed, optional, children = GRAMMAR[element.tag]
    given = set(element.attrib)
    assert needed <= given <= needed | optional, f"{element.tag}: attributes {given}"
    if element.tag in TEXTS:
        assert (element.text or "").strip(), f"{element.tag} {element.attrib} has no text"
    if element.tag == "ros2_control":
        assert element.attrib["type"] in KINDS
    if element.tag == "hardware":
        assert len(element.findall("plugin")) == 1
    if element.tag == "param" and element.attrib["name"] in NUMBERS:
        assert math.isfinite(float(element.text))
    for child in element:
        assert child.tag in children, f"{child.tag} in {element.tag}"
        check_element(child)


def check_joints(tag: ET.Element, urdf: ET.Element) -> None:
    """Each joint of the tag is one of the URDF that moves; one that mimics has no command interface."""
    joints = {j.attrib["name"]: j for j in urdf.findall("joint")}
    for joint in tag.findall("joint"):
        of_urdf = joints[joint.attrib["name"]]
        assert of_urdf.attrib["type"] != "fixed"
        mimics = of_urdf.find("mimic") is not None and joint.attrib.get("mimic") != "false"
        assert not (mimics and joint.findall("command_interface"))


def check_keys(given: dict, known: dict, joints: list, where: str = "") -> None:
    """Raise where a parameter has a name or a type that the controller does not declare."""
    anything = next((k for k in known if k.startswith("*")), None)
    for key, value in given.items():
        kind = known.get(key, known.get(anything))
        assert kind is not None, f"{where}{key} is no parameter"
        if key not in known and anything == "*joint":
            assert key in joints
        if isinstance(kind, dict):
            check_keys(value, kind, joints, f"{where}{key}.")
        elif isinstance(kind, list):
            assert isinstance(value, list) and value and all(isinstance(v, kind[0]) for v in value)
            assert len(set(value)) == len(value)
        else:
            assert type(value) is kind, f"{where}{key}: {value!r}"


class TopicSystem:
    """JointStateTopicSystem with its files: states that it reads, commands that it publishes.

    Attributes:
        states, commands: by 'joint/interface'.
    """

    def __init__(self, tag: ET.Element) -> None:
        params = {p.attrib["name"]: p.text.strip() for p in tag.find("hardware").findall("param")}
        self.commands_topic = params.get("joint_commands_topic", "/robot_joint_commands")
        self.states_topic = params.get("joint_states_topic", "/robot_joint_states")
        self.threshold = float(params.get("trigger_joint_command_threshold", 1e-5))
        self.joints = [
            (j.attrib["name"], [i.attrib["name"] for i in j.findall("command_interface")]) for j in tag.findall("joint")
        ]
        self.states, self.commands = {}, {}
        for joint in tag.findall("joint"):
            name = joint.attrib["name"]
            for i in joint.findall("state_interface"):
                first = i.find("param[@name='initial_value']")
                self.states[f"{name}/{i.attrib['name']}"] = float(first.text) if first is not None else math.nan
            for i in joint.findall("command_interface"):
                self.commands[f"{name}/{i.attrib['name']}"] = math.nan

    def read(self, message) -> None:
        for k, name in enumerate(message.name):
            if name not in {n for n, _ in self.joints}:
                continue
            for interface in SUPPORTED:
                values = getattr(message, interface)
                if len(values) and math.isfinite(values[k]):
                    assert f"{name}/{interface}" in self.states, "set_state throws for an interface that is not there"
                    self.states[f"{name}/{interface}"] = values[k]

    def write(self):
        """The message that it publishes; None where it publishes nothing."""
        difference = sum(
            abs(self.states[f"{name}/{i}"] - self.commands[f"{name}/{i}"])
            for name, interfaces in self.joints
            for i in interfaces
        )
        if difference <= self.threshold:
            return None
        m = SimpleNamespace(name=[], position=[], velocity=[], effort=[])
        for name, interfaces in self.joints:
            m.name.append(name)
            for i in interfaces:
                getattr(m, i).append(self.commands[f"{name}/{i}"])
        return m
