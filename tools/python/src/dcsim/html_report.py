"""A step as one HTML file that needs no network: verdict, timeline, memory, exposed communication, plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcsim.asking import Document, Folder, ask_detail
from dcsim.errors import InputError
from dcsim.results import Result, Search

if TYPE_CHECKING:
    import os

    import plotly.graph_objects

# What is drawn alike: a colour, and the kinds of tasks. Others are grey.
_FAMILIES = {
    "compute": ("#4c78a8", ("compute",)),
    "gather": ("#e45756", ("all-gather", "gather-updated")),
    "reduce": ("#f58518", ("reduce", "reduce-norm")),
    "gradients": (
        "#72b7b2",
        ("accumulate", "make-contiguous", "reduce-grad-copy", "pre-divide", "store-reduced", "flatten", "unflatten",
         "clear-gradients", "cast-bucket"),
    ),
    "optimizer": (
        "#54a24b", ("gradient-norm", "cast-gradients", "clip-gradients", "optimizer-step", "store-params", "cast-shard"),
    ),
    "offload": ("#b279a2", ("offload", "reload")),
}
_FAMILY_OF = {kind: family for family, (_, kinds) in _FAMILIES.items() for kind in kinds}
_MOST_BARS = 4000  # of a timeline: a browser draws no more at ease
_LARGEST_CLASSES = 8

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 0 12px 40px; color: #222; }}
h1 {{ font-size: 1.5rem; line-height: 1.25; }} h2 {{ font-size: 1.15rem; margin: 1.6em 0 .3em; }}
.verdict {{ margin-bottom: 12px; border-left: 6px solid {colour}; padding: 6px 12px; background: #f6f6f6; }}
.scroll {{ overflow-x: auto; }} table {{ border-collapse: collapse; }}
td, th {{ padding: 3px 14px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4; }}
td.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
pre {{ overflow-x: auto; background: #f6f6f6; padding: 8px; font-size: 13px; }}
html {{ scrollbar-gutter: stable; }} .figure {{ width: 100%; overflow: hidden; }}
@media (max-width: 600px) {{ td, th {{ padding-right: 7px; font-size: 14px; }} }}
</style><script>{script}</script></head><body>
{body}
</body></html>
"""


def report(
    out: str | os.PathLike,
    workload: Folder,
    *,
    cluster: Document,
    plan: Document,
    search: Search | None = None,
    measured: Mapping[str, Any] | str | os.PathLike | None = None,
    **options: Any,
) -> Result:
    """Writes the report on one step, and returns its result. `options` are those of `simulate`.

    search     an answer of `search`, whose front is drawn
    measured   a result of `dc-run step` for the same plan, to be shown beside the prediction

    Needs plotly: pip install 'dcsim[report]'. Raises InputError for bad input.
    """
    plotly = _plotly()
    beside = None if measured is None else _read_measured(measured)
    detail, result = ask_detail(workload, cluster=cluster, plan=plan, **options)
    parts = [_head(result, detail["text"]), _numbers(result)]
    if beside is not None:
        parts.append(_beside(result, beside))
    parts.append(_section("Timeline", plotly, _timeline(detail)))
    parts.append(_section("Memory", plotly, _memory(detail, result)))
    parts.append(_exposed(result, detail))
    if search is not None:
        parts.append(_section("Step time against memory", plotly, _front(search, result)))
    parts.append(_plan(result))
    page = _PAGE.format(
        title=escape(f"{result.workload.name}: {_words(result.verdict)}"),
        colour={"fits": "#54a24b", "may_run_out_of_memory": "#f58518"}.get(result.verdict, "#e45756"),
        script=plotly.offline.get_plotlyjs(),
        body="\n".join(parts),
    )
    Path(out).write_text(page, encoding="utf-8")
    return result


def _plotly() -> Any:
    try:
        import plotly.graph_objects
        import plotly.offline
    except ImportError as error:
        raise ImportError("reports need plotly: pip install 'dcsim[report]'") from error
    return plotly


def _head(result: Result, text: str) -> str:
    """The first two lines of what dc-sim prints, and what it stops with."""
    lines = text.splitlines()
    stop = f"<p>{escape(result.stop.task)}</p>" if result.stop else ""
    return f'<h1>{escape(lines[1])}</h1>\n<div class="verdict"><strong>{escape(lines[0])}</strong>{stop}</div>'


def _numbers(result: Result) -> str:
    bound = f" ± {_time(result.bound_ns)} (90 %)" if result.bound_ns is not None else ""
    rows = []
    if result.outcome == "completed":
        rows += [
            ("step time", _time(result.step_time_ns) + bound),
            ("tokens/s/GPU", f"{result.tokens_per_second / result.gpus:,.0f}"),
            ("MFU", f"{result.model_flops_utilisation:.1%}"),
        ]
        for name in ("forward", "backward", "optimizer", "compute", "exposed_communication"):
            value = getattr(result, f"{name}_ns")
            rows.append((name.replace("_", " "), f"{_time(value)}, {value / result.step_time_ns:.1%} of the step"))
    rows += [
        ("reserved at most", f"{_bytes(result.peak_reserved_bytes)} of {_bytes(result.capacity_bytes)}"),
        ("allocated at most", _bytes(result.peak_allocated_bytes)),
        ("outside the allocator", _bytes(result.outside_allocator_bytes)),
    ]
    sources = result.sources
    rows.append(
        (
            "device time by source",
            f"{sources.measured:.1%} measured, {sources.interpolated:.1%} interpolated, {sources.estimated:.1%} estimated",
        )
    )
    return _table([], rows)


def _timeline(detail: dict[str, Any]) -> plotly.graph_objects.Figure:
    """A row a stream. Tasks of one family with next to nothing between them are one bar."""
    import plotly.graph_objects as go

    figure = go.Figure()
    shown = set()
    for stream, tasks in detail["streams"].items():
        for family, bars in _bars(tasks, detail["step_time_ns"]).items():
            figure.add_bar(
                y=[stream] * len(bars),
                base=[start / 1e6 for start, _, _ in bars],
                x=[(end - start) / 1e6 for start, end, _ in bars],
                customdata=[[label, _time(end - start)] for start, end, label in bars],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]} from %{base:.3f} ms<extra></extra>",
                orientation="h",
                name=family,
                legendgroup=family,
                showlegend=family not in shown,
                marker={"color": _FAMILIES.get(family, ("#9d9da1",))[0], "line": {"width": 0}},
            )
            shown.add(family)
    figure.update_layout(barmode="overlay", bargap=0.25, xaxis_title="ms", yaxis={"autorange": "reversed"}, height=330)
    return figure


def _bars(tasks: dict[str, list], step_ns: int) -> dict[str, list[tuple[int, int, str]]]:
    """(start, end, label) by family. The gap that is closed grows until there are few enough."""
    families = [_FAMILY_OF.get(kind, "others") for kind in tasks["kind"]]
    order = sorted(zip(tasks["start_ns"], tasks["end_ns"], families, tasks["label"]))
    gap = 0
    while True:
        merged: list[list] = []
        for start, end, family, label in order:
            last = merged[-1] if merged else None
            if last and last[2] == family and start - last[1] <= gap:
                last[1] = max(last[1], end)
                last[4] += 1
            else:
                merged.append([start, end, family, label, 1])
        if len(merged) <= _MOST_BARS or gap > step_ns:
            break
        gap = max(1000, gap * 2)
    bars: dict[str, list[tuple[int, int, str]]] = {}
    for start, end, family, label, count in merged:
        text = escape(label) if count == 1 else f"{count:,} tasks from {escape(label)}"
        bars.setdefault(family, []).append((start, end, text))
    return bars


def _memory(detail: dict[str, Any], result: Result) -> plotly.graph_objects.Figure:
    """Who is alive, stacked; above it what the allocator holds, and what there is."""
    import plotly.graph_objects as go

    memory = detail["memory"]
    times = [time / 1e6 for time in memory["time_ns"]]
    columns = sorted(memory["live_bytes"].items(), key=lambda item: -max(item[1]))
    if len(columns) > _LARGEST_CLASSES:
        rest = [sum(values) for values in zip(*(column for _, column in columns[_LARGEST_CLASSES:]))]
        columns = [*columns[:_LARGEST_CLASSES], ("others", rest)]
    figure = go.Figure()
    for name, column in columns:
        figure.add_scatter(
            x=times,
            y=[value / 2**30 for value in column],
            name=name,
            stackgroup="live",
            line={"width": 0.5, "shape": "hv"},
            hovertemplate=f"{name} %{{y:.2f}} GiB<extra></extra>",
        )
    for name, dash in (("allocated", "dot"), ("reserved", "solid")):
        figure.add_scatter(
            x=times,
            y=[value / 2**30 for value in memory[f"{name}_bytes"]],
            name=name,
            mode="lines",
            line={"width": 1.5, "shape": "hv", "dash": dash, "color": "#222"},
            hovertemplate=f"{name} %{{y:.2f}} GiB<extra></extra>",
        )
    figure.add_hline(
        y=result.capacity_bytes / 2**30,
        line={"color": "#e45756", "dash": "dash"},
        annotation_text=f"there are {_bytes(result.capacity_bytes)}",
        annotation_position="top left",
    )
    figure.update_layout(xaxis_title="ms, when the host asks", yaxis_title="GiB", hovermode="x unified", height=440)
    return figure


def _exposed(result: Result, detail: dict[str, Any]) -> str:
    rows = [
        (
            each.kind.replace("_", "-"),
            f"{each.calls:,}",
            _bytes(each.payload_bytes),
            _time(each.busy_ns),
            _time(detail["exposed_ns"].get(each.kind, 0)),
        )
        for each in result.collectives
    ]
    if not rows:
        return "<h2>Communication</h2><p>None.</p>"
    return "<h2>Communication</h2>" + _table(["", "calls", "payload", "busy", "exposed"], rows)


def _front(search: Search, result: Result) -> plotly.graph_objects.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()

    def add(name: str, points: list[tuple[int, int]], **style: Any) -> None:
        figure.add_scatter(
            x=[reserved / 2**30 for reserved, _ in points],
            y=[time / 1e6 for _, time in points],
            name=name,
            hovertemplate=name + ": %{y:.2f} ms, %{x:.2f} GiB<extra></extra>",
            **style,
        )

    add("front", [(each.peak_reserved_bytes, each.step_time_ns) for each in search.front], mode="lines+markers")
    for baseline in search.baselines:
        if baseline.result.outcome == "completed":
            point = (baseline.result.peak_reserved_bytes, baseline.result.step_time_ns)
            add(baseline.name, [point], mode="markers", marker={"symbol": "square", "size": 9})
    if result.outcome == "completed":
        point = (result.peak_reserved_bytes, result.step_time_ns)
        add("this plan", [point], mode="markers", marker={"symbol": "star", "size": 13})
    figure.update_layout(xaxis_title="GiB reserved", yaxis_title="ms a step", height=380)
    return figure


def _read_measured(measured: Mapping[str, Any] | str | os.PathLike) -> Mapping[str, Any]:
    document = measured if isinstance(measured, Mapping) else json.loads(Path(measured).read_text(encoding="utf-8"))
    if document.get("format") != "dc-result/1" or document.get("origin") != "measured":
        raise InputError("measured: expected a dc-result/1 of dc-run step")
    return document


def _beside(result: Result, measured: Mapping[str, Any]) -> str:
    """Predicted beside measured; the error as a part of what was measured."""
    rows = []
    for name in ("step_time_ns", "compute_ns", "exposed_communication_ns", "peak_reserved_bytes", "peak_allocated_bytes"):
        ours, theirs = getattr(result, name), measured[name]
        show = _time if name.endswith("_ns") else _bytes
        error = f"{ours / theirs - 1:+.1%}" if theirs else ""
        rows.append((name.rpartition("_")[0].replace("_", " "), show(ours), show(theirs), error))
    return "<h2>Predicted and measured</h2>" + _table(["", "predicted", "measured", "error"], rows)


def _plan(result: Result) -> str:
    """What the plan says in words and numbers; lists of decisions are in the whole of it below."""
    rows = [
        (key, json.dumps(value) if not isinstance(value, str) else value)
        for key, value in result.plan.items()
        if not isinstance(value, (list, dict)) and key != "format"
    ]
    whole = escape(json.dumps(result.plan, indent=1))
    return f"<h2>Plan</h2>{_table([], rows)}<details><summary>every decision</summary><pre>{whole}</pre></details>"


def _section(title: str, plotly: Any, figure: plotly.graph_objects.Figure) -> str:
    figure.update_layout(
        template="plotly_white",
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -70 / (figure.layout.height - 80), "x": 0},
        font={"size": 13},
    )
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    name = title.lower().replace(" ", "-")
    drawn = plotly.offline.plot(
        figure,
        output_type="div",
        include_plotlyjs=False,
        config={"responsive": True, "displaylogo": False, "displayModeBar": False},
    )
    return f'<h2>{escape(title)}</h2><div class="figure" id="{name}">{drawn}</div>'


def _table(header: list[str], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr><td>{escape(row[0])}</td>"
        + "".join(f'<td class="{"number" if header else ""}">{escape(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table>{"<tr>" + head + "</tr>" if header else ""}{body}</table></div>'


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")


def _time(ns: int) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
