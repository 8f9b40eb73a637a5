"""FBX characters, through Assimp's command: it turns them into glTF, in a process of its own.

The collision library brings Assimp along, so nothing more is to be installed. Python bindings of ufbx (0.0.5) read the
same files, but crash the interpreter when their objects are freed.
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

LONGEST = 300.0  # [s] that a file may take
_HEADS = (b"Kaydara FBX Binary", b"FBXHeaderExtension")
_LOOKED_AT = 4096  # bytes from the start


def parse_fbx(file: ClipFile, size: Size) -> MarkerClip:
    """Read the animation of a character in an FBX file.

    Args:
        file: its `part` names the animation ("mixamo.com"); "" takes the longest.
        size: what the user tells about units; FBX counts in centimetres, unless no person of that size can be.

    Raises:
        ClipError: not such a file, or one that Assimp cannot read; no animation; no Assimp: the message has the command
            with which Blender converts the file.
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
    """Path of the command `assimp`: of this environment, or of the system; None where there is none."""
    beside = [Path(sys.executable).parent, Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix" / "bin"]
    return shutil.which("assimp", path=os.pathsep.join([*map(str, beside), os.environ.get("PATH", "")]))


def _convert(command: str, given: Path, made: Path, file: ClipFile) -> None:
    """Have Assimp write `made`.

    Raises:
        ClipError: it crashes, takes too long, or refuses the file.
    """
    try:
        done = subprocess.run(
            [command, "export", str(given), str(made)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClipError(f"{file.where}: takes Assimp more than {LONGEST:g} s to read: {_by_blender(file)}") from None
    except OSError as error:
        raise ClipError(f"{file.where}: Assimp does not run ({error.strerror}): {_by_blender(file)}") from None
    if done.returncode or not made.is_file():
        told = (done.stderr + done.stdout).decode(errors="replace").replace(str(given), given.name)
        said = [line for line in told.splitlines() if "error" in line.lower() or "fail" in line.lower()]
        reason = one_line(said[-1]) if said else f"exit code {done.returncode}"
        raise ClipError(f"{file.where}: Assimp cannot read it ({reason}): {_by_blender(file)}")


def _by_blender(file: ClipFile) -> str:
    """The way on: the command that has Blender convert the file."""
    return (
        f"convert it: blender -b --python-expr \"import bpy; bpy.ops.import_scene.fbx(filepath='{file.name.name}'); "
        f"bpy.ops.export_scene.gltf(filepath='{file.name.stem}.glb')\""
    )
