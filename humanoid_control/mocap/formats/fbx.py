"""Reader of FBX characters, converted to glTF by the Assimp command in its own process.

Assimp comes with the collision library. Python bindings of ufbx (0.0.5) crash when objects are freed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path, PurePath

from humanoid_control.errors import ClipError, one_line
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.clip_file import ClipFile
from humanoid_control.mocap.formats.common import UNITS, Size
from humanoid_control.mocap.formats.gltf import parse_gltf

LONGEST = 300.0  # [s] longest conversion
_HEADS = (b"Kaydara FBX Binary", b"FBXHeaderExtension")
_LOOKED_AT = 4096  # bytes searched for the format


def parse_fbx(file: ClipFile, size: Size) -> MarkerClip:
    """Return the clip of an animated FBX character.

    Args:
        file: its `part` names the animation ("mixamo.com"); "": longest.
        size: default: centimetres, unless implausible.

    Raises:
        ClipError: if file or animation is invalid, or Assimp is missing; with a command for Blender.
    """
    data = file.read()
    if not any(head in data[:_LOOKED_AT] for head in _HEADS):
        raise ClipError(f"{file.where}: not an FBX file: copy or export it again")
    command = assimp_command()
    if command is None:
        raise ClipError(f"{file.where}: Assimp, which reads it, is not installed: {_by_blender(file)}")
    with tempfile.TemporaryDirectory(prefix="humanoid_clip_") as folder:
        given, made = Path(folder) / "clip.fbx", Path(folder) / "clip.glb"
        given.write_bytes(data)
        _convert(command, given, made, file)
        glb = ClipFile(made, PurePath(made), part=file.part)
        return parse_gltf(glb, size, file.where, UNITS["cm"])


def assimp_command() -> str | None:
    """Return the path of `assimp` in this environment or system, or None."""
    beside = [Path(sys.executable).parent, Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix" / "bin"]
    return shutil.which("assimp", path=os.pathsep.join([*map(str, beside), os.environ.get("PATH", "")]))


def _convert(command: str, given: Path, made: Path, file: ClipFile) -> None:
    """Run Assimp to write `made`, or raise ClipError."""
    try:
        done = subprocess.run(
            [command, "export", str(given), str(made)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClipError(f"{file.where}: Assimp takes more than {LONGEST:g} s to read it: {_by_blender(file)}") from None
    except OSError as error:
        raise ClipError(f"{file.where}: Assimp cannot be started ({error.strerror}): {_by_blender(file)}") from None
    if done.returncode or not made.is_file():
        told = (done.stderr + done.stdout).decode(errors="replace").replace(str(given), given.name)
        said = [line for line in told.splitlines() if "error" in line.lower() or "fail" in line.lower()]
        reason = one_line(said[-1]) if said else f"exit code {done.returncode}"
        raise ClipError(f"{file.where}: Assimp cannot read it ({reason}): {_by_blender(file)}")


def _by_blender(file: ClipFile) -> str:
    return (
        f"convert it: blender -b --python-expr \"import bpy; bpy.ops.import_scene.fbx(filepath='{file.name.name}'); "
        f"bpy.ops.export_scene.gltf(filepath='{file.name.stem}.glb')\""
    )
