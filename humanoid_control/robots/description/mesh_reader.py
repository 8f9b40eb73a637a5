"""Process that reads mesh files with coal's loader (Assimp), which damaged files can crash.

The process is reused, since its start takes a third of a second, and not forked, since callers have threads. A file
that crashes or delays it counts as unreadable.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import resource
import select
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

LONGEST = 60.0  # [s] per mesh
MOST_BYTES = 4 * 2**30  # of the process's memory
_HEAD = struct.Struct("<qq")  # numbers of vertices and of triangles; -1: not readable
_lock = threading.Lock()
_running: list[subprocess.Popen[bytes]] = []


def read_mesh(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Return vertices (n, 3) in file units and triangles (m, 3); None if unreadable."""
    with _lock:
        for _ in range(2):  # retry once with a new process if the old one had ended
            fresh = not _running or _running[0].poll() is not None
            found = _ask(_process(), os.path.abspath(path))
            if found is not None:
                return found[0] if _whole(found[0]) else None
            if fresh:
                return None
    return None


def _whole(mesh: tuple[np.ndarray, np.ndarray] | None) -> bool:
    if mesh is None:
        return False
    vertices, faces = mesh
    return bool(np.isfinite(vertices).all() and (not faces.size or (faces.min() >= 0 and faces.max() < len(vertices))))


def _process() -> subprocess.Popen[bytes]:
    """Return the running process, which ends with its standard input."""
    if not _running or _running[0].poll() is not None:
        _running[:] = [
            subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # Ctrl-C reaches only this process, which then closes the pipe
            )
        ]
        atexit.register(_end, _running[0])
    return _running[0]


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        process.kill()
        process.wait()


def _ask(process: subprocess.Popen[bytes], path: str) -> tuple[tuple[np.ndarray, np.ndarray] | None] | None:
    """Return the answer in a tuple of one; None if the process ended or timed out."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(os.fsencode(path) + b"\0")
        process.stdin.flush()
        until = time.monotonic() + LONGEST
        n, m = _HEAD.unpack(_receive(process.stdout.fileno(), _HEAD.size, until))
        if n < 0:
            return (None,)
        vertices = np.frombuffer(_receive(process.stdout.fileno(), 24 * n, until), float).reshape(n, 3)
        faces = np.frombuffer(_receive(process.stdout.fileno(), 24 * m, until), np.int64).reshape(m, 3)
    except (OSError, EOFError):
        _end(process)
        return None
    return ((vertices.copy(), faces.copy()),)


def _receive(pipe: int, size: int, until: float) -> bytes:
    """Read `size` bytes of a pipe.

    Raises:
        EOFError: if the pipe ends, or after `until`.
    """
    got = bytearray()
    while len(got) < size:
        if not select.select([pipe], [], [], max(until - time.monotonic(), 0.0))[0]:
            raise EOFError
        part = os.read(pipe, min(size - len(got), 1 << 20))
        if not part:
            raise EOFError
        got += part
    return bytes(got)


def main() -> None:
    """Answer paths on standard input until it ends."""
    answers = os.dup(1)
    os.dup2(2, 1)  # the loader prints
    import coal

    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES if limit < 0 else min(MOST_BYTES, limit), limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    waiting = b""
    with os.fdopen(answers, "wb") as out:
        while part := os.read(0, 1 << 16):
            *paths, waiting = (waiting + part).split(b"\0")
            for path in paths:
                try:
                    mesh = coal.MeshLoader().load(os.fsdecode(path), np.ones(3))
                    triangles = (mesh.tri_indices(k) for k in range(mesh.num_tris))
                    faces = np.array([[t[0], t[1], t[2]] for t in triangles], dtype=np.int64).reshape(-1, 3)
                    vertices = np.array(mesh.vertices(), dtype=float).reshape(-1, 3)
                except (RuntimeError, ValueError, OSError, MemoryError):
                    out.write(_HEAD.pack(-1, 0))
                else:
                    out.write(_HEAD.pack(len(vertices), len(faces)) + vertices.tobytes() + faces.tobytes())
                out.flush()


if __name__ == "__main__":
    main()
