"""URDF of a robot that is described as MJCF: links with their masses, hinges with axis, range and torque."""

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

SPEED = 4.0  # [rad/s]; MJCF has no limit of speed


def _origin(position, quaternion):
    rpy = Rotation.from_quat(quaternion, scalar_first=True).as_euler("xyz")
    return f'<origin xyz="{" ".join(map(repr, map(float, position)))}" rpy="{" ".join(map(repr, map(float, rpy)))}"/>'


def urdf_of(path, name, root):
    """Text of the URDF.

    Args:
        path: of the MJCF. name: of the robot. root: body that becomes the root link.
    """
    m = mujoco.MjModel.from_xml_path(str(path))
    effort = dict(zip(m.actuator_trnid[:, 0].tolist(), m.actuator_ctrlrange[:, 1].tolist(), strict=True))
    out = [f'<robot name="{name}">']
    for b in range(1, m.nbody):
        body = m.body(b)
        ixx, iyy, izz = body.inertia
        out.append(
            f'<link name="{body.name}"><inertial>{_origin(body.ipos, body.iquat)}<mass value="{body.mass[0]}"/>'
            f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
        if body.name == root:
            continue
        j = int(body.jntadr[0])
        assert np.all(m.jnt_pos[j] == 0) and m.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE
        low, high = m.jnt_range[j]
        out.append(
            f'<joint name="{m.joint(j).name}" type="revolute">{_origin(body.pos, body.quat)}'
            f'<parent link="{m.body(body.parentid[0]).name}"/><child link="{body.name}"/>'
            f'<axis xyz="{" ".join(map(str, m.jnt_axis[j]))}"/>'
            f'<limit lower="{low}" upper="{high}" velocity="{SPEED}" effort="{effort[j]}"/></joint>'
        )
    return "\n".join([*out, "</robot>"])
