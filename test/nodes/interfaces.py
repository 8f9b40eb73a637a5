"""Message packages that the wheels of ROS lack, made for tests from their definitions by rosidl and a compiler."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

TF2_MSGS = {"msg/TFMessage.msg": "geometry_msgs/TransformStamped[] transforms\n"}
COMPONENTS = ("X_AXIS", "Y_AXIS", "Z_AXIS", "TRANSLATION", "ROTATION")
AXES = "".join(f"uint16 {name}={k}\n" for k, name in enumerate(COMPONENTS, 1))
MOTION = "float64 position\nfloat64 velocity\nfloat64 acceleration\n"
CONTROL_MSGS = {
    "msg/JointTolerance.msg": f"string name\n{MOTION}",
    "msg/JointComponentTolerance.msg": f"{AXES}string joint_name\nuint16 component\n{MOTION}",
    "action/FollowJointTrajectory.action": """
trajectory_msgs/JointTrajectory trajectory
trajectory_msgs/MultiDOFJointTrajectory multi_dof_trajectory
JointTolerance[] path_tolerance
JointComponentTolerance[] component_path_tolerance
JointTolerance[] goal_tolerance
JointComponentTolerance[] component_goal_tolerance
builtin_interfaces/Duration goal_time_tolerance
---
int32 error_code
int32 SUCCESSFUL=0
int32 INVALID_GOAL=-1
int32 INVALID_JOINTS=-2
int32 OLD_HEADER_TIMESTAMP=-3
int32 PATH_TOLERANCE_VIOLATED=-4
int32 GOAL_TOLERANCE_VIOLATED=-5
string error_string
---
std_msgs/Header header
string[] joint_names
trajectory_msgs/JointTrajectoryPoint desired
trajectory_msgs/JointTrajectoryPoint actual
trajectory_msgs/JointTrajectoryPoint error
string[] multi_dof_joint_names
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_desired
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_actual
trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_error
""",
}
DEPENDS = {
    "tf2_msgs": ("geometry_msgs", "std_msgs", "builtin_interfaces"),
    "control_msgs": (
        "trajectory_msgs", "geometry_msgs", "std_msgs", "builtin_interfaces", "action_msgs", "service_msgs",
        "unique_identifier_msgs",
    ),
}  # fmt: skip
MADE = "ros_interfaces_"  # folders below that of temporary files
LIBRARIES = ("rosidl_generator_c", "rosidl_generator_py", "rosidl_typesupport_fastrtps_c", "rosidl_typesupport_c")
OWN = ("rosidl_runtime_c", "rosidl_typesupport_c", "rosidl_typesupport_fastrtps_c", "rosidl_typesupport_fastrtps_cpp")


def with_package(name: str, definitions: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a message package importable in this process, and in those that it starts; skip where it cannot be made."""
    spec = importlib.util.find_spec(name)
    if spec is not None and MADE not in (spec.origin or ""):
        return
    for tool in ("gcc", "g++"):
        if shutil.which(tool) is None:
            pytest.skip(f"{name} is not installed, and there is no {tool} to make it")
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        pytest.skip(f"{name} is not installed, and there is no Python.h to make it")
    pytest.importorskip("rosidl_generator_py", reason=f"{name} is not installed, nor rosidl to make it")
    folder = _built(name, definitions)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))


def _built(name: str, definitions: Mapping[str, str]) -> Path:
    """Folder with the package; made once for this interpreter and these definitions."""
    key = hashlib.sha256(repr((sys.prefix, sys.version, sorted(definitions.items()))).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"{MADE}{os.getuid()}_{key}"
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        generated = _generate(Path(made), name, definitions)
        _compile(Path(made), generated, name)
        try:
            Path(made).rename(folder)
        except OSError:  # another test process was faster
            assert folder.is_dir()
            return folder
        Path(made).mkdir()  # which the end of this block removes
    return folder


def _generate(folder: Path, name: str, definitions: Mapping[str, str]) -> Path:
    """Sources in C, C++ and Python; the folder of the Python package among them."""
    from rosidl_adapter.cli import TranslateActionToIDL, TranslateMsgToIDL
    from rosidl_generator_c.cli import GenerateC
    from rosidl_generator_py.cli import GeneratePython
    from rosidl_generator_type_description.cli import HashTypeDescription
    from rosidl_typesupport_c.cli import GenerateCTypesupport
    from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport

    share = Path(sys.prefix) / "share"
    package, include = folder / name, [str(share / d) for d in DEPENDS[name]]
    for path, text in definitions.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    package.mkdir()
    before = os.environ.get("AMENT_PREFIX_PATH")
    os.environ["AMENT_PREFIX_PATH"] = sys.prefix
    try:
        idl = []
        for kind, translator in ((".msg", TranslateMsgToIDL), (".action", TranslateActionToIDL)):
            files = [f"{folder}:{path}" for path in definitions if path.endswith(kind)]
            idl += translator(kind).translate(name, files, include, package)
        given = (name, idl, include, package)
        hashes = HashTypeDescription("hash").generate_type_hashes(*given)
        GenerateC("c").generate(*given, hashes)
        GenerateFastRTPSCTypesupport("fastrtps").generate(*given)
        GenerateCTypesupport("c", typesupport_implementations=[LIBRARIES[2]]).generate(*given)
        GeneratePython("py", typesupport_implementations=[LIBRARIES[3]]).generate(*given)
    finally:
        if before is None:
            del os.environ["AMENT_PREFIX_PATH"]
        else:
            os.environ["AMENT_PREFIX_PATH"] = before
    (package / "__init__.py").touch()
    return package


def _compile(folder: Path, package: Path, name: str) -> None:
    """Compile all sources into the one library that the Python package loads."""
    import numpy

    prefix = Path(sys.prefix)
    headers = [folder, prefix / "include", *(prefix / "include").iterdir(), numpy.get_include()]
    flags = ["-O0", "-w", "-fPIC", *(f"-I{h}" for h in [*headers, sysconfig.get_path("include")])]
    sources = [p for p in package.rglob("*") if p.suffix in (".c", ".cpp")]
    objects = [str(folder / f"{k}.o") for k in range(len(sources))]
    commands = [
        ["g++" if s.suffix == ".cpp" else "gcc", *flags, "-c", str(s), "-o", o]
        for s, o in zip(sources, objects, strict=True)
    ]
    for k in range(0, len(commands), 2):  # two at a time
        _run_all(commands[k : k + 2])
    libraries = [f"-l{d}__{kind}" for d in DEPENDS[name] for kind in LIBRARIES] + [f"-l{x}" for x in OWN]
    libraries += ["-lfastcdr", "-lrcutils", "-lrmw", "-Wl,--allow-shlib-undefined"]
    out = package / f"{name}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    _run_all([["g++", "-shared", "-o", str(out), *objects, f"-L{prefix / 'lib'}", *libraries]])


def _run_all(commands: Sequence[list[str]]) -> None:
    for process in [subprocess.Popen(command) for command in commands]:
        assert process.wait(120) == 0, process.args
