"""The report in a real browser: on a phone nothing is wider than the screen."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_results import WINNERS, fake_recipe, fake_results

from rankinite.experiments.report import report_html

WIDTHS = (375, 1200)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3000",
)
# A page tells the one around it how wide it is, how many words its charts cut off, and whether it
# was laid out by its style sheet.
TELL = """<script>
addEventListener("load", function () {
  var root = document.documentElement;
  var cut = Array.from(document.querySelectorAll(".y span, .x span, .num, .label")).filter(
    function (one) { return one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0; });
  var accent = getComputedStyle(document.querySelector(".big")).color;
  parent.postMessage([innerWidth, root.scrollWidth, cut.length, accent].join(" "), "*");
});
</script></body>"""
LISTEN = """<!doctype html><body><ul id="told"></ul><script>
addEventListener("message", function (event) {
  var item = document.createElement("li");
  item.textContent = event.data;
  document.getElementById("told").append(item);
});
</script>"""


@pytest.fixture
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium on this machine to open the report in")
    return found


def dumped(browser: str, folder: Path) -> str:
    arguments = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    page = (folder / "around.html").as_uri()
    done = subprocess.run([*arguments, page], capture_output=True, text=True, timeout=60)
    return done.stdout


def test_no_page_is_wider_than_its_screen(browser, tmp_path):
    results = fake_results(
        fake_recipe({**WINNERS, "a-model-with-an-unusually-long-name-of-one-word": "MART"})
    )
    page = report_html(results).replace("</body>", TELL)
    (tmp_path / "report.html").write_text(page)
    frames = "".join(
        f'<iframe src="report.html" style="width:{width}px;height:900px;border:0"></iframe>'
        for width in WIDTHS
    )
    (tmp_path / "around.html").write_text(LISTEN + frames)
    told = re.findall(r"<li>(\d+) (\d+) (\d+) (.*?)</li>", dumped(browser, tmp_path))
    assert sorted(int(screen) for screen, *_ in told) == sorted(WIDTHS)
    for screen, width, cut, accent in told:
        assert int(width) <= int(screen)
        assert cut == "0"
        assert accent == "rgb(0, 103, 165)"
