"""Pages of `dc-sim simulate --report` and `search --report`, drawn by a browser without a network, at a desk's and a telephone's width."""

import os
import pathlib
import re
import subprocess

import pytest
from browser import BROWSER, draw

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("DCSIM_BIN", SOURCE / "build/dev/bin")) / "dc-sim"

# What the page looks like once it is drawn: a chart's canvas by its number of colours.
PROBE = """<script>addEventListener("load", () => setTimeout(() => {
  const colours = canvas => new Set(new Uint32Array(
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
  parent.postMessage({
    verdict: document.getElementById("verdict").innerText,
    charts: Object.fromEntries([...document.querySelectorAll(".chart")].map(
      chart => [chart.id, colours(chart.querySelector("canvas"))])),
    small: [...document.querySelectorAll("body *:not(script)")].filter(
      element => element.innerText && parseFloat(getComputedStyle(element).fontSize) < 12).length,
    needed: document.documentElement.scrollWidth, width: innerWidth}, "*");
}, 500))</script>"""
TINY = ["simulate", "traces/tiny-llama", "--cluster", "h200-2", "--plan", "zero3"]
# By case: what is asked, and the charts that the page has.
CASES = {
    "fits": (
        ["simulate", "traces/tiny-llama", "--cluster", "h200-8", "--plan", "zero3-deepcompile"],
        {"parts", "timeline", "memory", "communication"},
    ),
    "many-tasks": (
        ["simulate", "traces/llama-3-8b", "--cluster", "h200-8", "--plan", "zero3", "--set", "gradient_accumulation_steps=16"],
        {"parts", "timeline", "memory", "communication"},
    ),
    "beside": (
        ["simulate", "traces/llama-3.2-1b-cudnn", "--cluster", "h200-1", "--plan", "zero1-deepcompile",
         "--beside", "tests/data/kineto/llama-3.2-1b-zero1.json.gz"],
        {"parts", "timeline", "memory", "beside"},
    ),
    "out-of-memory": (
        [*TINY, "--cluster-set", "gpu.memory=2500 MB", "--set", "reduce_bucket=2000000000 elements"],
        {"timeline", "memory"},
    ),
    "no-room-for-weights": (
        ["simulate", "traces/qwen3-8b", "--cluster", "h200-1", "--plan", "zero1", "--cluster-set", "gpu.memory=20 GB"], set()
    ),
    "search": (
        ["search", "traces/tiny-llama", "--cluster", "h200-2", "--schedules", "300"],
        {"parts", "timeline", "memory", "communication", "front"},
    ),
}


def ask(words, page):
    """Runs dc-sim, and returns the first line of its answer."""
    run = subprocess.run([PROGRAM, *words, "--report", page], cwd=SOURCE, capture_output=True, text=True,
                         check=False)
    assert run.returncode in (0, 1), run.stderr
    return run.stdout.splitlines()[0]


def test_the_same_question_gives_the_same_page(tmp_path):
    ask(TINY, tmp_path / "a.html")
    ask(TINY, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_page_asks_no_network_and_stays_small(tmp_path):
    ask(CASES["many-tasks"][0], tmp_path / "page.html")
    data = re.search(r'<script id="data"[^>]*>(.*?)</script>', (tmp_path / "page.html").read_text(), flags=re.S)
    assert len(data.group(1)) < 3_000_000
    bare = re.sub(r"<script.*?</script>", "", (tmp_path / "page.html").read_text(), flags=re.S)
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import", bare)


@pytest.mark.parametrize("out", ["missing/page.html", "."])
def test_a_page_that_cannot_be_written_is_bad_input(tmp_path, out):
    run = subprocess.run([PROGRAM, *TINY, "--report", tmp_path / out, "--json", tmp_path / "a.json"],
                         cwd=SOURCE, capture_output=True, text=True, check=False)
    assert run.returncode == 2 and run.stdout == "" and len(run.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: apt-get install chromium")
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("case", CASES)
def test_a_browser_draws_it(tmp_path, case, width):
    words, charts = CASES[case]
    answer = ask(words, tmp_path / "page.html")
    seen, logged = draw(tmp_path, (tmp_path / "page.html").read_text(), PROBE, width, 4000)
    assert "CONSOLE" not in logged, [line for line in logged.splitlines() if "CONSOLE" in line]
    assert seen["verdict"] == answer or words[0] == "search" and seen["verdict"].startswith("fits: ")
    assert seen["charts"].keys() == charts
    assert all(colours > 5 for colours in seen["charts"].values()), seen["charts"]
    assert seen["needed"] <= seen["width"] == width
    assert seen["small"] == 0
