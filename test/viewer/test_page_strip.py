"""A filmstrip of a page: photographs at moments, side by side; refusals."""

import http.server
import io
import threading

import pytest

pytest.importorskip("PIL", reason="needs pillow: pip install 'humanoid_control[video]'")

from PIL import Image

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.viewer import find_chromium
from humanoid_control.viewer.page_strip import CAPTION, WIDTH, PageStrip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.patient,
    pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'"),
]
PAGE = b"""<html><body style="background: rgb(255, 0, 0)">ready<script>
setTimeout(() => { document.body.style.background = 'rgb(0, 0, 255)'; document.title = 'blue'; }, 4000)</script>"""


@pytest.fixture
def page():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.mark.nightly
def test_moments_stand_side_by_side(page, tmp_path):
    strip = PageStrip(page, "ready", [12.0, 0.0])
    strip.start()
    strip._thread.join(120)
    assert len(strip.taken) == 2 and strip.taken[0][0] < 12.0 <= strip.taken[1][0]
    strip.write(tmp_path / "a.png", lambda at: "early" if at < 12.0 else "late")
    picture = Image.open(tmp_path / "a.png")
    first = Image.open(io.BytesIO(strip.taken[0][1]))
    assert picture.size == (2 * WIDTH, round(WIDTH * first.height / first.width) + CAPTION)
    assert picture.getpixel((3 * WIDTH // 2, CAPTION + 100)) == (0, 0, 255)


def test_a_page_that_is_not_there_is_named(tmp_path):
    strip = PageStrip("http://127.0.0.1:9", "ready", [0.0])
    with pytest.raises(EnvironmentProblem, match=r"no photograph of http://127\.0\.0\.1:9"):
        strip.write(tmp_path / "a.png", str)
    assert not list(tmp_path.iterdir())
