"""Numbers of a URDF that are hardly meant: each kind is noted by name and value, and a usual robot has no note."""

import re

import pytest

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.mjcf import read_description
from humanoid_control.robots.description.urdf import MOST_JOINTS, parse_urdf

LINK = """<link name="{name}"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="2"/>
<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><origin xyz="0 0 0.3" rpy="0 0 1.57"/><parent link="{parent}"/>
<child link="{child}"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="50" velocity="5"/></joint>"""
ARM = "\n".join(
    [
        '<robot name="arm">',
        *(LINK.format(name=n) for n in ("base", "upper", "lower")),
        JOINT.format(name="shoulder", parent="base", child="upper"),
        JOINT.format(name="elbow", parent="upper", child="lower"),
        "</robot>",
    ]
)
KINDS = {
    "fast": (
        'velocity="5"',
        'velocity="180"',
        "2 fast joint(s) (shoulder: 180 rad/s, elbow: 180 rad/s)",
    ),
    "unlimited": ('velocity="5"', 'velocity="1e308"', "without a speed limit (shoulder, elbow): 3 rad/s is assumed"),
    "effort": ('effort="50"', 'effort="inf"', "without an effort limit (shoulder, elbow): 100 N m is assumed"),
    "degrees": ('lower="-1" upper="1"', 'lower="-90" upper="90"', "limits are in radians; are these degrees?"),
    "far": ('xyz="0 0 0.3"', 'xyz="0 0 300"', "(shoulder: 300 m, elbow: 300 m): lengths are in metres"),
    "turned": ('rpy="0 0 1.57"', 'rpy="0 0 90"', "2 placement(s) turned by more than a full turn (rpy '0 0 90')"),
    "grams": ('<mass value="2"/>', '<mass value="2000"/>', "weigh 6000 kg: masses are in kilograms; are these grams?"),
    "tonnes": (
        '<mass value="2"/>',
        '<mass value="0.002"/>',
        "weigh 0.006 kg: masses are in kilograms; are",
    ),
    "massless": (r"<inertial>.*?</inertial>", "", "no link has a mass: usable for kinematics only"),
    "inertia": ('ixx="0.02" iyy="0.02"', 'ixx="2e4" iyy="2e4"', "a much larger body (base: 2e+04 kg m^2 at 2 kg"),
}


def notes(text):
    return [n.removeprefix("F: ") for n in parse_urdf(text, "F").notes]


def test_a_usual_robot_has_no_note():
    assert notes(ARM) == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_noted_by_name_and_value(kind):
    old, new, says = KINDS[kind]
    text, count = re.subn(old if kind == "massless" else re.escape(old), new, ARM, flags=re.S)
    assert count
    assert any(says in note for note in notes(text)), notes(text)


def test_efforts_that_cannot_hold_the_robot_are_noted():
    def chain(effort):
        links = "".join(LINK.format(name=f"l{k}") for k in range(8))
        joints = "".join(JOINT.format(name=f"j{k}", parent=f"l{k}", child=f"l{k + 1}") for k in range(7))
        return f'<robot name="chain">{links}{joints}</robot>'.replace('effort="50"', f'effort="{effort}"')

    (said,) = notes(chain("0.4"))
    assert "no joint has more than 0.4 N m, and the links weigh 16 kg" in said
    assert notes(chain("2")) == []


def test_a_type_that_is_missing_or_misspelt_is_named():
    for old, new, says in (
        ('type="revolute"', 'type="Revolute"', "joint 'shoulder' is 'Revolute'; did you mean revolute?"),
        (' type="revolute"', "", "joint 'shoulder' has no type; use revolute, continuous"),
    ):
        with pytest.raises(RobotError, match=re.escape(says)):
            parse_urdf(ARM.replace(old, new, 1), "F")


def test_a_robot_without_a_name_gets_one_and_a_chain_without_end_is_refused():
    tree = parse_urdf(ARM.replace(' name="arm"', ""), "F")
    assert tree.name == "robot" and tree.model().nq == 2
    n = MOST_JOINTS + 2
    links = "".join(f'<link name="l{k}"/>' for k in range(n))
    joints = (JOINT.format(name=f"j{k}", parent=f"l{k}", child=f"l{k + 1}") for k in range(n - 1))
    with pytest.raises(RobotError, match=f"has {n - 1} joints; the maximum is {MOST_JOINTS}"):
        parse_urdf(f'<robot name="c">{links}{"".join(joints)}</robot>', "F")


def test_a_file_that_is_no_text_is_named_as_such(tmp_path):
    path = tmp_path / "arm.urdf"
    for data, says in (
        (b"\x1f\x8b\x08\x00", "byte 0x8b at position 1"),
        (b"<!-- \xb0 -->" + ARM.encode(), "byte 0xb0 at position 5"),
    ):
        path.write_bytes(data)
        with pytest.raises(RobotError, match=f"not UTF-8 text \\({says}\\): save it as UTF-8"):
            read_description(path)
