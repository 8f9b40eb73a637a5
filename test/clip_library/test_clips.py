"""Which clips a library has, what they are called, and when one counts as changed."""

import os

import pytest

from humanoid_control.clip_library.clips import LibraryClip, find_clips, is_library, unpacked
from humanoid_control.errors import ClipError, ConfigError


@pytest.fixture
def library(tmp_path):
    for name in ("b.bvh", "a/z.trc", "a/deep/y.C3D", "a/.hidden.bvh", ".git/x.bvh", "notes.txt", "out/done.csv"):
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "lib"


def names(clips):
    return [clip.name for clip in clips]


def test_a_folder_is_searched_to_the_bottom_but_not_the_results(library):
    assert names(find_clips(str(library))) == ["a/deep/y.C3D", "a/z.trc", "b.bvh", "out/done.csv"]
    assert names(find_clips(str(library), library / "out")) == ["a/deep/y.C3D", "a/z.trc", "b.bvh"]
    assert names(find_clips(f"{library}/a/")) == ["deep/y.C3D", "z.trc"]


def test_links_are_followed_and_a_circle_of_them_ends(library):
    (library / "a" / "round").symlink_to(library)
    (library / "c").symlink_to(library / "a" / "deep")
    found = names(find_clips(str(library)))
    assert len(found) == len(set(found)) and "b.bvh" in found and any(n.endswith("y.C3D") for n in found)


def test_a_pattern_names_clips_below_what_is_fixed_in_it(library, monkeypatch):
    assert names(find_clips(f"{library}/**/*.[ct]*", library / "out")) == ["a/z.trc"]
    assert names(find_clips(f"{library}/*/*.trc")) == ["a/z.trc"]
    monkeypatch.chdir(library)
    assert names(find_clips("*.bvh")) == ["b.bvh"]
    with pytest.raises(ClipError, match="no clips match"):
        find_clips(f"{library}/*.amc")


def test_a_list_may_name_what_is_not_there(library):
    text = library / "clips.txt"
    text.write_text("# some\nb.bvh\n\na/z.trc  # good\nmissing.bvh\ndance\n../lib/a/deep/y.C3D\nb.bvh\n")
    clips = find_clips(str(text))
    assert names(clips) == ["a/z.trc", "b.bvh", "dance", "lib/a/deep/y.C3D", "missing.bvh"]
    assert clips[2].source == "dance" and clips[2].files() == [] and clips[2].digest()
    with pytest.raises(ClipError, match=r"missing\.bvh: cannot be read"):
        clips[4].digest()
    text.write_text("a/b.bvh\n../a/b.bvh\n")
    with pytest.raises(ConfigError, match=r"line 2: 'a/b\.bvh' is the name of an earlier clip"):
        find_clips(str(text))


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfe\x00", None])
def test_a_list_that_names_nothing_is_told(tmp_path, content):
    path = tmp_path / "list.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ClipError, match=r"list\.txt"):
        find_clips(str(path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ClipError, match="no clips in this folder"):
        find_clips(str(tmp_path / "empty"))


def test_what_is_a_library(tmp_path):
    assert all(map(is_library, (str(tmp_path), "x/*.bvh", "clips.txt")))
    assert not any(map(is_library, ("dance", "walk.bvh", str(tmp_path / "none"))))
    odd = tmp_path / "a[1].bvh"
    odd.write_text("x")
    assert not is_library(str(odd)), "a file of that name is one clip"


def test_another_byte_or_another_skeleton_is_another_clip(tmp_path):
    amc, asf = tmp_path / "11_01.amc", tmp_path / "11.asf"
    amc.write_text("motion")
    clip = LibraryClip("11_01.amc", str(amc))
    with pytest.raises(ClipError, match="skeleton not found"):
        clip.digest()
    asf.write_text("bones")
    first = clip.digest()
    os.utime(amc)
    assert clip.digest() == first, "its time does not count"
    asf.write_text("bonez")
    second = clip.digest()
    amc.write_text("motiom")
    assert len({first, second, clip.digest()}) == 3
    with unpacked(clip.packed()) as path:
        assert path.name == "11_01.amc" and LibraryClip("x", str(path)).digest() == clip.digest()
    assert not path.exists()
