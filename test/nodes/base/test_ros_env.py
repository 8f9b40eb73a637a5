"""What a node finds in its environment, however it was started: discovery, and a folder for its logs."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.base import ros_env
from humanoid_control.nodes.base.ros_env import choose_discovery
from humanoid_control.paths import home_dir, share_dir
from test.places import domain
from test.robots_under_test import nightly

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILES = "FASTDDS_DEFAULT_PROFILES_FILE"
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
PRINTS = f"import humanoid_control.nodes, os; print(os.environ.get('{RANGE}'))"
STARTS = """
import humanoid_control.nodes, os, rclpy
rclpy.init(); node = rclpy.create_node("alone"); node.get_logger().info("hello"); node.destroy_node(); rclpy.shutdown()
print("done", os.environ.get("ROS_LOG_DIR"))
"""

LISTENS = """
import humanoid_control.nodes, json, os, re, rclpy
from pathlib import Path
rclpy.init(); node = rclpy.create_node("alone")
files = [os.readlink(f) for f in Path("/proc/self/fd").iterdir() if f.is_symlink()]
own = {m[1] for name in files if (m := re.match(r"socket:.(\\d+).", name))}
lines = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
hosts = {bytes.fromhex(w[1].split(":")[0])[::-1] for w in lines if w[9] in own}
print(json.dumps({
    "addresses": sorted(".".join(map(str, h)) for h in hosts),
    "shared memory": "/dev/shm/fast" in Path("/proc/self/maps").read_text(),
}))
node.destroy_node(); rclpy.shutdown()
"""
TALKS = """
import sys, time, rclpy
from std_msgs.msg import String
rclpy.init(); node = rclpy.create_node(sys.argv[1])
heard, publisher = set(), node.create_publisher(String, "chat", 10)
node.create_subscription(String, "chat", lambda m: heard.add(m.data), 10)
end = time.monotonic() + 30
while time.monotonic() < end:
    publisher.publish(String(data=sys.argv[1]))
    rclpy.spin_once(node, timeout_sec=0.05)
    if len(heard) == 2:
        end = min(end, time.monotonic() + 3)  # the other one may hear later
print("heard", *sorted(heard - {sys.argv[1]}))
node.destroy_node(); rclpy.shutdown()
"""


def environment(**more: str | None) -> dict[str, str]:
    """Of this process, without what the user may say about ROS."""
    named = {"ROS_DOMAIN_ID": domain("nodes"), RANGE: None, "ROS_LOG_DIR": None, "ROS_HOME": None, **more}
    left = {k: v for k, v in os.environ.items() if k not in (*ros_env.SAID, *ros_env.PROFILES, *named)}
    return {**left, **{k: v for k, v in named.items() if v is not None}}


def run(code: str, env: dict[str, str], words=(), **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.ros
@pytest.mark.patient
@pytest.mark.skipif(ros_env.ros_flavour() != "wheels", reason="an installed ROS is left as it is")
def test_a_bare_node_of_the_wheels_stays_on_this_machine():
    assert run(PRINTS, environment()).stdout == "SYSTEM_DEFAULT\n"
    seen = json.loads(run(LISTENS, environment()).stdout)
    assert seen == {"addresses": ["127.0.0.1"], "shared memory": False}


@pytest.mark.ros
@pytest.mark.patient
@pytest.mark.skipif(ros_env.ros_flavour() != "wheels", reason="an installed ROS is left as it is")
@pytest.mark.parametrize(
    "said", [{}, *map(nightly, ({RANGE: "LOCALHOST"}, {RANGE: "SUBNET"}, {"ROS_LOCALHOST_ONLY": "1"}))]
)
def test_a_tool_of_ros_on_this_machine_hears_a_bare_node(said):
    """Whatever it is told about discovery: it is no process of this package."""
    told = environment(**said)
    tool = subprocess.Popen([sys.executable, "-c", TALKS, "tool"], env=told, stdout=subprocess.PIPE, text=True)
    node = run(f"import humanoid_control.nodes\n{TALKS}", environment(), words=["node"])
    heard, _ = tool.communicate(timeout=60)
    assert node.stdout.split() == ["heard", "tool"] and heard.split() == ["heard", "node"], node.stderr


@pytest.mark.parametrize(
    ("said", "expected"),
    [({RANGE: "SUBNET"}, "SUBNET"), ({"ROS_LOCALHOST_ONLY": "0"}, None), ({"ROS_STATIC_PEERS": "10.0.0.2"}, None)],
)
def test_what_the_user_says_about_discovery_stays(said, expected):
    assert run(PRINTS, environment(**said)).stdout == f"{expected}\n"


def test_an_installed_ros_is_left_as_it_is_but_for_shared_memory(monkeypatch):
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "installed")
    for said in ({TRANSPORTS: "DEFAULT"}, {PROFILES: "mine.xml"}):
        choose_discovery(env := dict(said))
        assert env == said
    choose_discovery(env := {})
    assert env == {TRANSPORTS: "UDPv4"}
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    choose_discovery(env := {})
    assert env == {RANGE: "SYSTEM_DEFAULT", PROFILES: str(share_dir() / "config" / "one_host.xml")}
    for said in ({RANGE: "LOCALHOST"}, {"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}):
        choose_discovery(said)
        assert env == {k: v for k, v in said.items() if k != "RMW_IMPLEMENTATION"}


def test_supervised_nodes_announce_themselves_more_often(monkeypatch):
    """Also where the supervisor itself has the package's usual profile; profiles of the user stay."""
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    choose_discovery(own := {})
    for env in ({}, own):
        choose_discovery(env, supervised=True)
        assert env == {RANGE: "SYSTEM_DEFAULT", PROFILES: str(share_dir() / "config" / "supervised.xml")}
    choose_discovery(env)
    assert env[PROFILES].endswith("supervised.xml"), "what the supervisor chose stays in its nodes"
    choose_discovery(env := {PROFILES: "mine.xml"}, supervised=True)
    assert env[PROFILES] == "mine.xml"


def test_profiles_of_the_user_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    for env in ({PROFILES: "mine.xml"}, {"FASTRTPS_DEFAULT_PROFILES_FILE": "mine.xml"}):
        before = dict(env)
        choose_discovery(env)
        assert env == {RANGE: "LOCALHOST", **before}
    (tmp_path / "DEFAULT_FASTDDS_PROFILES.xml").touch()
    monkeypatch.chdir(tmp_path)
    choose_discovery(env := {})
    assert env == {RANGE: "LOCALHOST"}


def test_another_middleware_stays_on_this_machine_in_its_own_way(monkeypatch):
    """Profiles of Fast DDS say nothing to it: without a range it would be open to the network."""
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    other = {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}
    choose_discovery(env := dict(other))
    assert env == {RANGE: "LOCALHOST", **other}


def test_what_is_said_after_the_parents_choice_counts(monkeypatch):
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    choose_discovery(env := {})
    env[RANGE] = "SUBNET"
    choose_discovery(env)
    assert env == {RANGE: "SUBNET", TRANSPORTS: "UDPv4"}


@pytest.mark.parametrize("name", ["ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS", "ROS_LOCALHOST_ONLY"])
def test_a_network_of_the_users_is_joined_without_shared_memory(monkeypatch, name):
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    choose_discovery(env := {name: "1"})
    assert env == {name: "1", TRANSPORTS: "UDPv4"}


@pytest.mark.ros
@pytest.mark.patient
@pytest.mark.parametrize("home", [None, "/proc/nowhere"])
def test_a_node_starts_without_a_home_and_with_one_that_it_cannot_write_to(home, tmp_path):
    done = run(STARTS, environment(HOME=home, TMPDIR=str(tmp_path)))
    assert done.returncode == 0 and done.stdout.startswith("done /"), done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs the right to become another user")
def test_a_user_without_an_entry_has_a_home_too():
    """As in a container that is told to run as some number."""
    code = """
import os
from humanoid_control.nodes.base.ros_env import choose_log_folder
os.setuid(54321)
env = {}
choose_log_folder(env)
print(env["ROS_LOG_DIR"])
"""
    done = run(code, environment(HOME=None, TMPDIR="/tmp"))
    assert done.stdout == "/tmp/humanoid_control_54321/.ros/log\n", done.stderr


def test_the_home_is_the_one_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_dir() == tmp_path
