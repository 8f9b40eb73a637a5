"""What the inverse kinematics shows: the bytes are the message, shapes stand where coal has them, and nobody pays."""

import numpy as np
import pinocchio as pin
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.ik import TargetFollower
from humanoid_control.nodes.base.messages import STREAM_IN, target_markers
from humanoid_control.nodes.whole_body_ik import PAIRS, RED, IkMarkers, colors_of
from humanoid_control.robots import load_robot

NAMES = {"shapes", "near_pairs", "closest_points", "centre_of_mass", "linear_momentum", "angular_momentum"}
MARGIN, ACTIVATION = 0.02, 0.12


class NoNode:
    """A node that publishes nothing."""

    def create_publisher(self, *_):
        return None


def xyz(p):
    return np.array([p.x, p.y, p.z])


@pytest.fixture(scope="module", params=["lola", "hrp2"])
def scene(request):
    """A robot that pulls its hands into its trunk, the result of that, and the markers of it."""
    robot = load_robot(request.param, "fixed")
    markers, follower = IkMarkers(NoNode(), robot), TargetFollower(robot)
    trunk = robot.point_positions(robot.q(), ["sternum"])[0] - [0.0, 0.0, 0.15]
    for k in range(150):
        for name in ("l_wrist", "r_wrist"):
            follower.update(name, trunk.tolist(), None, 0.01 * k)
        result = follower.step(0.01 * k, 0.01)
        if k == 20:
            moving = result
    read = [
        deserialize_message(markers.write(Time(sec=7, nanosec=9), r, MARGIN, ACTIVATION), MarkerArray).markers
        for r in (moving, result)
    ]
    return robot, markers, (moving, result), read


def test_a_robot_without_shapes_shows_the_rest():
    robot = load_robot("kengoro_upper", "fixed")
    assert not len(robot.shapes), "else this says nothing"
    markers, follower = IkMarkers(NoNode(), robot), TargetFollower(robot)
    follower.update("l_wrist", [0.2, 0.3, 1.0], None, 0.0)
    result = follower.step(0.01, 0.01)
    read = deserialize_message(markers.write(Time(sec=7), result, MARGIN, ACTIVATION), MarkerArray).markers
    assert {m.ns for m in read} == NAMES - {"shapes"}
    shown = next(m for m in read if m.ns == "centre_of_mass")
    assert xyz(shown.pose.position) == pytest.approx(robot.center_of_mass(result.q), abs=1e-9)


def test_every_marker_is_in_the_world_has_its_stamp_and_goes_by_itself(scene):
    *_, (_, markers) = scene
    assert {m.ns for m in markers} == NAMES
    assert len({(m.ns, m.id) for m in markers}) == len(markers)
    for m in markers:
        assert (m.header.frame_id, m.header.stamp.sec, m.header.stamp.nanosec) == ("world", 7, 9)
        assert 0 < m.lifetime.sec + 1e-9 * m.lifetime.nanosec < 2
        assert np.isclose(np.linalg.norm([getattr(m.pose.orientation, a) for a in "xyzw"]), 1.0)


def test_the_solids_hold_just_what_the_collision_shapes_hold(scene):
    """Random points of the drawn surfaces are on the shapes of coal, or inside them where a cap meets its cylinder."""
    import coal

    robot, markers, (_, result), (_, drawn) = scene
    data, gdata = robot.model.createData(), robot.geometry.createData()
    pin.forwardKinematics(robot.model, data, result.q)
    pin.updateGeometryPlacements(robot.model, data, robot.geometry, gdata)
    rng, seen = np.random.default_rng(0), np.full(len(robot.shapes), -np.inf)
    for part, m in zip(markers._parts.shape, drawn, strict=False):
        X = pin.XYZQUATToSE3(np.array([*xyz(m.pose.position), *(getattr(m.pose.orientation, a) for a in "xyzw")]))
        u = rng.normal(size=(40, 3))
        u /= np.linalg.norm(u, axis=1)[:, None]
        if m.type == Marker.CUBE:
            u /= np.abs(u).max(axis=1)[:, None]
        elif m.type == Marker.CYLINDER:
            u[:, :2] /= np.linalg.norm(u[:, :2], axis=1)[:, None]
            u[:, 2] = rng.uniform(-1, 1, len(u))
        for p in u * xyz(m.scale) / 2:
            x = coal.Transform3s(np.eye(3), X.act(p))
            g = robot.geometry.geometryObjects[int(part)].geometry
            place = gdata.oMg[int(part)]
            d = coal.distance(
                coal.Sphere(1e-6),
                x,
                g,
                coal.Transform3s(place.rotation, place.translation),
                coal.DistanceRequest(),
                coal.DistanceResult(),
            )
            assert d < 2e-3, robot.shapes[int(part)].name
            seen[int(part)] = max(seen[int(part)], d)
    assert (seen > -4e-3).all(), "no shape is drawn too small"


def test_colours_are_those_of_the_distances(scene):
    robot, markers, (_, result), _ = scene
    clearance = robot.shape_clearance(result.q)
    margin = clearance.min() + 0.005
    drawn = deserialize_message(markers.write(Time(), result, margin, ACTIVATION), MarkerArray).markers
    red = {robot.shapes[k].name for k in np.flatnonzero(clearance < margin)}
    far = {robot.shapes[k].name for k in np.flatnonzero(clearance > ACTIVATION + 0.01)}
    assert len(red) >= 2
    for part, m in zip(markers._parts.shape, drawn, strict=False):
        name, c = robot.shapes[int(part)].name, (m.color.r, m.color.g, m.color.b)
        if name in red:
            assert np.allclose(c, RED[:3], atol=1e-6), name
        if name in far:
            assert max(c) - min(c) < 0.1, f"{name} is grey"
    yellow = colors_of(np.array([MARGIN + 0.002]), MARGIN, ACTIVATION)[0]
    assert yellow[0] > 0.9 and yellow[1] > 0.7 and yellow[2] < 0.2


def test_lines_join_the_closest_points_of_the_near_pairs(scene):
    """The nearest ones, as many as are near, at the distances that coal measures, the smallest first."""
    robot, _, (_, result), (_, drawn) = scene
    lines = next(m for m in drawn if m.ns == "near_pairs")
    ends = np.array([xyz(p) for p in lines.points]).reshape(-1, 2, 3)
    near = np.sort(result.near.distance[result.near.distance < ACTIVATION])
    n = min(len(near), PAIRS)
    assert n > 5 and len(ends) == PAIRS
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, result.q)
    assert near[:n] == pytest.approx(np.sort(robot.self_distance().all_distances(data))[:n], abs=3e-3)
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    assert lengths[:n] == pytest.approx(np.abs(near[:n]), abs=1e-9)
    assert (ends[n:] == ends[n - 1]).all(), "what is left over hides behind the last"
    assert len(np.unique(np.round(ends[:n].reshape(n, 6), 9), axis=0)) == n
    assert len(lines.colors) == len(lines.points)
    dots = next(m for m in drawn if m.ns == "closest_points")
    assert [xyz(p).tolist() for p in dots.points] == [xyz(p).tolist() for p in lines.points]


def test_nothing_near_draws_no_lines(scene):
    _, markers, (_, result), _ = scene
    drawn = deserialize_message(markers.write(Time(), result, 0.0, 1e-6), MarkerArray).markers
    assert {m.ns: m.action for m in drawn}["near_pairs"] == Marker.DELETE
    assert {m.ns: m.action for m in drawn}["closest_points"] == Marker.DELETE


def test_arrows_are_the_momentum_by_finite_differences(scene):
    robot, _, (result, _), (drawn, _) = scene
    by_name = {m.ns: m for m in drawn}
    com = robot.center_of_mass(result.q)
    assert np.allclose(xyz(by_name["centre_of_mass"].pose.position), com, atol=1e-9)
    h, data = 1e-6, robot.model.createData()
    a, b = (np.array(pin.centerOfMass(robot.model, data, result.q + s * h * result.v)) for s in (-1, 1))
    linear = data.mass[0] * (b - a) / (2 * h)
    arrow = np.subtract(*(xyz(p) for p in reversed(by_name["linear_momentum"].points)))
    assert np.linalg.norm(linear) > 0.05, "it moves"
    assert np.allclose(arrow / np.linalg.norm(arrow), linear / np.linalg.norm(linear), atol=1e-5)
    pin.computeCentroidalMomentum(robot.model, data, result.q, result.v)
    turn = np.subtract(*(xyz(p) for p in reversed(by_name["angular_momentum"].points)))
    assert np.allclose(np.cross(turn, data.hg.angular), 0, atol=1e-9)


@pytest.mark.ros
@pytest.mark.patient
def test_the_node_publishes_markers_while_somebody_listens_and_then_no_more(graph):
    graph.start("whole_body_ik", "robot:=lola", "rate:=100.0", "start_blind:=true")
    robot = load_robot("lola", "fixed")
    commands = graph.listen(JointState, "joint_commands")
    graph.until(lambda: len(commands) > 20, "commands")
    values = graph.diagnostics("whole_body_ik")
    assert values["markers_p50_ms"] == "nan", "nothing is made for nobody"
    heard = []
    subscription = graph.node.create_subscription(MarkerArray, "ik_markers", heard.append, STREAM_IN)
    graph.until(lambda: len(heard) >= 10, "markers")
    stamps = np.array([m.markers[0].header.stamp.sec + 1e-9 * m.markers[0].header.stamp.nanosec for m in heard])
    assert 0.03 < np.median(np.diff(stamps)) < 0.2, "twenty a second"
    assert {m.ns for m in heard[-1].markers} == NAMES
    targets = graph.publisher(MarkerArray, "targets")
    goal = target_markers(("l_wrist",))
    position = robot.point_positions(robot.q(), ["l_wrist"])[0] + [0.1, 0.1, 0.1]
    goal.markers[0].pose.position.x, goal.markers[0].pose.position.y, goal.markers[0].pose.position.z = position
    before = np.array([xyz(m.pose.position) for m in heard[-1].markers if m.ns == "shapes"])

    def moved():
        now = np.array([xyz(m.pose.position) for m in heard[-1].markers if m.ns == "shapes"])
        return np.abs(now - before).max() > 0.05

    graph.until(moved, "the drawn arm follows", meanwhile=lambda: targets.publish(goal))
    graph.node.destroy_subscription(subscription)
    assert float(graph.diagnostics("whole_body_ik")["markers_p50_ms"]) < 20
