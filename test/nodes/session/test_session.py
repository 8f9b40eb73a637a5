"""What a session of nodes says while it starts."""

import os
import signal
import sys

import pytest
import yaml

from humanoid_control.errors import ConfigError, EnvironmentProblem, UnknownNameError
from humanoid_control.nodes.base.graph_watch import node_claim
from humanoid_control.session import session as module
from humanoid_control.session.runs import new_run_directory
from humanoid_control.session.session import Session
from humanoid_control.session.stacks import find_stack
from humanoid_control.session.supervisor import InputRefused, StackFailure
from humanoid_control.warm_up import INVERSE_KINEMATICS, RETARGETING, SIMULATION, TENDONS, WALKING
from test.places import domain
from test.robots_under_test import nightly

pytestmark = pytest.mark.processes

QUIET = {"close": lambda self: None, "listen": lambda self, seconds: None}


@pytest.fixture(autouse=True)
def own_domain(monkeypatch):
    """Stacks claim their names in a domain of the whole machine."""
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("commands"))


@pytest.fixture
def session(monkeypatch, tmp_path):
    """A session whose nodes are not started: its supervisor says what it is told to, then fails or not."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    monkeypatch.setattr(module, "new_run_directory", lambda name: tmp_path)
    monkeypatch.setattr(module, "Monitor", lambda *_: type("Silent", (), QUIET)())
    made = Session("tendons")
    made.order, made.answer = [], ""

    def wait_ready(meanwhile):
        for line in ("no targets", "unknown tendon 'l_bicps'"):
            made._complain("simulator", line)
        if made.answer:
            raise StackFailure(made.answer)

    monkeypatch.setattr(made.supervisor, "start", lambda name, *_, forked, **__: made.order.append((name, forked)))
    monkeypatch.setattr(made.supervisor, "load", lambda *groups: made.order.append(groups))
    monkeypatch.setattr(made.supervisor, "wait_ready", wait_ready)
    yield made
    made.stop()


def test_what_an_error_says_is_not_said_twice(session, capsys):
    session.answer = "simulator: unknown tendon 'l_bicps'"
    with pytest.raises(StackFailure):
        session.start()
    assert capsys.readouterr().err.splitlines() == ["  simulator: no targets"]


def test_a_second_stack_in_a_domain_is_refused_before_anything_starts(session, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "NAMES_TIMEOUT", 0.1)
    session.start()
    second, aside = Session("imitation", "lola"), Session("imitation", "lola", namespace="left")
    with pytest.raises(ConfigError, match=r"a node /viewer in ROS domain .*--namespace or ROS_DOMAIN_ID"), second:
        pass
    assert not second.supervisor.children
    aside._claim_names()
    aside.stop()
    session.stop()
    second._claim_names()
    second.stop()


def test_a_stack_beside_a_node_of_its_own_names_is_refused(session, monkeypatch):
    monkeypatch.setattr(module, "NAMES_TIMEOUT", 0.1)
    lone = node_claim("/simulator", int(os.environ.get("ROS_DOMAIN_ID", "0")))
    assert lone.take()
    with pytest.raises(ConfigError, match="a node /simulator in ROS domain"):
        session.start()
    lone.release()


def test_words_of_starting_nodes_come_when_they_are_ready_and_later_ones_at_once(session, capsys):
    session.start()
    assert [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()] == [
        "no targets",
        "unknown tendon 'l_bicps'",
    ]
    session._complain("viewer", "no browser")
    assert capsys.readouterr().err == "  viewer: no browser\n"
    assert [text for _, text in session.complaints][-1] == "no browser"


def test_nodes_start_when_the_kernels_that_they_need_first_are_loaded(session):
    session.start()
    assert session.order[0] == ()
    names = [entry[0] for entry in session.order[1:]]
    assert session.order[1] == (INVERSE_KINEMATICS, SIMULATION, RETARGETING, TENDONS)
    assert names.index("simulator") < names.index("state_estimator") < names.index("viewer") == len(names) - 1
    assert all(forked for _, forked in (e for e in session.order if len(e) == 2 and e[0] in session.stack.executables))


def test_a_node_that_gives_power_to_drives_is_a_process_of_its_own(session):
    session.stack = find_stack("hardware")
    session.start()
    assert session.order[:2] == [(), ("robot_driver", False)], "it waits for nothing that others load"
    assert not any("hardware" in entry for entry in session.order[2:])
    assert ("robot_driver", False) in session.order and ("whole_body_ik", True) in session.order


def test_the_kernels_of_a_stack():
    assert find_stack("walking").kernel_groups({}) == [SIMULATION, WALKING]
    assert "hardware" in find_stack("hardware").kernel_groups({})
    assert find_stack("imitation").kernel_groups({"state_estimator": {"source": "tendons"}}) == [
        INVERSE_KINEMATICS,
        SIMULATION,
        RETARGETING,
        TENDONS,
    ]


@pytest.mark.parametrize("before", [nightly(True), False])
def test_a_run_that_a_node_refused_leaves_nothing_behind(before, monkeypatch, tmp_path):
    """A child of that exit code stands for the node; any other one leaves its log."""
    pytest.importorskip("rclpy", reason="needs ROS 2")
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path))
    monkeypatch.setattr(module, "Monitor", lambda *_: type("Silent", (), QUIET)())
    monkeypatch.setattr(module.Supervisor, "load", lambda *_: None)  # kernels, of which these children have no use
    earlier = [new_run_directory("earlier")] if before else []
    refuses = "import sys; print('simulator: parameter gravity must be in 0 .. 30'); sys.exit(2)"
    monkeypatch.setattr(module, "node_command", lambda *_: [sys.executable, "-c", refuses])
    refused = pytest.raises(InputRefused, match=r"^simulator: parameter gravity")
    with refused, Session("simulation"):
        pass
    assert [p for p in (tmp_path / "runs").iterdir() if not p.is_symlink()] == earlier
    latest = tmp_path / "runs" / "latest"
    assert [latest.resolve()] == earlier if before else not latest.is_symlink()
    monkeypatch.setattr(module, "node_command", lambda *_: [sys.executable, "-c", "import sys; sys.exit(3)"])
    failed = pytest.raises(StackFailure, match=f"ended with code 3: no output .see {tmp_path}")
    with failed, Session("simulation"):
        pass
    assert (latest / "viewer.log").is_file()


def test_a_home_that_cannot_be_written_is_said_in_one_line(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for home in ("/proc/nowhere", str(tmp_path / "file")):
        monkeypatch.setenv("HUMANOID_HOME", home)
        with pytest.raises(EnvironmentProblem, match=f"^{home} cannot be written: .*; set HUMANOID_HOME to a folder"):
            new_run_directory("dance")


def test_settings_of_a_node_that_the_stack_does_not_have_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path))
    with pytest.raises(UnknownNameError, match="did you mean viewer"):
        Session("targets", settings={"vieewer": {"port": 1}})
    with pytest.raises(UnknownNameError, match="stack"):
        Session("targts")
    assert not (tmp_path / "runs").exists(), "no directory of a run that never was"


def test_the_viewer_is_told_how_to_play_the_run_again(monkeypatch, tmp_path):
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path / "a folder"))
    (tmp_path / "a folder").mkdir()

    def told(**options):
        made = Session("imitation", **options)
        text = yaml.safe_load((made.directory / "parameters.yaml").read_text())
        (viewer,) = (node["viewer"]["ros__parameters"] for node in text.values() if "viewer" in node)
        return viewer.get("replay", ""), made.bag

    command, bag = told(record=True, settings={"viewer": {"port": 8123}})
    assert command == f"humanoid replay '{bag}' --viewer --port 8123"
    assert told(record=True)[0].endswith("--viewer")
    assert told()[0] == "", "nothing was recorded"


def test_without_viser_the_rest_of_the_stack_runs_and_one_line_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path))
    assert Session("targets", settings={"viewer": {"port": 8123}}).viewer_url.startswith(
        "http://localhost:8123/?token="
    )
    monkeypatch.setattr(module, "missing_extra", lambda extra: EnvironmentProblem("pip install viser"))
    session = Session("targets", settings={"viewer": {"port": 8123}})
    assert session.stack.executables == ("simulator", "state_estimator", "whole_body_ik")
    assert session.viewer_url is None
    assert capsys.readouterr().err == "without the viewer: pip install viser\n"


def test_the_handlers_of_signals_are_the_former_ones_afterwards(session):
    before = [signal.getsignal(s) for s in module.SIGNALS]
    with session:
        assert signal.getsignal(signal.SIGTERM) is not before[1]
    assert [signal.getsignal(s) for s in module.SIGNALS] == before
