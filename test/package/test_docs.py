"""Documentation: its Python runs (all of it in README and tutorials, elsewhere the imports); links lead somewhere."""

import ast
import re
from pathlib import Path

import pytest

from test.package.violations import assert_none

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "README.zh.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "evidence" / "docs").glob("*.md"),
    ]
)
WHOLE = [p for p in PAGES if p.stem.startswith("README") or p.parent.name == "tutorials"]
TRANSLATIONS = [p for p in PAGES if p.name.endswith(".zh.md")]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")  # file, heading
GENERATED = ("api/",)  # pages that are made while the site is built


def name(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    return BLOCK.findall(path.read_text())


def test_what_a_page_imports_exists():
    found = []
    for page in PAGES:
        for block in blocks(page):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    try:
                        exec(compile(ast.Module([node], []), name(page), "exec"), {})
                    except ImportError as error:
                        found.append(f"{name(page)}: `{ast.unparse(node)}`: {error}")
    assert_none(found)


@pytest.mark.parametrize("page", [p for p in WHOLE if blocks(p)], ids=name)
def test_the_code_of_a_page_runs(page):
    """One block after the other, in one namespace, as a reader would type them."""
    seen = {"__name__": "__page__"}
    for block in blocks(page):
        exec(compile(block, name(page), "exec"), seen)


def prose(page):
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)


def anchors(page):
    """Names of the headings of a page in links, as the site and a repository's host make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_links_and_pictures_lead_somewhere():
    found = []
    for page in PAGES:
        for file, heading in LINK.findall(prose(page)):
            if "://" in file or file.startswith(GENERATED):
                continue
            target = page.parent / file if file else page
            if not target.exists():
                found.append(f"{name(page)}: links to {file}, which does not exist")
            elif heading and heading not in anchors(target):
                found.append(f"{name(page)}: links to {file}#{heading}, a heading that does not exist")
    assert_none(found)


@pytest.mark.parametrize("page", TRANSLATIONS, ids=name)
def test_a_translation_has_the_structure_of_its_original(page):
    """Compare headings, code without comments, and table rows; tables of a bench stand in the original only."""

    def structure(text):
        text = re.sub(r"<!-- measured by.*?<!-- end of what is measured -->", "", text, flags=re.S)
        code = "".join(re.findall(r"^```.*?^```", text, re.M | re.S))
        plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        return {
            "headings": re.findall(r"^#+", plain, re.M),
            "code": re.sub(r"\s*(?:#|  - #).*$", "", code, flags=re.M),
            "rows": [row.count("|") for row in re.findall(r"^\|.*$", plain, re.M)],
            "points": len(re.findall(r"^\* ", plain, re.M)),
        }

    original = page.with_name(page.name.replace(".zh.md", ".md"))
    translated, expected = structure(page.read_text()), structure(original.read_text())
    assert translated == expected
    assert page.name in original.read_text() and original.name in page.read_text()


def test_every_service_of_a_node_is_on_the_page():
    page = (ROOT / "docs" / "topics.md").read_text()
    made = {
        (path.stem, found)
        for path in (ROOT / "humanoid_control" / "nodes").glob("*.py")
        for found in re.findall(r'create_service\(\w+, "~/(\w+)"', path.read_text())
    }
    assert ("robot_driver", "home") in made
    asked = made - {("tendon_estimation", "zero"), ("tendon_estimation", "learn")}
    assert_none(
        f"docs/topics.md: does not name {node}/{service}, a service of the node"
        for node, service in sorted(asked)
        if f"`{node}/{service}`" not in page
    )
