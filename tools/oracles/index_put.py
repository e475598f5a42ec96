"""Times of index_put that adds rows to few others, evenly and not. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/index_put.py > configs/measured/h100-index-put.jsonl
"""

import json

import torch

SIZES = ((8192, 32), (4096, 32), (16384, 32), (8192, 8), (8192, 128))  # rows, and rows of the table


def microseconds(run, repeats=10):
    for _ in range(5):
        run()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    torch.cuda.synchronize()
    return round(begin.elapsed_time(end) / repeats * 1e3, 1)


def indices(rows, tables):
    count = torch.arange(rows, device="cuda")
    even = count % tables
    yield "even", even
    yield "random", torch.randint(tables, (rows,), device="cuda")
    yield "half in one", torch.where(count % 2 == 0, 0, even)
    yield "all in one", torch.zeros_like(even)


def main():
    torch.manual_seed(0)
    for width in (2880, 5760):
        for rows, tables in SIZES:
            values = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
            table = torch.zeros(tables, width, device="cuda", dtype=torch.bfloat16)
            for kind, index in indices(rows, tables):
                time = microseconds(lambda t=table, i=index, v=values: torch.ops.aten.index_put(t, [i], v, True))
                most = int(torch.bincount(index).max())
                case = {"case": "index_put", "width": width, "rows": rows, "tables": tables, "kind": kind, "most": most, "us": time}
                print(json.dumps(case))


if __name__ == "__main__":
    main()
