"""Node human_motion over DDS: angles and moments live, plates, calibration, bad input; a robot that imitates."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.errors import ConfigError
from humanoid_control.mocap import MarkerClip
from humanoid_control.nodes.human.plates import parse_frames, read_wrench
from humanoid_control.nodes.human_motion import HumanMotion
from test.nodes.interfaces import TF2_MSGS, with_package
from test.nodes.test_live_source import Camera
from test.nodes.test_trajectory_streamer import positions
from test.stick_person import stick_person, swaying, write_osim

pytestmark = [pytest.mark.ros, pytest.mark.patient]
NODE, RATE = "human_motion", 60
QUIET = ("missed_warn:=100.0", "missed_error:=100.0")
TO_Z_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
PERSON = stick_person()
TIMES = 3.0 + np.arange(90 * RATE) / RATE  # longer than any test plays it
Q = swaying(PERSON, TIMES)
Q[:, PERSON.index("pelvis_ty")] -= PERSON.marker_positions(PERSON.rest)[0][:, 1].min()
LABELS = tuple(m.name for m in PERSON.markers)
CLIP = MarkerClip("sway", LABELS, RATE, PERSON.marker_positions(Q) @ TO_Z_UP.T, "test")
WEIGHT = PERSON.mass * 9.80665


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_osim(PERSON, tmp_path_factory.mktemp("model") / "sticks.osim")


class Stage(Camera):
    """A camera, and two plates below the person's feet, each with half of the weight."""

    def __init__(self, graph, plates=True, clip=CLIP):
        super().__init__(graph, clip)
        self.plates = [graph.publisher(WrenchStamped, f"plates/plate{k}") for k in (1, 2)] if plates else []
        self.force = WEIGHT / 2

    def send(self, change=None, labels=None):
        for k, publisher in enumerate(self.plates):
            m = WrenchStamped()
            m.header.stamp = self.graph.node.get_clock().now().to_msg()
            m.header.frame_id = f"corner{k + 1}"  # its place is that of the parameter: 0.1 m beside the foot
            m.wrench.force.z = self.force
            m.wrench.torque.y, m.wrench.torque.x = -0.1 * self.force, 0.0
            publisher.publish(m)
        super().send(change, labels)


FRAMES = "plate_frames:=corner1=-0.1,-0.09,0; corner2=-0.1,0.09,0,0,0,0,1"


def test_angles_of_the_person_come_with_every_frame_and_moments_where_plates_explain_them(graph, model):
    states = graph.listen(JointState, "human/joint_states")
    residual, shown = graph.listen(WrenchStamped, "human/residual"), graph.listen(MarkerArray, "human/markers")
    points = graph.listen(MarkerArray, "human/points")
    graph.start(NODE, *QUIET, f"model:={model}", "plates:=2", FRAMES)
    stage = Stage(graph)
    graph.until(lambda: states and shown and points and residual, "all topics", meanwhile=stage.send)

    def share():
        """Frames of three seconds that were answered; a busy machine leaves some out."""
        begun, sent = len(states), len(stage.sent)
        stage.play(3.0)
        graph.spin(0.2)
        return (len(states) - begun) / (len(stage.sent) - sent)

    assert any(share() > 0.6 for _ in range(10)), "most frames are answered as soon as the machine lets them be"
    names = states[-1].name
    assert tuple(names) == PERSON.names
    sent = dict(stage.sent)
    inner = [k for k, n in enumerate(names) if not n.startswith("pelvis")]
    errors = []
    for m in states[10:]:
        ns = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
        near = min(sent, key=lambda at: abs(at - ns))
        if abs(near - ns) < 1000:
            errors.append(np.abs(np.array(m.position)[inner] - Q[sent[near]][inner]).max())
    assert len(errors) > 0.8 * len(states[10:]) and np.max(errors) < 1e-4
    # Moments are unknown where a busy machine has left a plate silent for a tenth of a second.
    effort = next(e for m in reversed(states) if np.isfinite(e := np.array(m.effort)).all())
    assert len(effort) == len(names)
    hips = [abs(effort[names.index(f"femur_{s}_0")]) for s in "rl"]
    assert max(hips) < 200
    assert residual and abs(residual[-1].wrench.force.y) < 0.2 * WEIGHT
    assert residual[-1].header.frame_id == "human/pelvis"
    layers = {m.ns: m for m in shown[-1].markers}
    assert set(layers) == {"measured", "fitted", "error", "bones", "force right", "force left"}
    assert layers["measured"].type == Marker.SPHERE_LIST and len(layers["measured"].points) == len(LABELS)
    off = [abs(a.z - b.z) for a, b in zip(layers["measured"].points, layers["fitted"].points, strict=True)]
    assert max(off) < 1e-3 and layers["measured"].colors[0].a < layers["fitted"].colors[0].a
    arrow = layers["force right"].points
    assert arrow[1].z - arrow[0].z == pytest.approx(1e-3 * WEIGHT / 2, rel=1e-3)
    assert arrow[0].x == pytest.approx(0.0, abs=1e-6) and arrow[0].y == pytest.approx(-0.09, abs=1e-6)
    named = {m.ns: m.pose.position for m in points[-1].markers}
    assert named["l_shoulder"].z > named["l_hip"].z and named["l_hip"].y > named["r_hip"].y
    said = graph.diagnostics(NODE, stage.send)
    while said["moments"] != "known":  # a busy machine may have left a plate silent for a tenth of a second
        said = graph.diagnostics(NODE, stage.send)
    assert float(said["residual_mm"]) < 1 and float(said["moments_late_ms"]) > 50
    assert said["unseen_markers"] == ""
    rates = []  # those that the node tells, and those at which this process sent, be it as busy as it may

    def told_as_sent():
        begin, count = time.monotonic(), len(stage.sent)
        told = float(graph.diagnostics(NODE, stage.send)["markers_hz"])
        rates.append((told, (len(stage.sent) - count) / (time.monotonic() - begin)))
        return told == pytest.approx(rates[-1][1], rel=0.2)

    told_as_sent()  # begins within a period of the diagnostics
    assert any(told_as_sent() for _ in range(20)), rates
    assert max(told for told, _ in rates) < 1.2 * RATE


@pytest.mark.nightly
def test_without_plates_efforts_are_not_guessed_and_a_plate_that_falls_silent_is_told(graph, model):
    states = graph.listen(JointState, "human/joint_states")
    graph.start(NODE, *QUIET, f"model:={model}", "plates:=2", FRAMES)
    stage = Stage(graph)
    graph.until(lambda: states and np.isfinite(states[-1].effort).all(), "moments", meanwhile=stage.send)
    silent = stage.plates.pop()
    stage.play(1.0)
    assert np.isnan(states[-1].effort).all() and np.isfinite(states[-1].position).all()
    assert "plates/plate2 is silent" in graph.until_said(NODE, "silent", stage.send)["message"]
    stage.plates.append(silent)
    graph.until(lambda: np.isfinite(states[-1].effort).all(), "known again", meanwhile=stage.send)
    stage.force = float("nan")
    stage.play(0.5)
    assert "non-numeric" in graph.until_said(NODE, "non-numeric", stage.send)["message"]
    assert np.isnan(states[-1].effort).all()


@pytest.mark.nightly
def test_markers_of_nobody_nonsense_and_silence_are_told_and_survived(graph, model):
    states = graph.listen(JointState, "human/joint_states")
    graph.start(NODE, *QUIET, f"model:={model}")
    assert "no markers" in graph.until_said(NODE, "no markers")["message"]
    stage = Stage(graph, plates=False)
    stage.play(0.5, labels=tuple(f"lamp{k}" for k in range(len(LABELS))))
    assert not states
    assert (
        "0 of the 56 markers of the model are visible"
        in graph.until_said(
            NODE,
            "markers of the model are visible",
            lambda: stage.send(labels=tuple(f"lamp{k}" for k in range(len(LABELS)))),
        )["message"]
    )
    assert "too large" in graph.until_said(NODE, "too large", lambda: stage.send(lambda at: 20 * at))["message"]
    assert not states
    stage.play(1.0)
    assert states, "and goes on once they are a person's"
    heard = len(states)
    stage.play(0.5, lambda at: np.full_like(at, np.nan))
    stage.play(0.2, lambda at: at + 1e300)
    stage.play(1.0)
    assert len(states) > heard and np.isfinite(states[-1].position).all()
    assert "recovered" in graph.output(next(iter(graph.processes.values())))
    said = graph.until_said(NODE, "ok", stage.send)
    assert said["level"] == 0


@pytest.mark.nightly
def test_a_few_seconds_of_motion_calibrate_the_person(graph, model):
    larger = PERSON.scaled(dict.fromkeys(PERSON.body_names, 1.08))
    clip = MarkerClip("larger", LABELS, RATE, larger.marker_positions(Q) @ TO_Z_UP.T, "test")
    graph.start(NODE, *QUIET, f"model:={model}", "calibration:=2.0")
    early = graph.call(Trigger, f"{NODE}/calibrate")
    assert not early.success and "no markers" in early.message
    stage = Stage(graph, plates=False, clip=clip)
    stage.play(1.0)
    before = float(graph.diagnostics(NODE, stage.send)["residual_mm"])
    answer = graph.call(Trigger, f"{NODE}/calibrate")
    assert answer.success and "perform any motion for 2 s" in answer.message

    def begun() -> bool:
        said = graph.diagnostics(NODE, stage.send)
        return "calibrating" in said["message"] or "mm after" in said.get("calibrated", "")

    graph.until(begun, "a calibration")
    stage.play(3.0)
    said = graph.until_said(NODE, "ok", stage.send)
    assert before > 5 and float(said["residual_mm"]) < 0.2 * before and "mm after" in said["calibrated"]


def test_a_calibration_that_outlives_its_activation_is_not_the_next_one():
    """The node is deactivated and activated while the worker computes; then a new calibration is asked for."""
    ends, nothing = threading.Event(), lambda: None
    fake = SimpleNamespace(
        live=SimpleNamespace(restart=nothing, person=PERSON, turn=np.eye(3), labels=LABELS),
        dynamics=SimpleNamespace(restart=nothing),
        health=SimpleNamespace(report=lambda *_: None),
    )
    recorder = SimpleNamespace(add=lambda *_: True, calibrate=lambda *_: ends.wait(60), collected=0.0, duration=8.0)
    HumanMotion.activate(fake)
    fake.recorder = recorder
    HumanMotion.record(fake, np.zeros((1, 3)), 0.0)
    worker = fake.worker
    HumanMotion.activate(fake)
    fake.recorder = SimpleNamespace(add=lambda *_: False, collected=0.0, duration=8.0)
    ends.set()
    worker.join()
    HumanMotion.check_calibration(fake)
    assert fake.recorder is not None, "it still records"


@pytest.mark.nightly
def test_segments_are_a_tree_of_transforms(graph, model, monkeypatch):
    with_package("tf2_msgs", TF2_MSGS, monkeypatch)
    from tf2_msgs.msg import TFMessage

    heard = graph.listen(TFMessage, "/tf", 200)
    graph.start(NODE, *QUIET, f"model:={model}", fresh=True)
    stage = Stage(graph, plates=False)
    graph.until(lambda: heard, "transforms", meanwhile=stage.send)
    tree = {t.child_frame_id: t for t in heard[-1].transforms}
    assert len(tree) == len(PERSON.bodies) and tree["human/pelvis"].header.frame_id == "world"
    assert tree["human/hand_r"].header.frame_id == "human/ulna_r"
    assert tree["human/tibia_l"].transform.translation.y == pytest.approx(-0.42, abs=1e-4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("model:=nobody",), "nobody"),
        (("model:=person", "template:=plugingait"), "did you mean plug_in_gait"),
        (("model:=no.osim",), "file not found: no.osim"),
        (("plates:=2", "plate_frames:=a=1,2"), "plate_frames contains"),
        (("setup:=no.xml",), "no.xml"),
        (("bandwidth:=0.0",), "1 .. 50"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(graph, model, given, words):
    own = () if given[0].startswith("model") else (f"model:={model}",)
    process = graph.start(NODE, *own, *given, wait=False)
    assert process.wait(60) == 2
    line = graph.output(process).strip().splitlines()[-1]
    assert words in line and "Traceback" not in graph.output(process)


def test_places_of_plates_are_read():
    X = parse_frames(["a=1,2,3", " b = 0,0,0, 0,0,1,0"])
    assert X["a"].translation.tolist() == [1, 2, 3] and X["b"].rotation[0, 0] == pytest.approx(-1)
    for row in ("a", "a=1,2,x", "a=0,0,0,0,0,0,0", "=1,2,3", "a=1,2,nan"):
        with pytest.raises(ConfigError, match="plate_frames contains"):
            parse_frames([row])


@pytest.mark.parametrize("frame", ["", "world", "corner1", "a frame with a long name"])
def test_a_wrench_is_read_as_ros_reads_it(frame):
    m = WrenchStamped()
    m.header.frame_id, m.header.stamp.sec = frame, 12
    m.wrench.force.x, m.wrench.force.z, m.wrench.torque.y = 1.5, -700.25, 3e-5
    read, numbers = read_wrench(serialize_message(m))
    assert read == frame and numbers.tolist() == [1.5, 0.0, -700.25, 0.0, 3e-5, 0.0]
    with pytest.raises(ConfigError, match="not a WrenchStamped"):
        read_wrench(serialize_message(m)[:20])


def test_a_robot_imitates_the_person(graph, model):
    """The wiring of the stack `human`: markers to the person, its joint centres to targets, targets to commands."""
    from humanoid_control.session.stacks import STACKS

    stack, robot = STACKS["human"], "robot:=hrp2"
    targets, commands = graph.listen(MarkerArray, "targets"), graph.listen(JointState, "joint_commands")
    graph.start("simulator", robot, "rate:=200.0")
    graph.start("state_estimator", robot)
    graph.start("whole_body_ik", robot, *QUIET)
    remaps = stack.remaps["trajectory_streamer"]
    args = tuple(w for a, b in remaps.items() for w in ("-r", f"{a}:={b}"))
    own = tuple(f"{k}:={v}" for k, v in stack.settings["trajectory_streamer"].items())
    graph.start("trajectory_streamer", robot, *own, "live_calibration:=1.0", "lead_in:=0.3", args=args)
    graph.start(NODE, *QUIET, f"model:={model}")
    stage = Stage(graph, plates=False)
    begin = time.monotonic()
    while time.monotonic() - begin < 200 and not (len(targets) > 240 and commands):
        stage.play(0.5)
    moved = np.array([positions(m) for m in targets[120:]])
    assert np.linalg.norm(np.ptp(moved, axis=0), axis=1).max() > 0.05, "hands move"
    joints = np.array([m.position for m in commands[::10]])
    assert np.ptp(joints, axis=0).max() > 0.1, "and so does the robot"
    end = time.monotonic() + 60
    # a busy machine may take so long from a marker to a target that the clocks seem to differ
    while "target" in (said := graph.diagnostics("whole_body_ik", stage.send))["message"]:
        assert time.monotonic() < end, said
