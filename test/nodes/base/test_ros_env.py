"""What a node finds in its environment, however it was started: discovery, and a folder for its logs."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.base import ros_env
from humanoid_control.nodes.base.ros_env import choose_discovery
from humanoid_control.paths import home_dir, share_dir
from test.places import domain

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
PROFILES = "FASTDDS_DEFAULT_PROFILES_FILE"
PRINTS = f"import humanoid_control.nodes, os; print(os.environ.get('{RANGE}'))"
STARTS = """
import humanoid_control.nodes, os, rclpy
rclpy.init(); node = rclpy.create_node("alone"); node.get_logger().info("hello"); node.destroy_node(); rclpy.shutdown()
print("done", os.environ.get("ROS_LOG_DIR"))
"""


def environment(**more: str | None) -> dict[str, str]:
    """Of this process, without what the user may say about ROS."""
    named = {"ROS_DOMAIN_ID": domain("nodes"), RANGE: None, "ROS_LOG_DIR": None, "ROS_HOME": None, **more}
    left = {k: v for k, v in os.environ.items() if k not in (*ros_env.SAID, *ros_env.PROFILES, *named)}
    return {**left, **{k: v for k, v in named.items() if v is not None}}


def run(code: str, env: dict[str, str], **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.skipif(ros_env.ros_flavour() != "wheels", reason="an installed ROS is left as it is")
def test_a_bare_node_of_the_wheels_stays_on_this_machine():
    assert run(PRINTS, environment()).stdout == "LOCALHOST\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [({RANGE: "SUBNET"}, "SUBNET"), ({"ROS_LOCALHOST_ONLY": "0"}, None), ({"ROS_STATIC_PEERS": "10.0.0.2"}, None)],
)
def test_what_the_user_says_about_discovery_stays(said, expected):
    assert run(PRINTS, environment(**said)).stdout == f"{expected}\n"


def test_an_installed_ros_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "installed")
    env = {}
    choose_discovery(env)
    assert env == {}
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    choose_discovery(env)
    assert env == {RANGE: "LOCALHOST", PROFILES: str(share_dir() / "config" / "one_host.xml")}


def test_supervised_nodes_announce_themselves_more_often(monkeypatch):
    """Also where the supervisor itself has the package's usual profile; profiles of the user stay."""
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    choose_discovery(own := {})
    for env in ({}, own):
        choose_discovery(env, supervised=True)
        assert env == {RANGE: "LOCALHOST", PROFILES: str(share_dir() / "config" / "supervised.xml")}
    choose_discovery(env)
    assert env[PROFILES].endswith("supervised.xml"), "what the supervisor chose stays in its nodes"
    choose_discovery(env := {PROFILES: "mine.xml"}, supervised=True)
    assert env[PROFILES] == "mine.xml"


def test_profiles_of_the_user_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(ros_env, "ros_flavour", lambda: "wheels")
    for env in ({PROFILES: "mine.xml"}, {"FASTRTPS_DEFAULT_PROFILES_FILE": "mine.xml"}, {RANGE: "SUBNET"}):
        before = dict(env)
        choose_discovery(env)
        assert env == {RANGE: "LOCALHOST", **before}
    (tmp_path / "DEFAULT_FASTDDS_PROFILES.xml").touch()
    monkeypatch.chdir(tmp_path)
    choose_discovery(env := {})
    assert env == {RANGE: "LOCALHOST"}


@pytest.mark.ros
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
