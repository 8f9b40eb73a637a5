"""Releases: keys of rosdep, the recipe of conda, names of the command, and the tests that docs/hazards.md names."""

import ast
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

import humanoid_control
from test.package.violations import assert_none

ROOT = Path(__file__).resolve().parents[2]
CHECK = runpy.run_path(str(ROOT / ".ci" / "check_rosdistro.py"))
RESOLVE = runpy.run_path(str(ROOT / ".ci" / "resolve_wheels.py"))
EXTRACT = yaml.safe_load((ROOT / "test" / "reference" / "rosdistro.yaml").read_text())
CONDA = {"pin": "pinocchio"}  # PyPI's name -> conda-forge's


def test_every_key_of_rosdep_is_released_or_ubuntus_or_kept_from_bloom():
    assert_none(CHECK["problems"](EXTRACT))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update({"no-such-key": ""}), "no-such-key is no key of rosdep"),
        (lambda d: d.update({"canopen-pip": ""}), "pip alone provides canopen-pip"),
        (lambda d: d.update({"rclpy": "$HUMANOID_PIP == yes"}), "rclpy is released, its condition leaves it out"),
    ],
    ids=["unknown", "pip", "released"],
)
def test_a_key_that_stands_against_a_release_is_named(change, words, monkeypatch):
    keys = CHECK["declared"]()
    change(keys)
    monkeypatch.setitem(CHECK["problems"].__globals__, "declared", lambda: keys)
    (found,) = CHECK["problems"](EXTRACT)
    assert words in found


def test_the_parser_of_ros_leaves_out_what_pip_alone_provides():
    catkin_pkg = pytest.importorskip("catkin_pkg.package", reason="needs catkin_pkg, the parser of bloom and rosdep")

    def taken(**variables):
        package = catkin_pkg.parse_package(str(ROOT))
        package.evaluate_conditions(variables)
        return {d.name for d in package.exec_depends if d.evaluated_condition}

    bloom = {"ROS_VERSION": "2", "ROS_DISTRO": "jazzy", "ROS_PYTHON_VERSION": "3"}  # its whole context
    pip_alone = {"python3-rosbags-pip", "python3-trimesh-pip", "canopen-pip"}
    assert not taken(**bloom) & pip_alone and {"rclpy", "pinocchio"} <= taken(**bloom)
    assert taken(**bloom, HUMANOID_PIP="yes") - taken(**bloom) == pip_alone


def test_the_recipe_of_conda_has_what_setup_and_package_xml_have():
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    run = dict(re.fullmatch(r"(.+?)(?: ([<>=].*))?", line).groups() for line in recipe["requirements"]["run"])
    for line in RESOLVE["requirements"]()[""]:
        name, bound = re.match(r"([\w-]+)(.*)", line).groups()
        assert run[CONDA.get(name, name)] == (bound or None), line
    prefix = "ros-${{ distro }}-"
    ros = {name.removeprefix(prefix).replace("-", "_") for name in run if name.startswith(prefix)}
    released = {k for k in CHECK["declared"]() if k in EXTRACT["distributions"]["jazzy"]}
    tests_and_windows = {"launch_testing", "rviz2", "pinocchio", "coal"}  # the last two are conda-forge's
    assert ros == released - tests_and_windows
    root = ET.parse(ROOT / "package.xml").getroot()
    assert recipe["context"]["version"] == root.findtext("version")


def test_a_pin_is_compared_with_the_python_that_is_asked_about():
    assert RESOLVE["runs_on"]("", "3.10") and RESOLVE["runs_on"](">=3.10", "3.10")
    assert not RESOLVE["runs_on"](">=3.11", "3.10") and not RESOLVE["runs_on"]("<3.14", "3.14")
    assert all("==" in line for line in RESOLVE["pins"]()) and len(RESOLVE["pins"]()) > 150


def test_one_version_stands_everywhere():
    root = ET.parse(ROOT / "package.xml").getroot()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
    assert {root.findtext("version"), str(citation["version"]), newest} == {humanoid_control.__version__}


def test_the_newest_section_of_the_changelog_can_be_read():
    """Keep a Changelog: a version or 'Unreleased', known kinds of changes, and at most 10 KB."""
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1:]
    assert re.match(r"\[(\d+\.\d+\.\d+|Unreleased)\] - (unreleased|\d{4}-\d\d-\d\d)\n", sections[0])
    kinds = re.findall(r"^### (.+)$", sections[0], re.M)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert len(kinds) == len(set(kinds)) and len(sections[0].encode()) <= 10_000


def test_the_page_of_public_names_agrees_with_the_packages():
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \| (.*) \|$", (ROOT / "docs" / "public_api.md").read_text(), re.M)
    page = {row[0]: [re.findall(r"`(\w+)`", cell) for cell in row[1:]] for row in rows}
    packages = {
        name.removeprefix("humanoid_control."): importlib.import_module(name)
        for _, name, package in pkgutil.walk_packages(humanoid_control.__path__, "humanoid_control.")
        if package
    }
    public = {name: module.__all__ for name, module in packages.items() if hasattr(module, "__all__")}
    assert page.keys() == public.keys()
    distinct = set()
    for name, (stable, provisional) in page.items():
        assert sorted(stable + provisional) == sorted(public[name]), name
        distinct |= {id(getattr(packages[name], one)) for one in public[name]}
    assert 200 < len(distinct) <= 250
    assert all(getattr(packages["ik"], one) is getattr(packages["ik.limits"], one) for one in public["ik.limits"])


def test_hooks_before_a_commit_run_tools_of_the_environment():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {"ruff-check", "ruff-format", "mypy"} <= {hook["id"] for hook in hooks}
    for hook in hooks:
        assert hook["entry"].startswith(".venv/bin/"), hook["id"]
        for path in re.findall(r"test/\S+", hook["entry"]):
            assert (ROOT / path).exists(), path


def test_markers_are_those_of_the_machine_that_is_asked_about():
    lines = ["a>=1; python_version < '3.14' and platform_machine == 'x86_64'", "b"]
    holding = RESOLVE["holding"]
    assert holding(lines, "3.10", "x86_64") == ["a>=1", "b"]
    assert holding(lines, "3.14", "x86_64") == holding(lines, "3.10", "aarch64") == ["b"]


def test_the_command_has_a_name_that_no_other_package_has():
    assert '"humanoid-control = humanoid_control.cli.main:main"' in (ROOT / "setup.py").read_text()
    done = subprocess.run([sys.executable, "-m", "humanoid_control", "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("humanoid_control ")


def test_every_test_that_a_hazard_names_is_there():
    found, text = [], (ROOT / "docs" / "hazards.md").read_text()
    references = re.findall(r"`(test/[\w/]+\.py)::(test_\w+)`", text)
    assert len(references) > 15
    for path, name in references:
        names = [n.name for n in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(n, ast.FunctionDef)]
        if name not in names:
            found.append(f"docs/hazards.md: {path} has no {name}")
    assert_none(found)
