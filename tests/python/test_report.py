"""Reports are one file that a browser draws without a network, at a telephone's width, too."""

import re

import dcsim
import pytest
from browser import BROWSER, draw

pytest.importorskip("plotly")
pytestmark = pytest.mark.filterwarnings("ignore::dcsim.InputNote")

# What the page looks like once it is drawn.
PROBE = """<script>addEventListener("load", () => setTimeout(() => {
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  parent.postMessage({
    plots: plots.length, drawn: plots.filter(plot => plot.querySelector(".subplot")).length,
    needed: document.documentElement.scrollWidth, width: innerWidth,
    traces: plots.map(plot => plot.querySelectorAll(".trace, .bars .point").length)}, "*");
}, 500))</script>"""


@pytest.fixture
def page(program, tmp_path):
    """A report with all that it can have, and its result."""
    search = dcsim.search("traces/tiny-llama", cluster="h200-4", schedules=200)
    measured = {
        "format": "dc-result/1", "origin": "measured", "step_time_ns": 4_000_000, "compute_ns": 1_000_000,
        "exposed_communication_ns": 0, "peak_reserved_bytes": 2**30, "peak_allocated_bytes": 2**30,
    }
    path = tmp_path / "step.html"
    result = dcsim.report(
        path, "traces/tiny-llama", cluster="h200-4", plan="zero3-deepcompile", search=search, measured=measured
    )
    return path, result


def test_a_report_says_what_simulate_says(program, page):
    path, result = page
    words = ["traces/tiny-llama", "--cluster", "h200-4", "--plan", "zero3-deepcompile"]
    assert result.to_dict() == program.document("simulate", *words)
    text = path.read_text()
    for line in program.run("simulate", *words).stdout.splitlines()[:2]:
        assert line in text
    error = result.step_time_ns / 4_000_000 - 1
    assert f"{error:+.1%}" in text and "every decision" in text


def test_a_report_asks_no_network(page):
    text = re.sub(r"<script>.*?</script>", "", page[0].read_text(), count=1, flags=re.S)
    assert not re.findall(r"(?:src|href)\s*=", text)


def test_a_step_that_does_not_fit_has_a_report(program, tmp_path):
    result = dcsim.report(
        tmp_path / "step.html", "traces/tiny-llama", cluster="h200-2", plan="zero3",
        cluster_set={"gpu.memory": "2500 MB"}, set={"reduce_bucket": "2000000000 elements"},
    )
    assert result.outcome == "out_of_memory"
    assert result.stop.task in (tmp_path / "step.html").read_text()


def test_what_was_not_measured_is_refused(program, tmp_path):
    with pytest.raises(dcsim.InputError, match="measured: expected a dc-result/1 of dc-run step"):
        dcsim.report(tmp_path / "a.html", "traces/tiny-llama", cluster="h200-2", plan="zero3", measured={})
    assert not (tmp_path / "a.html").exists()


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_draws_it(page, tmp_path, width):
    seen, _ = draw(tmp_path, page[0].read_text(), PROBE, width, 3000)
    assert seen["plots"] == seen["drawn"] == 3
    assert seen["needed"] <= seen["width"] == width
    assert all(count > 0 for count in seen["traces"])
