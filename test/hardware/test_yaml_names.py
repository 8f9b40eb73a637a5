"""Drafts of hardware and robot files read back the names they were written with."""

import yaml

from humanoid_control.hardware.commissioning import draft_file
from humanoid_control.robots import load_robot

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LINK = f'<link name="{{}}"><inertial><mass value="1"/>{INERTIA}</inertial></link>'
JOINT = (
    '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
)


def test_a_hardware_file_of_joints_called_yes_and_no(tmp_path):
    names = ["y", "no", "on", "null", "1"]
    links = ["base", *(f"l{k}" for k in range(len(names)))]
    joints = [JOINT.format(n, links[k], links[k + 1]) for k, n in enumerate(names)]
    path = tmp_path / "r.urdf"
    path.write_text(f'<robot name="r">{"".join(LINK.format(n) for n in links)}{"".join(joints)}</robot>')
    text = draft_file(load_robot(path), str(path), "loopback")
    assert list(yaml.safe_load(text)["joints"]) == names and '"y":' in text
