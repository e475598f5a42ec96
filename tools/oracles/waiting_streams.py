"""How much later each kernel of the default stream starts while other streams wait for an event, by which of five high-priority
streams wait and by what the process did before. The host is ahead: a chain of kernels is launched behind one that sleeps, and the
streams wait for the chain's end. Needs a GPU; prints one JSON object a line. Each history runs in a process of its own.

  python3 tools/oracles/waiting_streams.py > configs/measured/h200-waiting-streams.jsonl
"""

import itertools
import json
import os
import statistics
import subprocess
import sys

import torch

KERNELS = 400  # of a chain: fewer than the launch queue holds
REPEATS = 5
SLEEP_CYCLES = 20_000_000
STREAMS = 5
# What a process does before it measures, in order.
HISTORIES = ["streams, work", "work, streams", "communicator, streams, work", "work, communicator, streams", "streams, use, work"]


def work():
    matrix = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    for _ in range(300):
        matrix = (matrix @ matrix) * 0.01
    torch.cuda.synchronize()


def communicator():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    torch.distributed.all_reduce(torch.zeros(1024, device="cuda"))


def use(streams):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.zeros(10, device="cuda").add_(1)


def set_up(history):
    streams = []
    for step in history.split(", "):
        if step == "streams":
            streams = [torch.cuda.Stream(priority=-1) for _ in range(STREAMS)]
        elif step == "use":
            use(streams)
        else:
            {"work": work, "communicator": communicator}[step]()
    return streams


def chains():
    """Name, and what launches kernel number i of the chain."""

    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    small, left, right, product = random(1 << 20), random(4096, 2048), random(2048, 2048), random(4096, 2048)
    out = torch.empty_like(small)
    yield "add of 2 MiB", lambda i: torch.add(small, small, out=out)
    yield "products and adds in turn", lambda i: torch.mm(left, right, out=product) if i % 2 else torch.add(small, small, out=out)


def microseconds(launch, waiting):
    """Median time of a kernel of the chain, start to start, while these streams wait."""
    behind = [torch.zeros(1024, device="cuda") for _ in waiting]
    times = []
    for _ in range(REPEATS):
        begin, end, passed = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Event()
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP_CYCLES)
        begin.record()
        for i in range(KERNELS):
            launch(i)
        end.record()
        passed.record()
        for stream, tensor in zip(waiting, behind, strict=True):
            with torch.cuda.stream(stream):
                stream.wait_event(passed)
                tensor.add_(1)
        if begin.query():
            continue  # the host was too slow
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / KERNELS)
    return statistics.median(times) if times else None


def subsets():
    for count in (1, 2):
        yield from itertools.combinations(range(STREAMS), count)
    yield (0, 1, 2)
    yield tuple(range(STREAMS))


def measure(history):
    streams = set_up(history)
    for name, launch in chains():
        for i in range(100):
            launch(i)
        microseconds(launch, streams)  # all of them have been used then
        alone = microseconds(launch, [])
        for which in subsets():
            waiting = microseconds(launch, [streams[k] for k in which])
            if alone and waiting:
                row = {"history": history, "chain": name, "waiting": list(which), "alone_us": round(alone, 3), "delay_us": round(waiting - alone, 3)}
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        measure(sys.argv[1])
    else:
        for each in HISTORIES:
            subprocess.run([sys.executable, __file__, each], check=False, timeout=90)
