"""Pages that are read as a browser would: whole, in need of nothing, and no wider than a screen."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "<script>alert('é & \"')</script>"

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
    function (part) { return part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0; });
  var accent = getComputedStyle(document.querySelector(".big")).color;
  parent.postMessage([innerWidth, root.scrollWidth, cut.length, accent].join(" "), "*");
});
</script></body>"""
LISTEN = """<!doctype html><body><ul id="reports"></ul><script>
addEventListener("message", function (event) {
  var item = document.createElement("li");
  item.textContent = event.data;
  document.getElementById("reports").append(item);
});
</script>"""


class Page(HTMLParser):
    """Reads a page: its words, ids and links; refuses tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all_of(self, attribute: str) -> list[str | None]:
        return [value for name, value in self.attributes if name == attribute]


def assert_needs_nothing_else(text: str) -> None:
    """Check that a page is whole, has no links to elsewhere, and no place that is no number."""
    page = Page(text)
    ids = page.all_of("id")
    assert len(ids) == len(set(ids))
    links = page.all_of("href")
    assert all(link[1:] in ids for link in links if link.startswith("#"))
    assert {link for link in links if not link.startswith("#")} == {"data:,"}
    assert page.all_of("src") == []
    assert not re.search(r"https?://|//[a-z]|@import|url\(", text.replace("</", "<"))
    assert "nan" not in re.findall(r"[\w.+-]+", page.text.lower())
    assert not re.search(r'style="[^"]*(nan|inf)', text)
    assert not re.search(r' d="[^"]*(nan|inf)', text)


def assert_fits_screens(text: str, folder: Path) -> None:
    """Check in a browser that a page is no wider than a phone; skip where there is no browser."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no chromium on this machine to open the page in")
    (folder / "page.html").write_text(text.replace("</body>", TELL))
    frames = "".join(
        f'<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>'
        for width in WIDTHS
    )
    around = folder / "around.html"
    around.write_text(LISTEN + frames)
    arguments = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    done = subprocess.run([*arguments, around.as_uri()], capture_output=True, text=True, timeout=60)
    reports = re.findall(r"<li>(\d+) (\d+) (\d+) (.*?)</li>", done.stdout)
    assert sorted(int(screen) for screen, *_ in reports) == sorted(WIDTHS)
    for screen, width, cut, accent in reports:
        assert int(width) <= int(screen)
        assert cut == "0"
        assert accent == "rgb(0, 103, 165)"
