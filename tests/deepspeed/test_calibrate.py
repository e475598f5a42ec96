"""Host times: what is made of samples, and that DeepSpeed's calls are found and timed, on a CPU rank."""

import json
import subprocess
import sys

import pytest
from dcsim_deepspeed.calibrate import AMONG_OTHERS, host_section
from launching import ROOT, cpu_environment, dc_sim

ON_CPU = """
import sys
import deepspeed
import cpu_ops
cpu_ops.install()
from dcsim_deepspeed import calibrate
calibrate.SIZES, calibrate.STEPS = (4, 12), 5
calibrate.main(sys.argv[1:])
"""


def sample(parameters):
    """Of a host whose launch takes 10 us among others, an operator 20, a gradient 5, a graph 900 and 1 a parameter."""
    return {
        "parameters": parameters,
        "forward_us": [900.0 + parameters, 5000.0, 0.0],
        "has_overflow_us": [700.0 + parameters * (13 * 10 + 3 * 20)],
        "get_grad_norm_direct_us": [400.0 + parameters * (2 * 10 + 2 * 20)],
        "autograd_us": [50.0 + parameters * 5],
    }


def test_keys_are_what_each_parameter_costs():
    found = {"launch_in_a_loop_us": 10 / AMONG_OTHERS, "samples": [sample(50), sample(150)]}
    assert host_section(found, "a test").splitlines() == [
        "host:",
        "  launch: 10000 ns",
        "  python_operator: 20000 ns",
        "  autograd_node: 5000 ns",
        "  compiled_graph: 1000000 ns",
        "  source: a test",
    ]


def test_a_parameter_costs_the_same_where_a_launch_is_misjudged():
    """13 launches and 3 operators, 2 and 2: 190 and 60 us."""
    found = {"launch_in_a_loop_us": 12 / AMONG_OTHERS, "samples": [sample(50), sample(150)]}
    keys = dict(line.strip().split(": ") for line in host_section(found, "a test").splitlines()[1:])
    launch, operator = (int(keys[key].split()[0]) for key in ("launch", "python_operator"))
    assert 15 * launch + 5 * operator == 250_000


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    command = [sys.executable, "-c", ON_CPU, "--out", str(folder / "host.yaml"), "--samples", str(folder / "samples.json")]
    environment = cpu_environment(folder)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def test_every_call_is_timed(calibrated):
    found = json.loads((calibrated / "samples.json").read_text())
    assert found["launch_in_a_loop_us"] > 0
    for each, parameters in zip(found["samples"], (4, 12), strict=True):
        assert each["parameters"] == parameters
        for key in ("forward_us", "has_overflow_us", "get_grad_norm_direct_us", "autograd_us"):
            assert len(each[key]) == 5 and min(each[key]) > 0, key


def test_a_cluster_file_takes_the_keys(calibrated, tmp_path):
    cluster = (ROOT / "configs/clusters/h200-2.yaml").read_text()
    start = cluster.index("host:")
    end = next(at for at in range(start + 5, len(cluster)) if cluster[at] == "\n" and cluster[at + 1] not in " #")
    text = cluster[:start] + (calibrated / "host.yaml").read_text() + cluster[end + 1 :]
    (tmp_path / "mine.yaml").write_text(text.replace("gpu: ../gpus/", f"gpu: {ROOT}/configs/gpus/"))
    command = [str(dc_sim()), "simulate", str(ROOT / "traces/tiny-llama"), "--cluster", str(tmp_path / "mine.yaml")]
    command += ["--plan", str(ROOT / "configs/plans/zero1-deepcompile.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
