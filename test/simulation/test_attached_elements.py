"""Springs, ropes and muscles attached to a simulated robot: against pinocchio, energy, balance, and taken off again."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.multibody import ENVIRONMENT, JointElement, MuscleLaw, PathElement, SpringLaw
from humanoid_control.robots import load_robot
from humanoid_control.simulation import MultibodyWorld, WorldSettings
from humanoid_control.simulation.worlds.multibody_world import DrivenWorld
from test.simulation.test_multibody_world import free_gains


@pytest.fixture(scope="module")
def arm_robot():
    return load_robot("lola", "fixed")


def arm_elements(robot):
    """A spring to the world, a muscle between links of the robot, a spring about a joint; points in the links."""
    links = [f.name for f in robot.model.frames if f.type == pin.FrameType.BODY and f.parentJoint > 0]
    hand, upper = next(n for n in links[::-1] if n.startswith("r_")), links[2]
    ends = [(ENVIRONMENT, [0.3, 0.2, 0.1]), (hand, [0.02, -0.01, 0.05])]
    spring = PathElement("spring", ends, SpringLaw(80.0, 0.2, 3.0))
    points = [(robot.root_link, [0.1, 0.2, 0.0]), (hand, [0.0, 0.03, 0.0]), (upper, [0.01, 0.0, 0.02])]
    muscle = PathElement("muscle", points, MuscleLaw(60.0, 0.5, 0.1))
    return [spring, muscle, JointElement("elbow", robot.joint_names[-1], 5.0, 0.4, 0.2)]


def test_joints_accelerate_as_pinocchio_says_under_the_same_forces(arm_robot):
    """M a + h = -(dl/dq)^T F + T, with the lengths from pinocchio's frames by differences."""
    robot, rng = arm_robot, np.random.default_rng(0)
    world, elements = MultibodyWorld(robot, gains=free_gains(robot)), arm_elements(robot)
    attached = world.attach(elements)
    attached.command[:] = 0.0, 0.6
    data = robot.model.createData()

    def lengths(q):
        pin.framesForwardKinematics(robot.model, data, q)
        out = []
        for path in elements[:2]:
            X = [
                data.oMf[robot.model.getFrameId(n, pin.FrameType.BODY)] if n else pin.SE3.Identity()
                for n, _ in path.points
            ]
            at = [Y.act(np.array(r)) for Y, (_, r) in zip(X, path.points, strict=True)]
            out.append(np.linalg.norm(np.diff(at, axis=0), axis=1).sum())
        return np.array(out)

    for _ in range(3):
        q = robot.q(rng.uniform(0.5 * robot.lower, 0.5 * robot.upper))
        v, h = rng.normal(size=robot.n) * 0.5, 1e-6
        world.set_state(q, v)
        world.step()
        G = np.array([(lengths(q + h * e) - lengths(q - h * e)) / (2 * h) for e in np.eye(robot.n)]).T
        assert attached.state[:2, 0] == pytest.approx(lengths(q))
        assert attached.state[:2, 1] == pytest.approx(G @ v, abs=1e-7)
        assert attached.state[2, 2] == pytest.approx(-5.0 * (q[-1] - 0.4) - 0.2 * v[-1])
        tau = -G.T @ attached.force[:2]
        tau[-1] += attached.force[2]
        expected = pin.aba(robot.model, data, q, v, tau)
        assert world.acceleration == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())
        assert np.abs(tau).max() > 1


def test_energy_of_motion_and_springs_is_kept_to_the_order_of_the_step(arm_robot):
    robot, drift = arm_robot, []
    for h in (5e-4, 2.5e-4):
        world = MultibodyWorld(robot, WorldSettings(step=h), free_gains(robot))
        *paths, joint = arm_elements(robot)
        springs = [PathElement(e.name, e.points, SpringLaw(60.0, 0.2)) for e in paths]
        attached = world.attach([*springs, JointElement("j", joint.body, 5.0)])
        world.step(1)
        before, stored = world.stored_energy(), attached.stored_energy
        world.step(int(0.1 / h))
        drift.append(abs(world.stored_energy() + attached.stored_energy - before - stored))
    assert abs(attached.stored_energy - stored) > 0.3, "the springs gave energy"
    assert drift[0] < 0.2 * abs(attached.stored_energy - stored)
    assert drift[1] == pytest.approx(drift[0] / 2, rel=0.4)


def test_a_robot_on_a_rope_hangs_with_its_weight_and_falls_without():
    robot = load_robot("lola", "floating")
    world = MultibodyWorld(robot)
    weight = 9.81 * pin.computeTotalMass(robot.model)
    X = world.link_pose(robot.root_link)
    X.translation += [0.0, 0.0, 1.0]
    world.set_state(X_world_root=X)
    top = X.translation + [0.0, 0.0, 1.0]
    rope = PathElement("rope", [(ENVIRONMENT, top), (robot.root_link, [0.0, 0.0, 0.0])], SpringLaw(2e4, 1.0, 2e3, True))
    attached = world.attach([rope])
    world.step(1500)
    assert not world.diverged and attached.force[0] == pytest.approx(weight, rel=0.05)
    assert np.abs(world.forces).max() == 0, "it touches nothing"
    height = world.link_pose(robot.root_link).translation[2]
    assert height == pytest.approx(X.translation[2] - weight / 2e4, abs=0.02)
    world.attach([])
    world.step(200)
    fallen = world.link_pose(robot.root_link).translation[2] - height
    assert fallen == pytest.approx(-0.5 * 9.81 * 0.2**2, rel=0.3)


def test_robots_with_motors_feel_them_too():
    robot = load_robot("lola", "floating")
    spring = PathElement("s", [(ENVIRONMENT, [0, 0, 9]), (robot.root_link, [0, 0, 0])], SpringLaw(1e3, 1.0))
    force = []
    for elements in ([], [spring]):
        world = DrivenWorld(robot, WorldSettings(drives="rigid"))
        world.attach(elements)
        world.step(1)
        force.append(world.acceleration[2])
    assert force[1] > force[0] + 10


@pytest.mark.parametrize(
    ("words", "element"),
    [
        ("unknown link 'hend'", PathElement("p", [("", [0, 0, 0]), ("hend", [0, 0, 0])], SpringLaw(1.0))),
        ("must be three numbers", PathElement("p", [("", [0, 0, 0]), ("torso", [0, 0])], SpringLaw(1.0))),
        ("unknown body 'elbow'", JointElement("j", "elbow", 1.0)),
    ],
)
def test_what_cannot_be_attached_is_refused_and_changes_nothing(words, element, arm_robot):
    world = MultibodyWorld(arm_robot)
    if isinstance(element, PathElement) and element.points[1][0] == "torso":
        element = PathElement("p", [("", [0, 0, 0]), (arm_robot.root_link, [0, 0])], SpringLaw(1.0))
    with pytest.raises(HumanoidError) as e:
        world.attach([element])
    assert words in str(e.value) and "\n" not in str(e.value)
    world.step(5)
    assert not world.diverged
