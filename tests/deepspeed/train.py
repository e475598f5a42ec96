"""Jobs on CPU ranks, one behind the other, launched by torchrun. Rank 0 writes what happened as JSON.

    torchrun --nproc_per_node=2 train.py JOBS.json RESULTS.json

JOBS.json is a list of objects with the fields of Job. A job that throws has its error as result. Ranks that hang end, and
write where they stood to hang-RANK.txt beside RESULTS.json.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("DS_ACCELERATOR", "cpu")
if cache := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):  # ranks that share one wait for each other's locks
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{cache}-{os.environ.get('RANK', '0')}"

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cpu_ops
import jobs

# Seconds in one job after which ranks hang: they say where, and end.
HANGS_AFTER = 300


@dataclass
class Job:
    """mode   eager (ZeRO-3 without DeepCompile), own (DeepCompile, gathers at use), default (all of its passes), plan,
           record
    plan      mode plan: a dc-launches/1 file; {rank} becomes the rank's number
    folder    mode record
    install   by install() and engine.compile(), as libraries do
    """

    name: str
    model: str = "own"
    mode: str = "eager"
    plan: str = ""
    folder: str = ""
    backend: str = "eager"
    steps: int = 3
    accumulation: int = 1
    autocast: bool = False
    kernels: bool = True  # False: Inductor lays everything out, and its kernels do nothing
    strict: bool = False
    install: bool = False
    version: str = ""  # that DeepSpeed claims to have
    compile_section: dict[str, Any] | None = None
    predicted: str = ""  # what dc-sim predicts of the job: its steps behind the first are measured
    measured: str = ""  # into this file


@contextlib.contextmanager
def without_kernels(leave_out: bool) -> Iterator[None]:
    """Inside, Inductor compiles no C++: a recording needs the graphs alone."""
    import torch._inductor.async_compile as async_compile
    import torch._inductor.cpu_vec_isa as cpu_vec_isa

    own, sets = async_compile.AsyncCompile.cpp_pybinding, cpu_vec_isa.valid_vec_isa_list
    if leave_out:
        async_compile.AsyncCompile.cpp_pybinding = lambda *_, **__: lambda *_: None
        cpu_vec_isa.valid_vec_isa_list = lambda: []
    try:
        yield
    finally:
        async_compile.AsyncCompile.cpp_pybinding, cpu_vec_isa.valid_vec_isa_list = own, sets


def make_engine(job: Job) -> Any:
    import deepspeed

    model = jobs.build(job.model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    config = {
        "train_micro_batch_size_per_gpu": jobs.BATCH,
        "gradient_accumulation_steps": job.accumulation,
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": 3},
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "compile": {"deepcompile": job.mode != "eager", **(job.compile_section or {})},
        "torch_autocast": {"enabled": job.autocast, "dtype": "bfloat16"},
    }
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    return deepspeed.initialize(model=model, model_parameters=trained, optimizer=optimizer, config=config)[0]


def compile_engine(engine: Any, job: Job) -> None:
    import dcsim_deepspeed

    plan = job.plan.replace("{rank}", str(dist.get_rank()))
    if job.install:
        own = type(engine).compile
        os.environ["DCSIM_PLAN" if job.mode == "plan" else "DCSIM_RECORD"] = plan or job.folder
        assert dcsim_deepspeed.install(strict=job.strict)
        try:
            engine.compile(backend=job.backend)
        finally:
            type(engine).compile = own
            os.environ.pop("DCSIM_PLAN", None)
            os.environ.pop("DCSIM_RECORD", None)
    elif job.mode == "plan":
        dcsim_deepspeed.compile(engine, plan, strict=job.strict, backend=job.backend)
    elif job.mode == "record":
        dcsim_deepspeed.record(engine, job.folder, backend=job.backend)
    elif job.mode == "own":
        engine.compile(backend=job.backend, schedule=[(0, ["zero3_compile"])])
    elif job.mode == "default":
        engine.compile(backend=job.backend)


def train(engine: Any, job: Job) -> list[float]:
    """Losses of the steps; LOG holds the last micro-step."""
    generator = torch.Generator().manual_seed(1234 + dist.get_rank())
    shape = (jobs.BATCH, jobs.LENGTH)
    batches = [torch.randint(0, jobs.VOCABULARY, shape, generator=generator) for _ in range(job.accumulation)]
    losses = []
    for _ in range(job.steps):
        torch.manual_seed(7)
        total = 0.0
        for tokens in batches:
            cpu_ops.LOG.clear()
            loss = jobs.feed(job.model, engine, tokens)
            cpu_ops.LOG.append(("backward", []))
            engine.backward(loss)
            engine.step()
            total += float(loss.detach())
        losses.append(total / len(batches))
    return losses


def run(job: Job) -> dict[str, Any]:
    import deepspeed

    import dcsim_deepspeed

    cpu_ops.HANDLE.__init__()
    cpu_ops.LOG.clear()
    torch._dynamo.reset()
    version = deepspeed.__version__
    try:
        engine = make_engine(job)
        names = {parameter.ds_id: name for name, parameter in engine.module.named_parameters()}
        deepspeed.__version__ = job.version or version
        compile_engine(engine, job)
        if job.predicted:
            dcsim_deepspeed.measure(engine, job.measured, job.predicted, steps=job.steps - 1, skip=1)
        with without_kernels(not job.kernels):
            losses = train(engine, job)
    except Exception as error:  # said in the results; the next job runs
        cause = getattr(error, "inner_exception", error)
        return {"error": type(cause).__name__, "message": str(cause)}
    finally:
        deepspeed.__version__ = version
    report = getattr(engine, "dcsim_report", None)
    result = {
        "losses": losses,
        "log": [[kind, [names[ds_id] for ds_id in ds_ids]] for kind, ds_ids in cpu_ops.LOG],
        "report": report.to_json() if report else None,
        "text": str(report) if report else None,
        "settings": dict(cpu_ops.HANDLE.settings),
    }
    engine.destroy()
    return result


def main() -> None:
    stood = Path(sys.argv[2]).with_name(f"hang-{os.environ.get('RANK', '0')}.txt").open("w")
    torch.set_num_threads(1)
    import deepspeed

    cpu_ops.install()
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    results = {}
    for fields in json.loads(Path(sys.argv[1]).read_text()):
        job = Job(**fields)
        print(f"job {job.name}", flush=True)
        print(f"job {job.name}", file=stood, flush=True)
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True, file=stood)
        results[job.name] = run(job)
        if dist.get_rank() == 0:
            Path(sys.argv[2]).write_text(json.dumps(results))
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # threads of gloo and of Inductor's compilers may hold the interpreter


if __name__ == "__main__":
    main()
