"""DeepSpeed jobs and dc-sim: record a job's graphs, and train with a schedule that a search found.

    dcsim_deepspeed.record(engine, "my-job")            in place of engine.compile(): writes my-job/graph.json.xz
    dcsim_deepspeed.compile(engine, plan="best.json")   in place of engine.compile(): trains with the schedule
    dcsim_deepspeed.install(plan="best.json")           for libraries that call engine.compile() themselves
    dcsim_deepspeed.leave_out_masks(model)              before that: no masks that hide nothing in transformers' models
    dcsim_deepspeed.measure(engine, "measured.json", predicted="predicted.json")    behind compile(): times steps

docs/guide/with-deepspeed.md leads through it.
"""

from dcsim_deepspeed.applying import compile
from dcsim_deepspeed.errors import PlanError, PlanMismatch
from dcsim_deepspeed.installing import install
from dcsim_deepspeed.masks import leave_out_masks
from dcsim_deepspeed.measuring import measure
from dcsim_deepspeed.recording import record
from dcsim_deepspeed.report import Report

__all__ = ["PlanError", "PlanMismatch", "Report", "compile", "install", "leave_out_masks", "measure", "record"]
