"""URDFs as programs of others write them: encodings, a world with more than a robot, bases that move."""

import pytest

from humanoid_control.errors import RobotError
from humanoid_control.robots import load_robot

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LINK = f'<link name="{{}}"><inertial><mass value="1"/>{INERTIA}</inertial></link>'
KNEE = (
    '<joint name="knee" type="revolute"><parent link="trunk"/><child link="shank"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
)


def joint(kind, child, name="base_joint", parent="world"):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/></joint>'


def robot(more="", head='<?xml version="1.0"?>'):
    return f'{head}<robot name="r"><!-- 90 ° -->{LINK.format("trunk")}{LINK.format("shank")}{KNEE}{more}</robot>'


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("iso-8859-1", "ISO-8859-1"), ("utf-16", "UTF-16"), ("cp932", "Shift_JIS"), ("utf-8-sig", "utf-8"), ("utf-8", "")],
)
def test_a_file_says_its_own_encoding(encoding, declared, tmp_path):
    head = f'<?xml version="1.0" encoding="{declared}"?>' if declared else '<?xml version="1.0"?>'
    path = tmp_path / "r.urdf"
    path.write_bytes(robot(head=head).encode(encoding))
    assert load_robot(path).joint_names == ("knee",) or list(load_robot(path).joint_names) == ["knee"]


def test_an_encoding_that_is_not_known_is_refused(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_bytes(robot(head='<?xml version="1.0" encoding="x-klingon"?>').encode())
    with pytest.raises(RobotError, match="encoding 'x-klingon', which is unknown: save it as UTF-8"):
        load_robot(path)


def test_a_camera_of_the_room_is_left_out_with_a_note(tmp_path):
    path = tmp_path / "r.urdf"
    world = '<link name="world"/><link name="camera"/>'
    path.write_text(robot(world + joint("floating", "trunk") + joint("fixed", "camera", "mount")))
    found = load_robot(path)
    assert list(found.joint_names) == ["knee"]
    assert any("links fixed to 'world' are not parts of the robot; ignored: camera" in n for n in found.notes)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_a_base_that_moves_is_refused_with_what_to_take_out(kind, tmp_path):
    path = tmp_path / "r.urdf"
    world = LINK.format("cart")
    path.write_text(robot(world + joint(kind, "trunk", parent="cart")))
    with pytest.raises(RobotError, match=f"joint 'base_joint' is '{kind}', which moves the robot's base: remove it"):
        load_robot(path)
