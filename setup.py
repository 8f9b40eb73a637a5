"""Metadata for pip and for colcon (ament_python): both read this file, so it is the only place for it."""

import os
import re
from pathlib import Path

from setuptools import Distribution, find_packages, setup

NAME = "humanoid_control"
HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / NAME / "__init__.py").read_text()).group(1)
NODES = [
    "trajectory_streamer",
    "whole_body_streamer",
    "target_source",
    "whole_body_ik",
    "simulator",
    "robot_driver",
    "controller_bridge",
    "state_estimator",
    "tendon_controller",
    "tendon_driver",
    "walker",
    "policy",
    "whole_body_controller",
    "human_motion",
    "viewer",
]

# Names in brackets behind the package's: pip install 'humanoid_control[viewer,report]'.
EXTRAS = {
    # The page in the browser, and the editor of collision volumes.
    "viewer": [
        "viser>=1.0",
        "trimesh>=4",
        "websockets>=12",
    ],
    # Films: ffmpeg as a wheel, and the words in the pictures.
    "video": ["imageio-ffmpeg>=0.5", "pillow>=10.1"],
    # Pages and pictures of scores and studies.
    "report": [
        "matplotlib>=3.6",
    ],
    # The second engine of the simulator.
    "mujoco": [
        "mujoco>=3.17",
    ],
    # Learned policies: their networks read, and run.
    "policy": ["onnx>=1.19", "onnxruntime>=1.23"],
    # Real robots: drives on a CAN bus.
    "canopen": [
        "canopen>=2.4",
        "python-can>=4.5",
    ],
    # Humanoids of Unitree's: DDS without ROS.
    "unitree": [
        # Wheels for x86_64 alone, and none for later Pythons yet.
        "cyclonedds>=11; python_version < '3.14' and platform_machine == 'x86_64'",
    ],
    # Real robots with Dynamixel servos.
    "dynamixel": ["pyserial"],
    # Libraries of clips on a Dask cluster, results to addresses of fsspec.
    "cluster": ["distributed", "fsspec"],
    # The manifest of a library as Parquet too: large, so by itself.
    "parquet": ["pyarrow"],
    # ROS 2 itself as wheels, for a machine without a ROS installation (x86_64 Linux only).
    "ros": [
        "ros-rclpy[fastrtps]==9.1.2; platform_machine == 'x86_64'",
        "ros-sensor-msgs==5.5.1; platform_machine == 'x86_64'",
        "ros-visualization-msgs==5.5.1; platform_machine == 'x86_64'",
        "ros-std-srvs==5.5.1; platform_machine == 'x86_64'",
        "ros-diagnostic-msgs==5.5.1; platform_machine == 'x86_64'",
        "ros-nav-msgs==5.5.1; platform_machine == 'x86_64'",
        "ros-geometry-msgs==5.5.1; platform_machine == 'x86_64'",
        "ros-trajectory-msgs==5.5.1; platform_machine == 'x86_64'",
    ],
    # Tests; daqp, ezc3d and durand are references that only tests compare with; msgpack carries CAN between processes.
    "test": [
        "pytest<9",
        "pytest-xdist",
        "pytest-rerunfailures",
        "pytest-timeout",
        "hypothesis",
        "daqp>=0.7",
        "ezc3d>=1.5; platform_machine == 'x86_64'",
        "pillow",
        "mcap",
        "mcap-ros2-support",
        "catkin-pkg",
        "wheel",
        "durand",
        "msgpack",
        "dynamixel-sdk",
    ],
    "check": ["ruff", "mypy", "types-PyYAML", "import-linter>=2.5"],
    # What `humanoid bench` measures beside.
    "bench": ["pin-pink", "mink", "mujoco>=3.17", "qpsolvers", "daqp>=0.7", "filterpy", "dynamixel-sdk"],
    # What `bench human` and `bench reaching` measure beside: large, so each by itself.
    "bench-opensim": ["opensim>=4.6"],
    "bench-crocoddyl": ["crocoddyl"],
    # The same, but its wheels pin their own pinocchio: it goes into a folder of its own (`make bench` does that).
    "bench-placo": ["placo>=0.10"],
    # The pages of docs/ as a site.
    "docs": ["mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "mkdocstrings[python]>=0.26"],
}


def shared(folder):
    """data_files rows for every file below a folder, its structure kept under share/<package>."""
    return [
        (os.path.join("share", NAME, where), [os.path.join(where, f) for f in sorted(files)])
        for where, dirs, files in os.walk(folder)
        if files and "__pycache__" not in where
    ]


# HUMANOID_KERNELS=yes: a wheel of this Python and kind of processor, with the compiled kernels of this folder.
KERNELS = os.environ.get("HUMANOID_KERNELS") == "yes"


class WithMachineCode(Distribution):
    """A distribution whose wheel is of one Python and one platform."""

    def has_ext_modules(self):
        """Tell setuptools so."""
        return KERNELS


setup(
    name=NAME,
    distclass=WithMachineCode,
    version=VERSION,
    description="Real-time humanoid robot control on ROS 2: imitation, inverse kinematics, estimation, simulation",
    long_description=(HERE / "README.md").read_text() if (HERE / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    maintainer="humanoid_control maintainers",
    python_requires=">=3.10,<3.15",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={
        NAME: ["mocap/marker_sets/*.yaml", "human/models/*.yaml", "human/models/templates/*.yaml", "py.typed"],
        **({"": ["__pycache__/*.nbi", "__pycache__/*.nbc"]} if KERNELS else {}),
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared("launch"),
        *shared("config"),
        *shared("urdf"),
    ],
    # What the library needs; all else is an extra.
    install_requires=[
        "setuptools",
        "numpy>=1.26",
        "scipy>=1.11",
        "numba>=0.68,<0.69",
        "pin>=3.4",
        "coal>=3.0",
        "pyyaml>=6",
        "rosbags>=0.10",
        "rich>=13",
        "setproctitle>=1.3",
    ],
    extras_require={
        **EXTRAS,
        # What a user of the command wants: everything but the tools of those who work on it.
        "all": [
            p
            for name in (
                "viewer",
                "video",
                "report",
                "mujoco",
                "policy",
                "canopen",
                "unitree",
                "dynamixel",
                "cluster",
                "ros",
            )
            for p in EXTRAS[name]
        ],
        "test": [
            p
            for name in (
                "viewer",
                "video",
                "report",
                "mujoco",
                "policy",
                "canopen",
                "unitree",
                "dynamixel",
                "cluster",
                "test",
            )
            for p in EXTRAS[name]
        ],
    },
    zip_safe=False,
    entry_points={
        "console_scripts": ["humanoid = humanoid_control.cli.main:main"]
        + ["humanoid-control = humanoid_control.cli.main:main"]  # where another package has the first name
        + [f"{node} = humanoid_control.nodes.{node}:main" for node in NODES],
    },
)
