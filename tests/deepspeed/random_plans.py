"""Plans drawn at random for a graph's first uses: launches of one to four parameters, up to so many uses ahead."""

from __future__ import annotations

import copy
import random
from typing import Any


def random_launches(dice: random.Random, first_uses: list[str], left_out: set[str], ahead: int = 6) -> list[dict[str, Any]]:
    """Launches of all parameters but those left out, none behind its own first use, in the order of their places."""
    names = [name for name in first_uses if name not in left_out]
    launches = []
    while names:
        group = names[: dice.randint(1, 4)]
        names = names[len(group) :]
        place = max(0, first_uses.index(group[0]) - dice.randint(0, ahead))
        launches.append((place, {"before": first_uses[place] if place > 0 else None, "params": group}))
    return [launch for _, launch in sorted(launches, key=lambda entry: entry[0])]


def random_plan(found: dict[str, Any], seed: int) -> dict[str, Any]:
    """Another plan for the job of a found one; a third of the parameters stay gathered."""
    dice = random.Random(seed)
    plan = copy.deepcopy(found)
    names = sorted({name for graph in plan["graphs"] for name in graph["first_uses"]})
    plan["persistent"] = sorted(name for name in names if dice.random() < 1 / 3)
    seen: set[str] = set()
    for graph in plan["graphs"]:
        kept_before = set(plan["persistent"]) & seen
        graph["launches"] = random_launches(dice, graph["first_uses"], kept_before)
        seen |= set(graph["first_uses"])
    plan["settings"]["reduce_bucket_size"] = dice.choice([100_000, 500_000_000])
    plan["settings"]["double_buffer"] = dice.random() < 0.5
    return plan
