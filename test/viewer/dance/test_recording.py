"""Recordings: what is in them is what was danced, and one HTML file plays without a server."""

import io
import json

import numpy as np
import pytest

from humanoid_control.cli.main import main
from humanoid_control.errors import ConfigError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.dance.dancer import make_dancer
from humanoid_control.viewer.dance.recording import record_dance

FPS, SECONDS = 10.0, 1.0


@pytest.fixture(scope="module")
def body():
    return find_body_points(load_clip("dance").crop(6.0, 9.0))


def unpacked(data):
    """Times and messages of a recording."""
    msgspec = pytest.importorskip("msgspec")
    zstandard = pytest.importorskip("zstandard")
    inner = zstandard.ZstdDecompressor().decompressobj().decompress(data[8:])
    length = int.from_bytes(inner[:8], "little")
    return msgspec.msgpack.decode(inner[8 : 8 + length])


@pytest.mark.nightly
def test_links_are_where_the_robot_danced(body):
    found = unpacked(record_dance([make_dancer(body, "hrp2")], SECONDS, FPS, ".viser"))
    assert found["durationSeconds"] == pytest.approx(SECONDS)
    dancer, link = make_dancer(body, "hrp2"), "l_wrist"
    link = next(name for name in dancer.view().poses if "wrist" in name or "hand" in name)
    places = [
        (at, message["position"])
        for at, message in found["messages"]
        if message["type"] == "SetPositionMessage" and message["name"].endswith(f"/robot/{link}")
    ]
    assert len(places) >= 8
    shown = {round(at, 6): np.array(place) for at, place in places}
    for frame in range(1, round(SECONDS * FPS) + 1):
        while round(dancer.time * 1e6) < round(frame / FPS * 1e6) - 100:
            dancer.step()
        if round(frame / FPS, 6) in shown:
            assert shown[round(frame / FPS, 6)] == pytest.approx(dancer.view().poses[link].translation, abs=2e-3)


def test_another_ending_is_refused(body):
    with pytest.raises(ConfigError, match=r"\.html or a \.viser"):
        record_dance([], 1.0, 30.0, ".mp4")


@pytest.mark.nightly
def test_the_command_writes_it_whole(tmp_path, capsys):
    path = tmp_path / "dance.viser"
    assert main(["dance", "dance", "--robot", "hrp2,armar3", "--seconds", "0.3", "--at", "2", "-o", str(path)]) == 0
    said = capsys.readouterr()
    assert "written" in said.out and "upper body only" in said.err
    names = {m["name"] for _, m in unpacked(path.read_bytes())["messages"] if "name" in m}
    assert sum(name.endswith("/ghost") for name in names) == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'")
def test_one_html_file_plays_from_the_disk(tmp_path, body, chromium):
    Image = pytest.importorskip("PIL.Image", reason="needs pillow")
    path = tmp_path / "dance.html"
    path.write_bytes(record_dance([make_dancer(body, "hrp2")], 2.0, 15.0, ".html"))
    browser = chromium
    browser.call("Emulation.setDeviceMetricsOverride", width=800, height=500, deviceScaleFactor=1, mobile=False)
    browser.call("Network.enable")
    browser.open(f"file://{path}?fixedDpr=0.5", 1)

    def picture():
        return np.asarray(Image.open(io.BytesIO(browser.picture((0, 0, 800, 440)))).convert("RGB")).astype(int)

    for _ in range(100):
        first = picture()
        if first.std() > 10 and (first.max(axis=2) < 110).sum() > 300:
            break
        browser.sleep(0.5)
    else:
        raise AssertionError("no robot is seen")
    for _ in range(60):
        if (np.abs(picture() - first).max(axis=2) > 40).mean() > 0.002:
            break
        browser.sleep(0.3)
    else:
        raise AssertionError("it does not move")
    fetched = browser.evaluate("JSON.stringify(performance.getEntriesByType('resource').map(e => e.name))")
    outside = [name for name in json.loads(fetched) if not name.startswith(("data:", "blob:", "file:"))]
    assert not outside, "it needs no network"
