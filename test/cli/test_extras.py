"""Without an optional package a command says in one line which extra to install; what does not need it works."""

import re
import sys
from pathlib import Path

import pytest

from humanoid_control.cli.main import main
from humanoid_control.errors import EXTRAS, missing_package
from humanoid_control.session import machine_checks as machine
from test.forgotten_modules import forget_modules

SETUP = (Path(__file__).parents[2] / "setup.py").read_text()


@pytest.fixture
def without(monkeypatch):
    """Makes a package unknown to imports, and forgets the modules of ours that have it already."""

    def hide(package):
        monkeypatch.setitem(sys.modules, package, None)
        ours = re.compile(r"(humanoid_control\.(viewer|evaluation\.report)|evidence\.studies)\b")
        forget_modules(monkeypatch, lambda name: bool(name.startswith(f"{package}.") or ours.match(name)))

    return hide


@pytest.mark.parametrize(
    ("package", "extra", "args"),
    [
        ("viser", "viewer", ["segments", "lola"]),
        ("trimesh", "viewer", ["picture"]),
        ("matplotlib", "report", ["study", "calibration"]),
        ("viser", "viewer", ["dance"]),
        ("imageio_ffmpeg", "video", ["picture", "--video", "x.mp4"]),
        ("PIL", "video", ["picture", "--strip", "--whole-body"]),
    ],
)
def test_the_extra_to_install_is_named(capsys, without, package, extra, args):
    without(package)
    assert main(args) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"humanoid {args[0]}: ") and len(said.splitlines()) == 1
    assert package in said and f"pip install 'humanoid_control[{extra}]'" in said


def test_a_score_as_tables_needs_no_plots(capsys, without):
    without("matplotlib")
    assert main(["score", "nowhere.trc"]) == 2
    assert "nowhere.trc" in capsys.readouterr().err


def test_every_extra_is_one_of_setup():
    for extra, modules in EXTRAS.items():
        text = re.search(rf'"{extra}": \[(.*?)\],\n', SETUP, re.S).group(1)
        names = [{"PIL": "pillow"}.get(module, module).replace("_", "-") for module in modules]
        assert all(re.search(rf'"(pin-|python-|py)?{name}\b', text) for name in names)
    error = ModuleNotFoundError("No module named 'viser.uplot'", name="viser.uplot")
    assert "[viewer]" in str(missing_package(error))
    assert missing_package(ModuleNotFoundError("No module named 'os2'", name="os2")) is None


def test_the_doctor_tells_what_each_extra_lacks(monkeypatch):
    there = machine.importlib.util.find_spec
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None if name == "viser" else there(name))
    assert machine._extra("viewer").found == "missing: viser" and "[viewer]" in machine._extra("viewer").advice
    assert machine._extra("report").state == machine.OK

    def check():
        raise ModuleNotFoundError("No module named 'viser'", name="viser")

    monkeypatch.setattr(machine, "_python", check)
    first = next(machine.check_machine(8080))
    assert (first.check, first.state) == ("viser", machine.WARN) and "[viewer]" in first.advice
