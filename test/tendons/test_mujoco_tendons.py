"""Lengths, moment arms and wrapping beside MuJoCo's, on its own models and on random ones."""

import numpy as np
import pytest

from humanoid_control.tendons.files.mjcf import read_mjcf

mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco, to compare with it")


def compare(path, postures=40, seed=0, joints=None):
    """Greatest differences of lengths and moment arms from MuJoCo's, and how many tendons touch a solid how often."""
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    geometry = read_mjcf(path).geometry(joints)
    ids = [mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_JOINT, n) for n in geometry.joint_names]
    rng, length, arm, wrapped = np.random.default_rng(seed), [], [], 0
    limits = np.clip(geometry.limits, -3, 3)
    J = np.zeros((m.ntendon, m.nv))
    for _ in range(postures):
        theta = rng.uniform(limits[:, 0], limits[:, 1])
        d.qpos[m.jnt_qposadr[ids]] = theta
        mujoco.mj_forward(m, d)
        if m.nv < J.shape[1] or d.ten_J.size != J.size:
            mujoco.mju_sparse2dense(J, d.ten_J.ravel(), m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
        else:
            J[:] = d.ten_J.reshape(J.shape)
        ours, G = geometry.raw(theta[None])
        length.append(np.abs(ours[0] - d.ten_length))
        arm.append(np.abs(G[0] - J[:, m.jnt_dofadr[ids]]))
        wrapped += int((d.wrap_obj.ravel()[: d.ten_wrapnum.sum()] >= 0).sum())
    return np.array(length), np.array(arm), wrapped, geometry


@pytest.mark.parametrize("name", ["myoelbow_1dof6muscles", "myoelbow_2dof6muscles"])
def test_the_elbow_models_have_mujocos_lengths_and_moment_arms(name, model_file):
    path = model_file(f"muscles/myo_sim_meshfree/{name}_meshfree.xml")
    length, arm, wrapped, geometry = compare(path, 300)
    assert len(geometry.tendon_names) == 6 and wrapped > 100
    assert length.max() < 1e-9 and arm.max() < 1e-9


def scene(rng, sides):
    """An arm of two hinges and a slide, with tendons over random spheres and cylinders."""
    vec = lambda s: " ".join(f"{v:.6f}" for v in rng.uniform(-s, s, 3))  # noqa: E731
    solids, spatial = "", ""
    for k in range(6):
        kind, r = ("sphere", "cylinder")[k % 2], rng.uniform(0.02, 0.05)
        size = f"{r:.4f}" if kind == "sphere" else f"{r:.4f} 0.2"
        solids += f'<geom name="g{k}" type="{kind}" size="{size}" pos="{vec(0.02)}" euler="{vec(1.5)}"/>'
        centre_near = rng.uniform(-1, 1, 3)
        reach = {"none": 1.0, "outside": 3.0, "inside": 0.3}[sides[k % len(sides)]]
        solids += f'<site name="side{k}" pos="{" ".join(f"{v:.6f}" for v in centre_near * reach * r)}"/>'
        side = f'sidesite="side{k}"' if sides[k % len(sides)] != "none" else ""
        spatial += f"""<spatial name="t{k}"><site site="a{k}"/><geom geom="g{k}" {side}/><site site="b{k}"/>
            <pulley divisor="2.5"/><site site="b{k}"/><site site="c{k}"/></spatial>"""
    ends = "".join(f'<site name="a{k}" pos="{vec(0.12)}"/>' for k in range(6))
    mids = "".join(f'<site name="b{k}" pos="{vec(0.12)}"/>' for k in range(6))
    tips = "".join(f'<site name="c{k}" pos="{vec(0.12)}"/>' for k in range(6))
    return f"""<mujoco><compiler angle="radian" eulerseq="XYz"/>
    <default><joint limited="true" range="-1.5 1.5"/><default class="s"><joint type="slide" range="-.1 .1"/></default>
    </default><worldbody><body pos="0.3 -0.2 1" euler="0.3 0.1 -2">{ends}
      <body name="u" pos="0.01 0.02 0.03" axisangle="1 0.2 0 0.7"><joint name="j0" axis="0.1 1 0.3" pos="0.01 0 0.02"/>
        <joint name="j1" axis="1 0 0.2" ref="0.2"/><geom size=".01" mass="1"/>
        <frame euler="0.1 0.2 0.3">{solids}</frame>
        <body name="f" pos="0.02 0 0.01"><joint name="j2" class="s" axis="0 0.3 1"/><geom size=".01" mass="1"/>{mids}
          <body><joint name="j3" axis="0 1 0"/><geom size=".01" mass="1"/>{tips}</body></body></body></body></worldbody>
    <tendon>{spatial}</tendon></mujoco>"""


@pytest.mark.parametrize("sides", [("none",), ("outside",), ("inside",)], ids=lambda s: s[0])
def test_random_spheres_and_cylinders_are_wrapped_as_in_mujoco(sides, tmp_path):
    if sides != ("none",) and int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("the sides of wrapping solids have their present meaning since MuJoCo 4")
    met = 0
    for seed in range(8):
        path = tmp_path / f"{sides[0]}{seed}.xml"
        path.write_text(scene(np.random.default_rng(seed), sides))
        length, arm, wrapped, _geometry = compare(path, 25, seed, ("j3", "j0", "j2", "j1"))
        bound = 1e-6 if sides == ("inside",) else 1e-9
        assert length.max() < bound, f"seed {seed}: {np.argwhere(length > bound)}"
        assert arm.max() < 1e2 * bound
        met += wrapped
    assert met > 200, "the comparison is about wrapping"
