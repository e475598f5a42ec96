"""Training with a found schedule: DeepCompile's graphs, with gathers where a plan has them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dcsim_deepspeed import job
from dcsim_deepspeed.errors import PlanError, PlanMismatch
from dcsim_deepspeed.inductor_order import watch_order
from dcsim_deepspeed.launches import GraphLaunches, Plan, read_plan
from dcsim_deepspeed.placing import Placed, check_first_uses, first_uses, place
from dcsim_deepspeed.report import Report, time_steps

PASS = "dcsim_apply"
WAY_OUT = "record this job (dcsim_deepspeed.record) and search again"


def compile(
    engine: Any,
    plan: str | Path | dict[str, Any],
    strict: bool = False,
    allow_untested: bool = False,
    backend: str | None = None,
    compile_kwargs: dict[str, Any] | None = None,
) -> Report:
    """In place of engine.compile(): the job trains with the schedule of `plan`, a dc-launches/1 file or document.

    All ranks have to call it. Bucket size and double buffering become the plan's. A plan that is not for this job,
    and versions of torch or DeepSpeed that are not tested, give one line on rank 0 and DeepSpeed's own schedule; the
    ranks decide alike. Whether a graph is the plan's is known when it is compiled, in the first step.

    strict           raises PlanMismatch instead, on every rank
    allow_untested   takes other versions of torch and DeepSpeed
    backend          "inductor" or "eager"; DeepSpeed's default if left out
    """
    report = Report()
    engine.dcsim_report = report
    arguments: dict[str, Any] = {"compile_kwargs": compile_kwargs or {}}
    if backend is not None:
        arguments["backend"] = backend
    read, problem = _read(plan)
    problem = problem or job.version_problem(allow_untested) or job.engine_problem(engine)
    problem = problem or _job_problem(engine, read)
    problem = _agreed_problem(engine, problem, read.digest if read else "")
    if problem:
        _refuse(report, problem, strict)
        job.own_compile(engine)(**arguments)
        return report
    applying = _Applying(engine, read, report, strict)
    applying.start(arguments)
    return report


def _read(plan: str | Path | dict[str, Any]) -> tuple[Plan | None, str]:
    try:
        return read_plan(plan), ""
    except PlanError as error:
        return None, str(error)


def _job_problem(engine: Any, plan: Plan) -> str:
    """What shows before anything is compiled that the plan is not for this job."""
    world = torch.distributed.get_world_size(engine.data_parallel_group)
    if world != plan.ranks:
        return f"the plan is for {plan.ranks} data-parallel ranks, the job has {world}: search with --gpus {world}"
    names = set(job.parameter_names(engine).values())
    if lacking := sorted(plan.params() - names):
        return (
            f"the plan is for another model ({plan.workload}): {len(lacking)} of its {len(plan.params())} parameters are "
            f"not in this one ({', '.join(lacking[:3])}{', ...' if len(lacking) > 3 else ''}); {WAY_OUT}"
        )
    return ""


def _agreed_problem(engine: Any, problem: str, digest: str) -> str:
    """The first problem of any rank, the same on all; or that they hold different plans."""
    found = job.of_all_ranks(engine, (problem, digest))
    for rank, (each, _) in enumerate(found):
        if each:
            return each if rank == 0 else f"rank {rank}: {each}"
    if len({each for _, each in found}) > 1:
        return "ranks have different plans: " + ", ".join(f"{rank}: {each[:8]}" for rank, (_, each) in enumerate(found))
    return ""


def _refuse(report: Report, problem: str, strict: bool) -> None:
    report.applied = False
    report.reason = problem
    if strict:
        raise PlanMismatch(problem)
    job.say(f"the plan is not used, DeepSpeed's own schedule runs: {problem}")


class _GraphPlan(NamedTuple):
    """The plan of one graph, and how many of its first uses come in another order."""

    launches: GraphLaunches
    out_of_order: int


class _Applying:
    """A job that trains with a plan: what is known of it across its graphs."""

    def __init__(self, engine: Any, plan: Plan, report: Report, strict: bool) -> None:
        self.engine = engine
        self.plan = plan
        self.report = report
        self.strict = strict
        self.names = job.parameter_names(engine)
        self.kept: set[int] = set()
        report.predicted_step_ms = plan.step_time_ns / 1e6

    def start(self, arguments: dict[str, Any]) -> None:
        """Compiles the engine with this pass alone."""
        from deepspeed.compile.passes.contract import CAP_Z3_GATHER_RELEASE, PassContract

        self._configure()
        own = frozenset({"zero3_compile", "prefetch", "selective_gather", "offload_parameters"})
        contract = PassContract(provides=frozenset({CAP_Z3_GATHER_RELEASE}), conflicts_with=own)
        self.engine.register_compile_pass(PASS, self.run, contract)
        _mark_side_effects()
        watch_order(self.report)
        step = self.engine.global_steps
        job.own_compile(self.engine)(schedule=[(step, [PASS])], **arguments)
        job.start_at(self.engine, step)
        time_steps(self.engine, self.report)

    def _configure(self) -> None:
        """What DeepSpeed reads when it compiles becomes the plan's; what else the prediction is for is compared."""
        config, settings = self.engine._config, self.plan.settings
        config.zero_config.reduce_bucket_size = settings.reduce_bucket_size
        config.compile_config.double_buffer = settings.double_buffer
        if (steps := self.engine.gradient_accumulation_steps()) != settings.gradient_accumulation_steps:
            self._note(f"the prediction is for {settings.gradient_accumulation_steps} micro-steps, the job has {steps}")
        if (self.engine.gradient_clipping() or None) != settings.gradient_clipping:
            self._note(f"the prediction is for gradient_clipping {settings.gradient_clipping or 'off'}, the job's is another")
        device = next(self.engine.module.parameters()).device
        if device.type == "cuda":
            found = torch.cuda.get_device_properties(device)
            if found.name != self.plan.gpu:
                self._note(f"the prediction is for {self.plan.gpu}, this is {found.name}")
            if found.total_memory < self.plan.peak_reserved_bytes:
                self._note(
                    f"the plan reserves {self.plan.peak_reserved_bytes / 2**30:.1f} GiB, "
                    f"this GPU has {found.total_memory / 2**30:.1f}"
                )

    def _note(self, text: str) -> None:
        self.report.notes.append(text)
        job.say(text)

    def run(
        self,
        module: Any,
        graph_id: int,
        graph_order: list[tuple[int, bool]],
        profiling_results: Any,
        create_inputs: Any,
        memory_budget: float,
        managers: Any,
        backward: bool,
    ) -> Any:
        """The pass, called by DeepSpeed for each graph: see register_compile_pass. None: nothing is to be profiled."""
        arguments = (module, graph_id, graph_order, profiling_results, create_inputs, memory_budget, managers, backward)
        planned = None if self.report.reason else self._agreed_plan(module.graph, managers[graph_id], backward)
        if planned is None:
            from deepspeed.compile.passes.zero3_compile import add_z3_gather_release

            return add_z3_gather_release(*arguments)
        self._insert(module, graph_id, graph_order, profiling_results[graph_id], managers[graph_id], planned)
        return None

    def _agreed_plan(self, graph: Any, manager: Any, backward: bool) -> _GraphPlan | None:
        """The plan for this graph, or None where some rank has none: then DeepSpeed's own schedule begins everywhere."""
        names = {
            node: self.names[manager.ds_ids[node.name]]
            for node in graph.nodes
            if node.op == "placeholder" and node.name in manager.ds_ids
        }
        uses = first_uses(graph, names)
        direction = "backward" if backward else "forward"
        planned, problem = None, ""
        try:
            planned = self._planned(direction, uses)
        except PlanMismatch as mismatch:
            problem = f"{mismatch}; {WAY_OUT}"
        digest = hashlib.sha256("\n".join([direction, *uses]).encode()).hexdigest()
        if problem := _agreed_problem(self.engine, problem, digest).replace("different plans", "different graphs"):
            self._fall_back(problem)
            return None
        return planned

    def _planned(self, direction: str, uses: list[str]) -> _GraphPlan:
        planned = self.plan.find(direction, uses)
        if planned is None:
            raise PlanMismatch(_set_problem(self.plan, direction, set(uses)))
        return _GraphPlan(planned, check_first_uses(uses, planned))

    def _fall_back(self, problem: str) -> None:
        """From here on DeepSpeed's schedule: gathers at use now, prefetching when it would come."""
        from deepspeed.compile import backend

        _refuse(self.report, problem, self.strict)
        later = [backend.opt_passes[name] for name in job.OWN_LATER_PASSES]
        backend.remaining_schedule.append((self.engine.global_steps + job.WARM_UP, later))

    def _insert(
        self, module: Any, graph_id: int, graph_order: Any, profiling: Any, manager: Any, planned: _GraphPlan
    ) -> None:
        from deepspeed.compile import fx
        from deepspeed.compile.passes import zero3_compile
        from deepspeed.compile.util import get_deepcompile_handle, get_param_nodes

        backward = planned.launches.direction == "backward"
        if backward:
            graph = zero3_compile.add_gather_and_reduce(graph_id, module.graph, manager, *manager.get_bwd_mapping(module.graph))
        else:
            nodes = get_param_nodes(module.graph, profiling.param_indices)
            graph = zero3_compile.add_gather_and_release(graph_id, module.graph, manager, nodes)
            get_deepcompile_handle().register_graph_z3(graph_id, [ds_id for _, ds_id, _ in profiling.param_indices])
            _show_empty_parameters(graph, manager)
        dtypes = {manager.ds_ids[name]: parameter.dtype for name, parameter in manager.params.items()}
        graph, placed = place(graph, graph_id, planned.launches, self.plan.persistent, self.names, dtypes.__getitem__)
        if backward:
            fx.add_end_backward(graph, graph_id, fx.should_release_reduce_buckets(graph_order, graph_id))
            fx.replace_reduce_outputs_with_none(graph)
            self._keep(profiling.param_indices, manager)
        module.graph = graph
        module.recompile()
        placed.out_of_order = planned.out_of_order
        self._tell(placed)

    def _keep(self, param_indices: Any, manager: Any) -> None:
        """Lets parameters stay gathered. There is no way back in a process, so only when the plan fits both graphs."""
        from deepspeed.compile.util import get_deepcompile_handle

        handle = get_deepcompile_handle()
        parameters = {manager.ds_ids[name]: parameter for name, parameter in manager.params.items()}
        with job.outside_of_tracing():
            for ds_id in sorted({ds_id for _, ds_id, _ in param_indices} - self.kept):
                if self.names[ds_id] in self.plan.persistent:
                    handle.set_persistent(ds_id)
                    self.kept.add(ds_id)
                    self.report.kept_bytes += parameters[ds_id].numel * parameters[ds_id].dtype.itemsize

    def _tell(self, placed: Placed) -> None:
        self.report.graphs.append(placed)
        if placed.direction == "backward" and not self.report.applied:
            self.report.applied = True
            job.say(str(self.report))


def _set_problem(plan: Plan, direction: str, uses: set[str]) -> str:
    graphs = [set(graph.first_uses) for graph in plan.graphs if graph.direction == direction]
    if not graphs:
        return f"the plan has no {direction} graph"
    nearest = min(graphs, key=lambda names: len(names ^ uses))
    more, less = sorted(uses - nearest), sorted(nearest - uses)
    parts = [f"uses {len(more)} parameters that the plan's does not ({', '.join(more[:3])})"] if more else []
    parts += [f"does not use {len(less)} that the plan's does ({', '.join(less[:3])})"] if less else []
    return f"the job's {direction} graph " + " and ".join(parts or ["has no counterpart in the plan"])


def _show_empty_parameters(graph: Any, manager: Any) -> None:
    """Inductor checks sizes of inputs: between uses, parameters are empty (add_z3_gather_release_fw does the same)."""
    for node in graph.nodes:
        if node.name in manager.ds_ids and "val" in node.meta:
            whole = node.meta["val"]
            node.meta["val"] = torch.empty([0], dtype=whole.dtype, device=whole.device)


def _mark_side_effects() -> None:
    """A launch returns nothing: torch.fx takes such a call for dead code unless it is said to have side effects."""
    from deepspeed.compile.util import get_deepcompile_handle

    get_deepcompile_handle()  # loads the operators
    torch.fx.node._side_effectful_functions.add(torch.ops.dc.prefetch_params_fused.default)
