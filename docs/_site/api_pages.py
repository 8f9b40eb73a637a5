"""Hooks of the site: pages of the Python API, one for each package, and the documents of `evidence/docs`.

The documents of the evidence lie next to its code. On the site they are pages like all others.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Section

ROOMS = (
    "ik",
    "ik.null_space",
    "ik.position",
    "robots",
    "retargeting",
    "mocap",
    "walking",
    "reaching",
    "policy",
    "performing",
    "human",
    "human.models",
    "collision",
    "collision.ssv",
    "kinematics",
    "numerics",
    "multibody",
    "simulation",
    "simulation.state_space",
    "estimation",
    "tendons",
    "evaluation",
    "evaluation.incidents",
    "evaluation.report",
    "hardware",
    "clip_library",
    "viewer",
    "nodes",
    "session",
    "session.launching",
)


EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "docs"


def _page(room: str) -> str:
    face = importlib.import_module(f"humanoid_control.{room}")
    lines = [f"# {room}", "", inspect.getdoc(face) or "", ""]
    for name in sorted(face.__all__):
        lines += _entry(face, name)
    if others := sorted(set(dir(face)) - set(face.__all__)):
        lines += ["## Names without a promise", "", "They can be imported, and can change in any version.", ""]
        for name in others:
            lines += _entry(face, name)
    return "\n".join(lines)


def _entry(face: Any, name: str) -> list[str]:
    value = getattr(face, name)
    home = getattr(value, "__module__", "")
    if home.startswith("humanoid_control.") and (inspect.isclass(value) or inspect.isroutine(value)):
        return [f"::: {home}.{name}", ""]
    return [f"### {name}", "", f"`{type(value).__name__}`", ""]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the API and of the evidence to the pages of the folder."""
    for path in sorted(EVIDENCE.glob("*.md")):
        files.append(File.generated(config, path.name, content=path.read_text().replace("](../../docs/", "](")))
    index = [
        "# Python API",
        "",
        "Public names of each package, then its names without a promise; all others are internal. "
        "[Stability](../public_api.md) of each name.",
        "",
    ]
    index += ["| package | content |", "|---|---|"]
    for room in ROOMS:
        face = importlib.import_module(f"humanoid_control.{room}")
        first = (inspect.getdoc(face) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        index.append(f"| [`{room}`]({room}.md) | {first} |")
        files.append(File.generated(config, f"api/{room}.md", content=_page(room)))
    files.append(File.generated(config, "api/index.md", content="\n".join(index) + "\n"))
    return files


def on_nav(nav: Any, config: Any, files: Files) -> Any:
    """Show the pages of the rooms below the API's first page."""
    for section in nav.items:
        if isinstance(section, Section) and section.title == "Reference":
            pages = [files.get_file_from_path(f"api/{room}.md").page for room in ROOMS]
            for page, room in zip(pages, ROOMS, strict=True):
                page.title, page.parent = room, section
            section.children[1:1] = pages
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links to documents of the evidence lead to their pages."""
    return markdown.replace("](../../evidence/docs/", "](../").replace("](../evidence/docs/", "](")
