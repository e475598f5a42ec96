"""What a compiled form has to have in common with the ATen graph that it was made of, whatever Inductor fuses.

FLOPs of products, convolutions and attention stay, as they are no less work in another order; parameters that are read stay;
memory does not grow by much, as a fused kernel keeps less between its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from graph_checker import values_of

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "_grouped_mm")
_ATTENTION = ("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention")


def beside(compiled: dict[str, Any], whole: dict[str, Any]) -> dict[str, float]:
    """Of the compiled form over the ATen graph: FLOPs, bytes saved for the backward, bytes alive at most.

    Throws ValueError where they are not of the same model: its parameters, and those that a graph reads.
    """
    for what in (_parameters, _gradients, _read_parameters):
        mine, other = what(compiled), what(whole)
        if mine != other:
            differ = sorted(set(mine) ^ set(other), key=str)
            raise ValueError(f"{what.__name__.strip('_').replace('_', ' ')} differ from the ATen graph's: {differ[:2]}")
    ratios = {"flops": _ratio(flops(compiled), flops(whole)), "saved": _ratio(_saved(compiled), _saved(whole))}
    return {**ratios, "peak": _ratio(peak(compiled), peak(whole))}


def _ratio(one: float, other: float) -> float:
    return round(one / other, 4) if other else float(one == other)


def flops(document: dict[str, Any]) -> int:
    """Of both directions, masks of attention not counted."""
    return sum(_flops_of(document, op) for graph in document["graphs"] for op in graph["ops"] if "kernel" not in op)


def _flops_of(document: dict[str, Any], op: dict[str, Any]) -> int:
    name = document["schemas"][op["schema"]].partition("(")[0].removeprefix("aten::").partition(".")[0]

    def shape(position: int) -> list[int]:
        return document["values"][op["args"][position]["v"]]["shape"]

    def made() -> int:
        return prod(document["values"][op["outputs"][0]]["shape"])

    if name in PRODUCTS:
        first = int(name.startswith(("add", "badd")))
        inner = shape(first)[-1]
        if name == "_grouped_mm" and len(shape(first)) == len(shape(first + 1)) == 2:
            return 2 * prod(shape(first)) * shape(first + 1)[-1]  # groups along what is summed, a product of two halves
        return 2 * made() * inner
    if name in ("convolution", "cudnn_convolution"):
        return _convolution(shape(1), op["args"][6] is True, shape(0), made())
    if name == "convolution_backward":
        counted = sum(op["args"][10][:2])
        return counted * _convolution(shape(2), op["args"][7] is True, shape(1), prod(shape(0)))
    forward = name.removesuffix("_backward")
    if forward in _ATTENTION:
        at = int(forward != name)
        query, value = shape(at), shape(at + 2)
        inner = query[-1] + value[-1]
        rows = prod(query[:-1]) * value[-2]
        return 2 * rows * (2 * inner + query[-1] if at else inner)
    return 0


def _convolution(weight: list[int], transposed: bool, given: list[int], made: int) -> int:
    """Each element of the result, or of what is read where it is transposed, meets a filter of one output channel."""
    elements = prod(given) if transposed else made
    return 2 * elements * prod(weight[1:])


def _parameters(document: dict[str, Any]) -> list[Any]:
    return [(entry["name"], tuple(document["values"][entry["value"]]["shape"])) for entry in document["params"]]


def _gradients(document: dict[str, Any]) -> list[Any]:
    return [
        document["params"][output["param"]]["name"]
        for graph in document["graphs"]
        for output in graph["outputs"]
        if output["kind"] == "gradient"
    ]


def _read_parameters(document: dict[str, Any]) -> list[Any]:
    """Names of those that the forward reads."""
    forward = document["graphs"][0]
    read = {value for op in forward["ops"] for value in values_of(op["args"])}
    return [entry["name"] for entry in document["params"] if entry["value"] in read]


def _saved(document: dict[str, Any]) -> int:
    storages = {
        document["values"][output["value"]]["storage"]
        for output in document["graphs"][0]["outputs"]
        if output["kind"] == "saved"
    }
    return sum(document["storages"][storage] for storage in storages - _resident(document))


def _resident(document: dict[str, Any]) -> set[int]:
    tables = ("params", "buffers", "inputs")
    return {document["values"][entry["value"]]["storage"] for table in tables for entry in document[table]}


def peak(document: dict[str, Any]) -> int:
    """Bytes alive at most beside parameters, buffers and inputs; gradients and held outputs live to the end."""
    lives: dict[int, list[int]] = {}
    for position, values in enumerate(_uses(document)):
        for value in values:
            lives.setdefault(document["values"][value]["storage"], []).append(position)
    changes: dict[int, int] = {}
    for storage in lives.keys() - _resident(document):
        size = document["storages"][storage]
        changes[min(lives[storage])] = changes.get(min(lives[storage]), 0) + size
        changes[max(lives[storage]) + 1] = changes.get(max(lives[storage]) + 1, 0) - size
    alive = most = 0
    for position in sorted(changes):
        alive += changes[position]
        most = max(most, alive)
    return most


def _uses(document: dict[str, Any]) -> Iterator[list[int]]:
    """By op of the whole step what it touches, then what the step leaves."""
    for graph in document["graphs"]:
        for op in graph["ops"]:
            yield [*values_of(op["args"]), *(value for value in op["outputs"] if value is not None)]
    yield [output["value"] for graph in document["graphs"] for output in graph["outputs"] if output["kind"] != "saved"]
