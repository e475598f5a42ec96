"""Whether what ran is what a plan says, launch by launch."""

from __future__ import annotations

from typing import Any

Event = tuple[str, list[str]]


def split(log: list[Event]) -> dict[str, list[Event]]:
    """Events of the forward and of the backward of a micro-step."""
    at = next(index for index, (kind, _) in enumerate(log) if kind == "backward")
    return {"forward": log[:at], "backward": log[at + 1 :]}


def launches_that_ran(events: list[Event]) -> list[tuple[str | None, list[str]]]:
    """(parameter that is waited for next, parameters that were launched together)."""
    found = []
    for index, (kind, names) in enumerate(events):
        if kind in ("launch", "gather") and names:
            waits = (waited[0] for later, waited in events[index:] if later == "wait")
            found.append((next(waits, None), names))
    return found


def differences(plan: dict[str, Any], log: list[Event], gathered: frozenset[str] = frozenset()) -> list[str]:
    """What ran otherwise than the plan of a job with one graph has it; empty when nothing did.

    gathered   parameters that an earlier micro-step has gathered and that stay
    """
    found = []
    for graph in plan["graphs"]:
        ran = launches_that_ran(split(log)[graph["direction"]])
        planned = []
        for launch in graph["launches"]:
            names = [name for name in launch["params"] if name not in gathered]
            if names:
                planned.append((launch["before"] or graph["first_uses"][0], names))
        if [names for _, names in ran] != [names for _, names in planned]:
            found.append(f"{graph['direction']}: launched {ran}, planned {planned}")
            continue
        for (waited, names), (before, _) in zip(ran, planned):
            if waited is None or _module(waited) != _module(before):
                found.append(f"{graph['direction']}: {names} before {waited}, planned before {before}")
    return found


def _module(name: str) -> str:
    """Weight and bias of a module are read by one op, in either order."""
    return name.rpartition(".")[0]
