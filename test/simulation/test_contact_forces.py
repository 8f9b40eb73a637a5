"""Boxes that fall, slide, stick and are pulled: Coulomb's laws, energy, and MuJoCo's opinion."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.simulation.contact.ground import Ground
from test.simulation.box import Box, G, soft


def test_a_dropped_box_comes_to_rest_and_never_gains_energy():
    box = Box()
    box.r[0] = [0, 0, 0.4]
    box.R[0] = pin.rpy.rpyToMatrix(0.4, 0.3, 0.2)
    box.V[0] = [1.0, -2.0, 0.5, 0.6, 0.2, 0.0]
    solution = box.solve(1.5, np.linspace(0, 1.5, 300), 1e-6)
    energy = []
    for z in solution.y.T:
        box.rates(0.0, z)
        energy.append(box.energy())
    assert np.diff(energy).max() < 2e-5 * energy[0]
    assert energy[-1] < 0.3 * energy[0], "the fall is lost in the layers"
    assert np.abs(box.V).max() < 1e-4
    lowest = np.sort((box.points[:, :3] @ box.R[0].T + box.r[0])[:, 2])[:4]
    assert lowest == pytest.approx([-box.mass * G / (4 * box.law.stiffness)] * 4, rel=1e-2)
    assert box.force.sum(axis=0) == pytest.approx([0, 0, box.mass * G], abs=1e-2)


def test_the_fixed_step_follows_the_adaptive_solution():
    """A tilted drop with sliding; the step's error falls with the step."""
    wrong = []
    for h in (1e-3, 2.5e-4):
        boxes = [Box() for _ in range(2)]
        for box in boxes:
            box.law = soft(closure_rate=1e4)
            box.r[0], box.R[0] = [0, 0, 0.12], pin.rpy.rpyToMatrix(0.15, 0.1, 0.0)
            box.V[0, 3:] = [0.8, 0.3, 0.0]
        for _ in range(round(0.4 / h)):
            boxes[0].step(h)
        boxes[1].rates(0.0, boxes[1].solve(0.4).y[:, -1])
        wrong.append(np.linalg.norm(boxes[0].r - boxes[1].r))
    assert wrong[0] < 0.01 and wrong[1] < 0.5 * wrong[0]


@pytest.mark.parametrize("stepped", [True, False])
def test_below_the_friction_angle_a_box_sticks_for_ever(stepped):
    mu, slope = 0.5, np.arctan(0.48)
    box = Box(Ground.plane(slope=slope), soft(friction=mu)).lay(slope)
    if stepped:
        for k in range(4000):
            box.step()
            if k == 1000:
                early = box.r[0].copy()
        assert np.abs(box.r[0] - early).max() < 1e-9 and np.abs(box.V).max() < 1e-10
    else:
        y = box.solve(1.5, [0.5, 1.5], 1e-6).y
        assert y[9:12, 1] == pytest.approx(y[9:12, 0], abs=1e-6)


def test_above_the_friction_angle_it_slides_with_g_sin_minus_mu_g_cos():
    mu, slope = 0.5, np.radians(35)
    box = Box(Ground.plane(slope=slope), soft(friction=mu)).lay(slope)
    for _ in range(300):
        box.step()
    v0 = np.linalg.norm(box.V[0, 3:])
    for _ in range(500):
        box.step()
    a = (np.linalg.norm(box.V[0, 3:]) - v0) / 0.5
    assert a == pytest.approx(G * (np.sin(slope) - mu * np.cos(slope)), rel=2e-3)


@pytest.mark.parametrize("yaw", [0.0, 2.1])
def test_a_sliding_box_slows_down_by_mu_g_whatever_its_heading(yaw):
    mu, box = 0.3, Box(law=soft(friction=0.3), size=(0.4, 0.4, 0.04)).lay()
    box.V[0, 3:5] = 1.5 * np.cos(yaw), 1.5 * np.sin(yaw)
    start = box.r[0].copy()
    speeds = []
    for _ in range(900):
        box.step()
        speeds.append(np.linalg.norm(box.V[0, 3:5]))
        shear = np.hypot(box.force[:, 0], box.force[:, 1])
        assert (shear <= mu * box.force[:, 2] * (1 + 1e-9)).all()
    assert (speeds[99] - speeds[399]) / 0.3 == pytest.approx(mu * G, rel=5e-3)
    way = box.r[0, :2] - start[:2]
    assert np.linalg.norm(way) == pytest.approx(1.5**2 / (2 * mu * G), rel=0.01)
    assert np.arctan2(way[1], way[0]) == pytest.approx(yaw, abs=1e-3)
    assert speeds[-1] < 1e-6


def test_a_grid_of_heights_that_is_flat_or_sloped_is_the_plane():
    slope = np.radians(12)
    grid = Ground.from_function(lambda x, y: np.tan(slope) * x, (-2, 2), (-2, 2), 0.11)
    boxes = [Box(g, soft(friction=0.1)).lay(slope) for g in (grid, Ground.plane(slope=slope))]
    for box in boxes:
        box.V[0] = [0, 0, 0.7, -0.4, 0.5, 0]
        for _ in range(500):
            box.step()
    assert np.linalg.norm(boxes[0].r - [0, 0, 0.05]) > 0.2, "it must have moved across cells"
    for name in ("R", "r", "V", "s", "force"):
        assert getattr(boxes[0], name) == pytest.approx(getattr(boxes[1], name), abs=1e-9)


def test_pulled_by_a_slow_spring_it_sticks_and_slips_without_chatter():
    """The spring's end moves steadily; the block waits, slips, waits. Each change of state happens once."""
    law = soft(friction=0.5, kinetic_friction=0.3, stribeck_speed=0.02)
    box, k, speed = Box(law=law, size=(0.4, 0.4, 0.04)).lay(), 60.0, 0.1
    shear, speeds, spring = [], [], []
    for n in range(15000):
        box.pull[0] = k * (speed * n * 1e-3 - box.r[0, 0])
        box.step()
        shear.append(box.force[:, 0].sum())
        speeds.append(box.V[0, 3])
        spring.append(box.pull[0])
    weight, w = box.mass * G, np.sqrt(k / box.mass)
    p = 0.2 * weight * w / (k * speed)
    period = 2 * 0.2 * weight / (k * speed) + 2 / w * (np.pi - np.arctan(p))  # the textbook's stick-slip motion
    starts = np.flatnonzero(np.diff(np.array(np.array(speeds) > 0.02, dtype=int)) == 1)
    assert len(starts) == 3 and np.diff(starts) * 1e-3 == pytest.approx([period] * 2, rel=0.03)
    assert max(spring) == pytest.approx(0.5 * weight, rel=0.02)
    change = np.diff(shear)
    turns = np.diff(np.sign(change[np.abs(change) > 1e-3 * weight]))
    assert (turns != 0).sum() <= 6 * len(starts), "a little ringing of the layer after each stop, no chatter"
    assert max(shear) < 1e-6 * weight, "the force never changes its direction"


def test_a_rocking_box_at_rest_does_not_creep():
    """Pushed below the limit and let go, again and again, it comes back to where it was."""
    box = Box().lay()
    for _ in range(300):
        box.step()
    start = box.r[0].copy()
    for n in range(6000):
        box.pull[:] = [0.5 * box.mass * G * np.sin(0.05 * n), 0, 0] if n < 5000 else 0.0
        box.step()
    assert np.abs(box.r[0] - start).max() < 1e-5


def test_mujoco_slides_as_far():
    """The same box with the same coefficient thrown along the ground in MuJoCo (elliptic cones, stiff contact)."""
    mujoco = pytest.importorskip("mujoco")
    mu, speed = 0.35, 2.0
    model = mujoco.MjModel.from_xml_string(f"""
        <mujoco><option timestep="0.0005" cone="elliptic" impratio="100" gravity="0 0 -{G}"/><worldbody>
        <geom type="plane" size="9 9 1" friction="{mu} 0 0"/><body pos="0 0 0.02"><freejoint/>
        <geom type="box" size="0.2 0.2 0.02" mass="5" friction="{mu} 0 0"/></body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0], data.qvel[5] = speed, 2.0
    box = Box(law=soft(friction=mu), size=(0.4, 0.4, 0.04)).lay()
    box.V[0] = [0, 0, 2.0, speed, 0, 0]
    for _ in range(1600):
        mujoco.mj_step(model, data)
    for _ in range(800):
        box.step()
    assert np.abs(data.qvel[:3]).max() < 2e-3 and np.abs(box.V).max() < 1e-3
    assert box.r[0, 0] == pytest.approx(data.qpos[0], rel=0.03)
    assert np.arctan2(box.R[0, 1, 0], box.R[0, 0, 0]) == pytest.approx(
        2 * np.arctan2(data.qpos[6], data.qpos[3]), rel=0.05
    )
