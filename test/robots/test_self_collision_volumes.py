"""Pairs of volumes asked as pairs of shapes are: the same where both are exact, and used where a robot has a file."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.ssv.segments import Segment, SegmentFile, SegmentPair, Volume, write_segment_file
from humanoid_control.ik.null_space.objectives import SelfCollisionCost
from humanoid_control.ik.tasks.task import prepare
from humanoid_control.robots import load_robot
from humanoid_control.robots.self_collision import ShapePairs, VolumePairs
from humanoid_control.robots.volumes import model_of


def thighs(radius=0.065):
    bone = Volume("bone", "line", radius, ((0.0, 0.0, -0.05), (0.0, 0.0, -0.41)))
    return SegmentFile((Segment("l_thigh", "l_thigh", (bone,), "y"),), (SegmentPair("l_thigh", "r_thigh"),), "lola")


def test_a_pair_of_capsules_is_the_same_as_a_pair_of_lines():
    """Distance, points and gradient beside the exact shapes, at random and inside; the gradient by differences."""
    robot = load_robot("lola", "floating")
    volumes, shapes, rng = VolumePairs(robot, model_of(robot, thighs())), ShapePairs(robot), np.random.default_rng(4)
    k = next(k for k in range(shapes.count) if set(shapes.name(k)) == {"l_thigh", "r_thigh"})
    inside = 0
    for _ in range(40):
        q = robot.q(rng.uniform(robot.lower, robot.upper))
        a, b = volumes.update(q, np.inf), shapes.update(q, np.inf)
        row = int(np.flatnonzero(b.pair == k)[0])
        assert a.distance[0] == pytest.approx(b.distance[row], abs=1e-9)
        inside += a.distance[0] < 0
        prepare(robot, robot.data, q)
        G = a.gradient(robot.data.J)[0]
        assert pytest.approx(b.gradient(robot.data.J)[row], abs=1e-6) == G
        v = rng.normal(size=robot.nv)
        step = 1e-6 * v
        d = [volumes.update(pin.integrate(robot.model, q, s * step), np.inf).distance[0] for s in (1, -1)]
        assert (d[0] - d[1]) / 2e-6 == pytest.approx(G @ v, abs=2e-5)
    assert 2 < inside < 40
    assert len(volumes.update(robot.q(), 1e-3)) == 0 and volumes.name(0) == ("l_thigh", "r_thigh")


def test_a_robot_with_a_file_keeps_clear_of_its_volumes(tmp_path):
    """Thicker thighs than the shapes: the cost acts earlier, on the one pair that the file watches."""
    from humanoid_control.paths import share_dir

    for suffix in (".urdf", ".yaml"):
        (tmp_path / f"mine{suffix}").write_text((share_dir() / "urdf" / f"lola{suffix}").read_text())
    plain = load_robot(tmp_path / "mine.urdf")
    write_segment_file(tmp_path / "mine.volumes.yaml", thighs(0.09))
    robot = load_robot(tmp_path / "mine.urdf")
    assert isinstance(plain.collision_monitor(), ShapePairs) and isinstance(robot.collision_monitor(), VolumePairs)
    q = robot.q()
    shapes, volumes = (SelfCollisionCost(r, activation=0.05) for r in (plain, robot))
    gap = ShapePairs(plain)
    near = gap.update(q, np.inf)
    row = next(i for i, k in enumerate(near.pair) if set(gap.name(int(k))) == {"l_thigh", "r_thigh"})
    assert volumes.pairs.update(q, np.inf).distance[0] == pytest.approx(near.distance[row] - 0.05, abs=1e-9)
    prepare(robot, robot.data, q)
    H = volumes.gradient(robot, robot.data, q)
    assert volumes.pairs.count == 1 and volumes.cost(robot, robot.data, q) > 0
    apart = volumes.pairs.update(pin.integrate(robot.model, q, -1e-3 * H / np.linalg.norm(H)), np.inf)
    assert apart.distance[0] > volumes.near.distance[0], "downhill is apart"
    assert shapes.pairs.count == len(plain.pairs)


def test_a_urdf_alone_has_volumes_though_its_collisions_share_names(tmp_path):
    """Parts of one capsule, as three collisions of one name, or as none; each volume is found by its name."""
    from humanoid_control.paths import share_dir
    from humanoid_control.robots.volumes import volumes_of, volumes_of_shapes

    path = tmp_path / "alone.urdf"
    path.write_text((share_dir() / "urdf" / "wabian2.urdf").read_text())
    robot = load_robot(path)
    names = [s.name for s in robot.shapes]
    assert len(set(names)) == len(names) > 40
    model = volumes_of(robot, by_link=True)
    assert len(model.arrays.volume_pairs) >= len(robot.pairs) > 0
    assert (
        sum(len(s.volumes) for s in volumes_of_shapes(robot).segments)
        == len(model.arrays.radii)
        == len(volumes_of(robot).arrays.radii)
    )
