"""Files dropped on a page: temporary storage and type detection."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from humanoid_control.errors import HumanoidError, shown
from humanoid_control.mocap.load import FORMATS
from humanoid_control.robots.description.meshes import CONFINED
from humanoid_control.robots.description.mjcf import is_mjcf

ROBOT_FILES = (".urdf", ".xml", ".mjcf")
ARCHIVE = ".zip"
LARGEST, MOST_UNPACKED, MOST_FILES = 256 << 20, 1 << 30, 5000  # [bytes], [bytes], files in an archive
CLIP, ROBOT = "clip", "robot"
HEAD = 1 << 20  # [bytes] of an XML file that are inspected

# Passes a file dropped anywhere to the input of the upload button.
DROP_SCRIPT = """(() => {
if (window.humanoidDrop) return;
window.humanoidDrop = true;
const veil = document.createElement('div');
veil.textContent = 'Drop a clip, a URDF or MJCF, or a zip of one';
veil.style.cssText = 'position:fixed;inset:12px;z-index:9999;display:none;align-items:center;justify-content:center;'
  + 'font:600 28px system-ui,sans-serif;color:#1864ab;background:rgba(208,235,255,.8);border:4px dashed #1c7ed6;'
  + 'border-radius:16px;pointer-events:none';
document.body.appendChild(veil);
let depth = 0;
const files = e => e.dataTransfer && [...e.dataTransfer.types].includes('Files');
const veiled = on => { veil.style.display = on ? 'flex' : 'none'; };
window.addEventListener('dragenter', e => { if (files(e)) { depth++; veiled(true); e.preventDefault(); } });
window.addEventListener('dragover', e => { if (files(e)) e.preventDefault(); });
window.addEventListener('dragleave', e => { if (files(e) && --depth <= 0) { depth = 0; veiled(false); } });
window.addEventListener('drop', async e => {
  if (!files(e)) return;
  e.preventDefault(); depth = 0; veiled(false);
  for (const file of [...e.dataTransfer.files]) {
    const input = document.querySelector('input[type=file][id^=file_upload_]');
    if (!input) return;
    const one = new DataTransfer();
    one.items.add(file);
    input.files = one.files;
    input.dispatchEvent(new Event('change', { bubbles: true }));
    await new Promise(r => setTimeout(r, 300));
  }
});
})()"""


class Upload(NamedTuple):
    """Dropped file.

    Attributes:
        kind: CLIP or ROBOT.
        title: title in pickers.
        path: clip, or description of the robot.
    """

    kind: str
    title: str
    path: Path


class Uploads:
    """Temporary folder of dropped files."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dance_")).resolve()
        CONFINED.add(self.folder)
        self._count = 0

    def keep(self, name: str, content: bytes) -> Upload:
        """Store a file and detect its type.

        Raises:
            HumanoidError: if it is empty, too large, or neither a clip nor a robot.
        """
        title = plain_name(name)
        suffix = Path(title).suffix.lower()
        if not content:
            raise HumanoidError(f"{title}: the file is empty")
        if len(content) > LARGEST:
            raise HumanoidError(f"{title}: {len(content) >> 20} MB are too large for a page (at most {LARGEST >> 20})")
        if suffix not in (*FORMATS, *ROBOT_FILES, ARCHIVE):
            known = ", ".join((*FORMATS, *ROBOT_FILES, ARCHIVE))
            raise HumanoidError(f"{title}: neither a clip nor a robot: drop one of {known}")
        self._count += 1
        place = self.folder / str(self._count)
        place.mkdir()
        path = place / title
        path.write_bytes(content)
        if suffix == ARCHIVE:
            return self._archive(path, title)
        if suffix in ROBOT_FILES:
            _check_robot(path, title)
            return Upload(ROBOT, title, path)
        return Upload(CLIP, title, path)

    def _archive(self, path: Path, title: str) -> Upload:
        """Return a zip as robot if it contains a URDF or MJCF, else as clip."""
        try:
            with zipfile.ZipFile(path) as archive:
                entries = [e for e in archive.infolist() if not e.is_dir()]
                if not any(Path(e.filename).suffix.lower() in ROBOT_FILES for e in entries):
                    return Upload(CLIP, title, path)
                if len(entries) > MOST_FILES or sum(e.file_size for e in entries) > MOST_UNPACKED:
                    raise HumanoidError(f"{title}: too large for a page: give its path on the command line")
                where = path.parent / "unpacked"
                for entry in entries:
                    if ".." not in PurePosixPath(entry.filename).parts:
                        archive.extract(entry, where)
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as e:
            raise HumanoidError(f"{title}: not a readable zip archive: {shown(e)}") from None
        found = sorted(p for p in where.rglob("*") if p.suffix.lower() in ROBOT_FILES and _describes_robot(p))
        if not found:
            raise HumanoidError(f"{title}: contains no URDF or MJCF of a robot")
        # The top-most, then largest file: others are parts or scenes.
        best = min(found, key=lambda p: (len(p.relative_to(where).parts), -p.stat().st_size))
        return Upload(ROBOT, f"{Path(title).stem}: {best.name}", best)

    def plain(self, text: str) -> str:
        """Replace temporary paths in a message by the original names."""
        return re.sub(rf"{re.escape(str(self.folder))}/\d+/(unpacked/)?", "", text)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        CONFINED.discard(self.folder)


def plain_name(name: str) -> str:
    """Return a file name of safe characters."""
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    stem = re.sub(r"[^\w .()+-]", "_", stem if dot else last).strip(" .") or "file"
    return f"{stem[:80]}{dot}{re.sub(r'[^A-Za-z0-9]', '', suffix)[:8] if dot else ''}"


def _describes_robot(path: Path) -> bool:
    with path.open("rb") as file:
        text = file.read(HEAD).decode(errors="replace")
    return "<robot" in text or is_mjcf(text)


def _check_robot(path: Path, title: str) -> None:
    if not _describes_robot(path):
        raise HumanoidError(f"{title}: neither a URDF (<robot>) nor an MJCF (<mujoco>)")


def let_files_drop(server: Any) -> bool:
    """Accept files dropped anywhere on the page; return False if viser cannot."""
    try:
        from viser._messages import RunJavascriptMessage

        server._websock_server.queue_message(RunJavascriptMessage(source=DROP_SCRIPT))
    except (ImportError, AttributeError, TypeError):  # another viser release; the button still works
        return False
    return True
