"""Live markers over DDS: the clip's own targets, occlusions, silence, bad input; latency."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Pose, PoseArray
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.mocap import find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.nodes.streaming.live_source import SourceClock
from humanoid_control.retargeting import POINTS
from humanoid_control.retargeting.scaling import Scaler
from humanoid_control.robots import load_robot
from test.nodes.test_trajectory_streamer import NODE, check_reference, positions, stamp

pytestmark = [pytest.mark.ros, pytest.mark.patient]
DANCE = synthetic_dance(duration=24, rate=50)


class Camera:
    """Plays a clip as live markers, in real time, with the stamps of the moments at which it sends."""

    def __init__(self, graph, clip, kind=MarkerArray, only_seen=True):
        self.graph, self.clip, self.kind, self.only_seen = graph, clip, kind, only_seen
        self.publisher = graph.publisher(kind, "markers")
        self.targets = graph.listen(MarkerArray, "targets")
        self.sent: dict[int, int] = {}
        self.frame = 0
        self._next = time.monotonic()

    def message(self, at, labels):
        now = self.graph.node.get_clock().now()
        if self.kind is PoseArray:
            m = PoseArray()
            m.header.stamp = now.to_msg()
            for p in at:
                pose = Pose()
                pose.position.x, pose.position.y, pose.position.z = map(float, p)
                m.poses.append(pose)
            return m, now.nanoseconds
        m = MarkerArray()
        for k, (label, p) in enumerate(zip(labels, at, strict=True)):
            if self.only_seen and np.isnan(p).any():
                continue
            marker = Marker(ns="camera", text=label, id=k, type=Marker.SPHERE)
            marker.header.stamp = now.to_msg()
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = map(float, p)
            m.markers.append(marker)
        return m, now.nanoseconds

    def send(self, change=None, labels=None):
        """One frame, when it is due; `change(positions)` spoils it, None sends nothing."""
        wait = self._next - time.monotonic()
        if wait > 0:
            self.graph.spin(wait)
        self._next = max(self._next + 1 / self.clip.rate, time.monotonic())
        at = np.array(self.clip.positions[self.frame % self.clip.n_frames])
        at = change(at) if change is not None else at
        if at is not None:
            m, ns = self.message(at, labels or self.clip.labels)
            self.sent[ns] = self.frame
            self.publisher.publish(m)
        self.frame += 1

    def play(self, seconds, change=None, labels=None):
        for _ in range(round(seconds * self.clip.rate)):
            self.send(change, labels)

    def rates(self):
        """How often frames were sent [Hz], averaged over about ten of them, after each frame."""
        smooth, out = 1e9 / self.clip.rate, []
        for interval in np.diff(sorted(self.sent)):
            smooth += 0.1 * (interval - smooth)
            out.append(1e9 / smooth)
        return np.array(out)

    def heard(self):
        """Targets with the frame they come from: (frame, (7, 3)); those of held postures are left out."""
        stamps, out = np.array(sorted(self.sent)), []
        for m in self.targets:
            s = m.markers[0].header.stamp
            ns = s.sec * 10**9 + s.nanosec
            near = int(stamps[np.argmin(np.abs(stamps - ns))])
            if abs(near - ns) < 1000:
                out.append((self.sent[near], positions(m)))
        return out

    def fastest(self):
        """Of all targets, by their stamps [m/s]."""
        p, t = np.array([positions(m) for m in self.targets]), np.array([stamp(m) for m in self.targets])
        dt, step = np.diff(t), np.linalg.norm(np.diff(p, axis=0), axis=2).max(axis=1)
        assert (dt >= -1e-9).all() and (step[dt < 1e-6] < 1e-4).all()
        return (step / np.maximum(dt, 1e-4)).max()


def offline(clip, seconds):
    """Targets of the clip, calibrated over its first seconds, as live markers are."""
    body, n = find_body_points(clip), round(seconds * clip.rate) + 1
    first = BodyPoints(body.name, body.rate, body.names, body.positions[:n].copy(), body.missing.copy())
    return Scaler(first, load_robot("hrp2", "fixed")).targets(body).positions


def gone(clip, *labels):
    columns = [clip.index(label) for label in labels]

    def change(at):
        at[columns] = np.nan
        return at

    return change


@pytest.mark.parametrize("relative", [None, pytest.param("dance_markers/dance1.trc", marks=pytest.mark.thorough)])
@pytest.mark.timed
def test_live_markers_give_the_targets_of_the_clip_at_once(graph, relative, mocap):
    """MarkerArray at the clip's rate: agreement, latency, no target before the calibration."""
    clip = DANCE if relative is None else load_clip(mocap(relative))
    graph.start(NODE, "source:=live", "lead_in:=0.3", "live_calibration:=1.0", "live_max_speed:=20.0")
    said = graph.diagnostics(NODE)
    assert "no targets" in said["message"] and said["level"] == 1
    camera = Camera(graph, clip)
    camera.play(0.9)
    assert not camera.targets
    camera.play(2.0)
    found = [(k, p) for k, p in camera.heard() if k > 2.0 * clip.rate]
    assert len(found) > 0.8 * 0.9 * clip.rate, "a target for every frame"
    wanted = offline(clip, 1.0)
    error = np.array([np.linalg.norm(p - wanted[k], axis=1).max() for k, p in found])
    values = graph.diagnostics(NODE, camera.send)
    figures = {k: values[k] for k in ("added_p50_ms", "added_p99_ms", "latency_p50_ms", "latency_p99_ms")}
    print(f"agreement: median {1000 * np.median(error):.3g} mm, worst {1000 * error.max():.3g} mm; {figures}")
    assert np.quantile(error, 0.7) < 1e-9, (
        "to rounding; frames behind a pause of a busy machine may be on their way back"
    )
    assert error.max() < 0.15
    assert values["marker_set"] == ("dance16" if relative is None else "dance28") and values["calibrated"] == "True"
    # What it takes is measured by benches; here, on a machine that may be busy: less than half a frame of the camera.
    assert 0 < float(values["added_p50_ms"]) < 10.0
    assert float(values["added_p50_ms"]) < float(values["latency_p50_ms"]) < 40.0
    rates = camera.rates()[-2 * round(clip.rate) :]
    assert 0.9 * rates.min() < float(values["markers_hz"]) < 1.1 * rates.max(), "as often as the camera sent of late"


def test_occlusions_hold_and_fade_silence_is_said_and_everything_recovers(graph):
    """PoseArray in a given order, hidden markers as NaN and as zeros."""
    labels = f"live_labels:={', '.join(DANCE.labels)}"
    graph.start(NODE, "source:=live", labels, "lead_in:=0.3", "live_calibration:=1.0", "live_max_speed:=6.0")
    camera = Camera(graph, DANCE, PoseArray)
    camera.play(3.0)
    assert camera.targets
    graph.until_said(NODE, "ok", camera.send)
    graph.until_said(NODE, "l_wrist (Wrist_L)", lambda: camera.send(gone(DANCE, "Wrist_L")))
    graph.until_said(NODE, "ok", camera.send)
    for nothing in (lambda at: np.zeros_like(at), lambda at: None):
        graph.until_said(NODE, "the last good posture is held", lambda n=nothing: camera.send(n))
        count = len(camera.targets)
        camera.play(0.5, nothing)
        held = np.array([positions(m) for m in camera.targets[count:]])
        assert len(held) > 10 and np.ptp(held, axis=0).max() < 1e-9, "published on, at rest"
        graph.until_said(NODE, "ok", camera.send)
    assert np.isfinite([positions(m) for m in camera.targets]).all()
    assert camera.fastest() < 6.5


@pytest.mark.nightly
def test_missing_arms_and_bad_messages_are_said_and_break_nothing(graph):
    process = graph.start(NODE, "source:=live", "lead_in:=0.3", "live_calibration:=0.5")
    camera = Camera(graph, DANCE)
    arms = ("Elbow_L", "Wrist_L", "Elbow_R", "Wrist_R")
    said = graph.until_said(NODE, "so no targets: ", lambda: camera.send(gone(DANCE, *arms)))
    assert all(label in said["message"] for label in arms)
    assert not camera.targets
    graph.until_said(NODE, "in metres", lambda: camera.send(lambda at: 30.0 * at))
    graph.until_said(NODE, "ok", camera.send)
    double = ["Wrist_L" if label == "Foot_R" else label for label in DANCE.labels]
    graph.until_said(NODE, "Wrist_L is duplicate", lambda: camera.send(labels=double))
    rng = np.random.default_rng(0)
    for _ in range(60):
        camera.send(lambda at: at + rng.choice([0.0, 1.0, np.inf, np.nan], size=at.shape))
    camera.play(0.3, labels=["x"] * len(DANCE.labels))
    graph.until_said(NODE, "ok", camera.send)
    p = np.array([positions(m) for m in camera.targets])
    assert np.isfinite(p).all() and camera.fastest() < 6.5
    assert process.poll() is None and "Traceback" not in graph.output(process)


def test_a_pose_array_of_another_length_is_said(graph):
    graph.start(NODE, "source:=live", "live_labels:=a, b, c")
    camera = Camera(graph, DANCE, PoseArray)
    said = graph.until_said(NODE, "PoseArray of 17 poses, live_labels has 3", camera.send)
    assert said["level"] > 0 and not camera.targets


@pytest.mark.nightly
def test_pause_play_and_calibrate_again(graph):
    graph.start(NODE, "source:=live", "lead_in:=0.3", "live_calibration:=2.5")
    camera = Camera(graph, DANCE)
    graph.until_said(NODE, "ok", camera.send)

    def call(name):
        client = graph.node.create_client(Trigger, f"{NODE}/{name}")
        future = client.call_async(Trigger.Request())
        graph.until(future.done, name, meanwhile=camera.send)
        return future.result()

    assert call("pause").success
    camera.play(0.3)
    camera.targets.clear()
    camera.play(1.0)
    assert np.ptp([positions(m) for m in camera.targets], axis=0).max() < 1e-9
    assert call("play").success
    camera.play(1.0)
    assert np.ptp([positions(m) for m in camera.targets], axis=0).max() > 0.02
    assert call("calibrate").message == "stand upright"
    graph.until_said(NODE, "stand upright", camera.send)
    graph.until_said(NODE, "ok", camera.send)
    assert camera.fastest() < 6.5


@pytest.mark.timed
def test_live_markers_to_joints(graph):
    """The whole way in one node: markers in, joint positions out, at the node's own rate, through an occlusion."""
    graph.start(NODE, "source:=live", "solve:=true", "start_blind:=true", "live_rate:=100.0", "live_calibration:=0.5",
                wait=False)  # fmt: skip
    reference = graph.listen(JointState, "reference_joint_states")
    graph.until(lambda: reference, "reference joint states", timeout=90)
    camera = Camera(graph, DANCE)
    camera.play(1.5)
    camera.play(0.5, lambda at: None)
    camera.play(0.5, gone(DANCE, "Wrist_R", "Elbow_L"))
    camera.play(0.5)
    robot = load_robot("hrp2", "fixed")
    p = check_reference(reference, robot, 100.0)
    assert len(p) > 230 and np.ptp(p, axis=0).max() > 0.2
    values = graph.diagnostics(NODE, camera.send)
    print({k: v for k, v in values.items() if k.startswith(("reference", "latency", "execution"))})
    assert float(values["reference_step_p50_ms"]) < 5.0
    assert len(positions(camera.targets[-1])) == len(POINTS)


def test_stamps_take_the_jitter_out_and_another_clock_does_not_matter():
    rng = np.random.default_rng(0)
    for offset in (0.0, 1.7e9, -5.0):
        clock, stamps = SourceClock(), np.arange(300) / 100 + offset
        arrivals = np.arange(300) / 100 + 0.02 + rng.exponential(0.004, 300)
        times = np.array([clock.time(s, a) for s, a in zip(stamps, arrivals, strict=True)])
        assert (times <= arrivals + 1e-6).all()
        assert np.abs(np.diff(times)[100:] - 0.01).max() < 1e-3 < np.abs(np.diff(arrivals)[100:] - 0.01).mean()


def test_stamps_that_stand_still_tell_nothing():
    clock = SourceClock()
    assert [clock.time(0.0, a) for a in (5.0, 5.1, 5.25)] == [5.0, 5.1, 5.25]


def test_a_clock_that_is_set_is_followed_at_once():
    clock = SourceClock()
    assert clock.time(10.0, 50.0) == 50.0
    assert clock.time(100.0, 50.01) == 50.01
