"""For libraries that call engine.compile() themselves (transformers' Trainer, accelerate)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dcsim_deepspeed import job
from dcsim_deepspeed.applying import compile as compile_with_plan
from dcsim_deepspeed.recording import record as record_job

PLAN_VARIABLE = "DCSIM_PLAN"
RECORD_VARIABLE = "DCSIM_RECORD"


def install(
    plan: str | Path | None = None,
    record: str | Path | None = None,
    strict: bool = False,
    allow_untested: bool = False,
) -> bool:
    """From here on DeepSpeedEngine.compile() trains with `plan`, or records into the folder `record`.

    What is left out comes from the variables DCSIM_PLAN and DCSIM_RECORD; without any, nothing changes.
    Returns whether something was installed. Throws ValueError when both are asked for.
    """
    from deepspeed.runtime.engine import DeepSpeedEngine

    plan = plan or os.environ.get(PLAN_VARIABLE) or None
    record = record or os.environ.get(RECORD_VARIABLE) or None
    if plan and record:
        raise ValueError(f"a plan ({plan}) and a folder to record into ({record}): expected one of them")
    if not plan and not record:
        return False

    def replaced(
        engine: Any,
        backend: str | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        schedule: Any = None,
        compiled_autograd_enabled: bool = False,
    ) -> None:
        if schedule is not None:
            job.say("the schedule given to engine.compile() is not used")
        if plan:
            compile_with_plan(engine, plan, strict, allow_untested, backend, compile_kwargs)
        else:
            record_job(engine, record, allow_untested, backend, compile_kwargs)

    job.mark_own_compile(replaced, DeepSpeedEngine.compile)
    DeepSpeedEngine.compile = replaced
    return True
