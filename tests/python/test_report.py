"""Reports are one file that a browser draws without a network, at a telephone's width, too."""

import dcsim
import pytest
from browser import BROWSER, draw

pytestmark = pytest.mark.filterwarnings("ignore::dcsim.InputNote")

# Charts once they are drawn, and the tables.
PROBE = """<script>addEventListener("load", () => setTimeout(() => parent.postMessage({
  charts: [...document.querySelectorAll(".chart")].filter(chart => chart.querySelector("canvas")).map(chart => chart.id),
  tables: [...document.querySelectorAll("table")].map(table => table.innerText),
  needed: document.documentElement.scrollWidth, width: innerWidth}, "*"), 500))</script>"""


@pytest.fixture
def page(program, tmp_path):
    """A report with all that it can have, and its result."""
    search = dcsim.search("traces/tiny-llama", cluster="h200-4", schedules=200)
    measured = dcsim.simulate("traces/tiny-llama", cluster="h200-4", plan="zero3-deepcompile").to_dict()
    measured |= {"origin": "measured", "step_time_ns": 4_000_000}
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


def test_a_report_alone_is_what_the_program_writes(program, tmp_path):
    asked = {"cluster": "h200-4", "plan": "zero3-deepcompile"}
    dcsim.report(tmp_path / "ours.html", "traces/tiny-llama", **asked)
    program.run("simulate", "traces/tiny-llama", "--cluster", "h200-4", "--plan", "zero3-deepcompile",
                "--report", tmp_path / "theirs.html")
    assert (tmp_path / "ours.html").read_bytes() == (tmp_path / "theirs.html").read_bytes()


def test_a_step_that_does_not_fit_has_a_report(program, tmp_path):
    result = dcsim.report(
        tmp_path / "step.html", "traces/tiny-llama", cluster="h200-2", plan="zero3",
        cluster_set={"gpu.memory": "2500 MB"}, set={"reduce_bucket": "2000000000 elements"},
    )
    assert result.outcome == "out_of_memory"
    assert result.stop.task in (tmp_path / "step.html").read_text()


def test_what_was_not_measured_is_refused(program, tmp_path):
    predicted = dcsim.simulate("traces/tiny-llama", cluster="h200-2", plan="zero3").to_dict()
    with pytest.raises(dcsim.InputError, match="measured: /origin: expected a measured result, found a predicted one"):
        dcsim.report(tmp_path / "a.html", "traces/tiny-llama", cluster="h200-2", plan="zero3", measured=predicted)
    assert not (tmp_path / "a.html").exists()


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_draws_it(page, tmp_path, width):
    path, result = page
    seen, _ = draw(tmp_path, path.read_text(), PROBE, width, 3000)
    assert {"timeline", "memory", "front"} <= set(seen["charts"])
    assert seen["needed"] <= seen["width"] == width
    error = f"{result.step_time_ns / 4_000_000 - 1:+.1%}".replace("%", " %")
    assert any(error in table for table in seen["tables"])
    assert any("deepcompile-0.19.8" in table and "front" in table for table in seen["tables"])
