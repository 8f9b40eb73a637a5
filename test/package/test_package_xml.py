"""package.xml, setup.py and the code agree about what the package is and what it needs."""

import ast
import re
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest

import humanoid_control
from test.package.statements import statements
from test.package.violations import assert_none

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ET.parse(ROOT / "package.xml").getroot()
SETUP = (ROOT / "setup.py").read_text()

# What an imported module is called by rosdep and on PyPI; a package of the ROS distribution has the module's own name.
# One has no key: package.xml says so and the README tells how to get it.
ROSDEP = {
    "tf2_ros": "tf2_ros_py",
    "yaml": "python3-yaml", "numpy": "python3-numpy", "scipy": "python3-scipy", "rich": "python3-rich",
    "rosbags": "python3-rosbags-pip", "numba": "python3-numba", "matplotlib": "python3-matplotlib",
    "trimesh": "python3-trimesh-pip", "websockets": "python3-websockets",
    "setproctitle": "python3-setproctitle", "can": "python3-can", "canopen": "canopen-pip",
}  # fmt: skip
PYPI = {"pinocchio": "pin", "yaml": "pyyaml", "can": "python-can"}
WITHOUT_KEY = {"viser"}
PEERS = {
    "crocoddyl": "crocoddyl",
    "daqp": "daqp>=0.7",
    "cyclonedds": "cyclonedds>=11; python_version < '3.14' and platform_machine == 'x86_64'",
    "filterpy": "filterpy",
    "mink": "mink",
    "mujoco": "mujoco",
    "onnx": "onnx>=1.19",
    "onnxruntime": "onnxruntime>=1.23",
    "opensim": "opensim>=4.6",
    "pink": "pin-pink",
    "placo": "placo>=0.10",
    "serial": "pyserial",
    "dynamixel_sdk": "dynamixel-sdk",
    "dask": "distributed",
    "distributed": "distributed",
    "fsspec": "fsspec",
    "pyarrow": "pyarrow",
    "imageio_ffmpeg": "imageio-ffmpeg>=0.5",
    "PIL": "pillow>=10.1",
}  # optional: extras of pip
# ROS packages that come with rclpy's own dependencies, or are imported only where ROS is installed.
WHEELS_PULLED_IN = {"builtin_interfaces", "lifecycle_msgs", "rcl_interfaces", "rosgraph_msgs", "std_msgs"}
PARTS = {"llvmlite", "google"}  # of numba and of onnx, in the versions that these take
ROS_ONLY = {"ament_index_python", "control_msgs", "launch", "launch_ros", "tf2_msgs", "tf2_ros"}


@cache
def imported():
    """Top-level modules that the package imports and that are neither its own nor Python's; optional ones left out."""
    found = set()
    for path in (ROOT / "humanoid_control").rglob("*.py"):
        for node in statements(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add((node.module or "").split(".")[0])
    return found - set(sys.stdlib_module_names) - {"humanoid_control", "__future__", "_typeshed"}


def depends():
    return {d.text for tag in ("depend", "exec_depend", "build_depend") for d in PACKAGE.findall(tag)}


def required_on_pypi():
    """Distributions in setup.py's install_requires and in its extras."""
    names = re.findall(r'^\s+"([A-Za-z][\w-]*)(?:\[.*?\])?[\s=<>;"]', SETUP, re.M)
    return {n.lower() for n in names}


def test_name_and_version_are_the_packages():
    assert PACKAGE.findtext("name") == "humanoid_control"
    assert PACKAGE.findtext("version") == humanoid_control.__version__
    assert PACKAGE.get("format") == "3"
    assert PACKAGE.findtext("export/build_type") == "ament_python"


def test_every_import_is_declared_for_rosdep():
    found = []
    for module in sorted(imported() - WITHOUT_KEY - PARTS - set(PEERS)):
        if (key := ROSDEP.get(module, module)) not in depends() and module not in WHEELS_PULLED_IN:
            found.append(f"package.xml: does not list {key}, which {module} comes from")
    text = (ROOT / "package.xml").read_text()
    found += [f"package.xml: does not say where {m} comes from" for m in sorted(WITHOUT_KEY) if m not in text]
    assert_none(found)


def test_every_import_is_declared_for_pip():
    found = [
        f"setup.py: has no extra with {name}, which {module} comes from"
        for module, name in PEERS.items()
        if module in imported() and f'"{name}"' not in SETUP
    ]
    for module in sorted(imported() - WHEELS_PULLED_IN - PARTS - ROS_ONLY - set(PEERS)):
        name = PYPI.get(module, module).replace("_", "-")
        if not {name, f"ros-{name}"} & required_on_pypi():
            found.append(f"setup.py: does not require {name}, which {module} comes from")
    assert_none(found)


def test_nothing_is_declared_that_nobody_imports():
    used = {ROSDEP.get(m, m) for m in imported()}
    started_not_imported = {"robot_state_publisher", "rviz2", "lifecycle_msgs"}  # the last by rclpy.lifecycle
    assert depends() - used - started_not_imported <= {"std_msgs"}


def test_the_ros_tools_accept_it():
    catkin_pkg = pytest.importorskip("catkin_pkg.package", reason="needs catkin_pkg, the parser of colcon and rosdep")
    warnings = []
    package = catkin_pkg.parse_package(str(ROOT), warnings=warnings)
    package.validate(warnings=warnings)
    assert not warnings
    assert {d.name for d in package.exec_depends} == depends()
