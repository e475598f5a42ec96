"""Seeded allocation scripts for record_allocator.py, run against a Session as they are made."""

import math

MIB = 1 << 20

# Sizes at which the allocator changes its mind, each also one byte off.
EDGES = [512, 1024, MIB, 2 * MIB, 10 * MIB, 12 * MIB, 20 * MIB, 22 * MIB, 40 * MIB, 64 * MIB]


class Session:
    """Runs operations on the GPU, one at a time, and keeps each with what the allocator did.

    An operation is a list: ["a", id, bytes, stream] allocate, ["f", id] free, ["r", id, stream]
    record_stream, ["i", stream] put one more task on a stream, ["d", stream, n] the stream has
    finished n tasks, ["e"] empty the cache, ["p"] reset the peaks. The script's answers are in
    `record`: the change of each statistic at each operation, the address of each allocation.
    """

    def __init__(self, gpu, max_ops, limit_bytes=None, driver_bytes=None):
        self.gpu = gpu
        self.max_ops = max_ops
        self.limit_bytes, self.capacity_bytes = gpu.start(limit_bytes, driver_bytes)
        self.live = {}  # id -> [bytes, stream, streams recorded, one-entry list of the holder]
        self.live_bytes = 0
        self.issued = [0] * len(gpu.streams)
        self.finished = [0] * len(gpu.streams)
        self._next_id = 0
        self._last = {}
        self.forced_drains = 0
        self.record = {"ops": [], "addresses": [], "stats": {}, "snapshots": []}
        self._driver_calls = []

    @property
    def is_full(self):
        return len(self.record["ops"]) >= self.max_ops

    @property
    def is_busy(self):
        return self.issued != self.finished

    def alloc(self, size_bytes, stream=0, is_raw=False):
        """Returns the id of the block, None if the allocator refused."""
        before = self._last.get("retries", 0)
        holder, address, is_opened = self.gpu.alloc(size_bytes, stream, is_raw, self.is_busy)
        block = self._next_id
        self._next_id += 1
        self.record["addresses"].append(address)
        self._note(["a", block, size_bytes, stream])
        if self.is_busy and (is_opened or self._last["retries"] != before):
            self.forced_drains += 1
            self.drain_all()  # the allocator has waited for the streams
        if address == 0:
            return None
        self.live[block] = [size_bytes, stream, set(), [holder]]
        self.live_bytes += size_bytes
        return block

    def free(self, block):
        size_bytes, _, users, holders = self.live.pop(block)
        self.live_bytes -= size_bytes
        self.gpu.free(holders)
        for stream in users:
            if self.issued[stream] == self.finished[stream]:
                self.gpu.synchronize(stream)  # the event on this idle stream passes now
        self._note(["f", block])

    def record_stream(self, block, stream):
        _, own_stream, users, holders = self.live[block]
        if isinstance(holders[0], int):
            return  # torch offers record_stream for tensors only
        if stream != own_stream:
            users.add(stream)
        self.gpu.record_stream(holders[0], stream)
        self._note(["r", block, stream])

    def issue(self, stream):
        if self.gpu.gate is None:
            return
        self.gpu.gate.issue(stream)
        self.issued[stream] += 1
        self._note(["i", stream])

    def drain(self, stream, unfinished=0):
        """Lets the stream finish all but its newest `unfinished` tasks."""
        target = self.issued[stream] - unfinished
        if target <= self.finished[stream]:
            return
        self.gpu.gate.finish(stream, unfinished)
        self.finished[stream] = target
        self._note(["d", stream, target])

    def drain_all(self):
        for stream in range(len(self.issued)):
            self.drain(stream)

    def empty_cache(self):
        self.drain_all()
        self.gpu.empty_cache()
        self._note(["e"])

    def reset_peaks(self):
        self.gpu.reset_peaks()
        self._note(["p"])

    def take_snapshot(self):
        """Keeps all segments and blocks as they are after the operations so far."""
        self.record["snapshots"].append([len(self.record["ops"]), self.gpu.snapshot()])

    def close(self):
        """Frees everything, empties the cache and returns the record."""
        self.take_snapshot()
        for block in list(self.live):
            self.free(block)
        self.empty_cache()
        self.record["segments"] = self._segments_by_step()
        return self.record

    def abandon(self):
        """Frees everything without a record, after a failure."""
        if self.gpu.gate:
            self.gpu.gate.open_all()
        for _, _, _, holders in self.live.values():
            self.gpu.free(holders)
        self.live.clear()

    def _note(self, op):
        self.record["ops"].append(op)
        values = self.gpu.stats()
        self._driver_calls.append(values.pop("driver_calls"))
        if self.capacity_bytes is not None:
            values["driver_free"] = self.gpu.driver_free_bytes()
        for name, value in values.items():
            column = self.record["stats"].setdefault(name, [])
            column.append(value - self._last.get(name, 0))
        self._last = values

    def _segments_by_step(self):
        """Each exchange with the driver, with the index of its operation in front."""
        events = self.gpu.segment_events()
        if len(events) != self._driver_calls[-1]:
            raise RuntimeError(f"{len(events)} events, {self._driver_calls[-1]} driver calls")
        result, step = [], 0
        for number, event in enumerate(events):
            while self._driver_calls[step] <= number:
                step += 1
            result.append([step, *event])
        return result


def pick_size(rng, largest_bytes=600 * MIB):
    """A size from 1 byte to `largest_bytes`: edges, small, middle and large ones."""
    kind = rng.random()
    if kind < 0.12:
        return min(largest_bytes, max(1, rng.choice(EDGES) + rng.choice([-1, 0, 1])))
    if kind < 0.42:
        return int(2 ** rng.uniform(0, 20))
    if kind < 0.72:
        return int(2 ** rng.uniform(20, 24))
    return min(largest_bytes, int(2 ** rng.uniform(24, max(24.5, math.log2(largest_bytes)))))


def make_palette(rng, count, largest_bytes=600 * MIB):
    """Sizes that one script repeats, as the layers of a model do."""
    return [pick_size(rng, largest_bytes) for _ in range(count)]


def random_mix(session, rng):
    """Allocations and frees in random order on all streams; some streams busy at times."""
    palette = make_palette(rng, 12)
    streams = len(session.issued)
    ceiling = rng.choice([256, 1024, 3072]) * MIB
    while not session.is_full:
        choice = rng.random()
        if choice < 0.52 and session.live_bytes < ceiling:
            size = rng.choice(palette) if rng.random() < 0.7 else pick_size(rng)
            stream = 0 if rng.random() < 0.6 else rng.randrange(streams)
            block = session.alloc(min(size, ceiling), stream, is_raw=rng.random() < 0.2)
            if block is not None and rng.random() < 0.15:
                session.record_stream(block, rng.randrange(streams))
        elif choice < 0.92 and session.live:
            session.free(rng.choice(list(session.live)))
        elif choice < 0.95:
            session.issue(rng.randrange(streams))
        elif choice < 0.985:
            session.drain(rng.randrange(streams))
        elif choice < 0.99:
            session.empty_cache()
        else:
            session.reset_peaks()
        maybe_snapshot(session, rng)


def stream_use(session, rng):
    """Buffers of a gather stream used by the compute stream, released with record_stream while
    the streams lag behind the host by a random number of tasks."""
    streams = len(session.issued)
    palette = make_palette(rng, 5, 64 * MIB)
    while not session.is_full:
        choice = rng.random()
        stream = rng.randrange(streams)
        if choice < 0.3 and len(session.live) < 30:
            block = session.alloc(rng.choice(palette), rng.choice([0, 1, 1, 1, 2]))
            while block is not None and rng.random() < 0.6:
                session.record_stream(block, rng.randrange(streams))
        elif choice < 0.6 and session.live:
            session.free(rng.choice(list(session.live)))
        elif choice < 0.8:
            session.issue(stream)
        else:
            lag = session.issued[stream] - session.finished[stream]
            session.drain(stream, rng.randrange(lag + 1))
        maybe_snapshot(session, rng)


def training(session, rng):
    """Steps as of ZeRO-3 training: shards, gathered weights, activations, gradients, buckets."""
    layers = rng.randrange(3, 7)
    weights = make_palette(rng, rng.randrange(2, 4), 48 * MIB)
    activations = make_palette(rng, rng.randrange(2, 5), 96 * MIB)
    for _ in range(layers):
        for size in weights:
            session.alloc(max(1, size // 4), is_raw=rng.random() < 0.5)
    while not session.is_full:
        saved = []
        for _ in range(layers):
            gathered = gather(session, rng, weights)
            saved.append([block for size in activations for block in [session.alloc(size)]])
            compute(session, rng)
            release(session, gathered)
        session.take_snapshot()
        for blocks in reversed(saved):
            gathered = gather(session, rng, weights)
            gradients = [session.alloc(size) for size in weights]
            compute(session, rng)
            for block in reversed(blocks):
                release(session, [block], is_used_elsewhere=False)
            release(session, gathered)
            bucket = session.alloc(max(1, sum(weights) // 2), 2)
            release(session, gradients, is_used_elsewhere=False)
            release(session, [bucket], is_used_elsewhere=False)
        session.drain_all()
        session.reset_peaks()


def gather(session, rng, weights):
    """Full weights on the gather stream, which the compute stream is about to use."""
    session.issue(1)
    return [session.alloc(size, 1) for size in weights if rng.random() < 0.9]


def compute(session, rng):
    """A few operations with temporaries; the GPU stays at most a few tasks behind."""
    for _ in range(rng.randrange(1, 4)):
        temporary = session.alloc(pick_size(rng, 32 * MIB))
        session.issue(0)
        release(session, [temporary], is_used_elsewhere=False)
    for stream in (0, 1):
        lag = session.issued[stream] - session.finished[stream]
        if lag > 0:
            session.drain(stream, rng.randrange(min(lag, 4)))


def release(session, blocks, is_used_elsewhere=True):
    """Frees what was allocated; blocks of the gather stream only after the compute stream."""
    for block in blocks:
        if block is None:
            continue
        if is_used_elsewhere:
            session.record_stream(block, 0)
        session.free(block)


def memory_pressure(session, rng):
    """Requests near a memory limit: the cache is flushed, and some requests are refused."""
    limit = session.limit_bytes or session.capacity_bytes
    largest = max(2 * MIB, limit // rng.choice([2, 3, 5, 8]))
    palette = make_palette(rng, 8, largest)
    streams = len(session.issued)
    has_busy_streams = rng.random() < 0.5
    while not session.is_full:
        choice = rng.random()
        if choice < 0.5:
            size = rng.choice(palette) if rng.random() < 0.6 else pick_size(rng, largest)
            stream = 0 if rng.random() < 0.7 else rng.randrange(streams)
            block = session.alloc(size, stream)
            if block is None:
                for victim in rng.sample(list(session.live), len(session.live) // 3):
                    session.free(victim)
            elif has_busy_streams and rng.random() < 0.3:
                session.record_stream(block, rng.randrange(streams))
        elif choice < 0.9 and session.live:
            session.free(rng.choice(list(session.live)))
        elif has_busy_streams and choice < 0.94:
            session.issue(rng.randrange(streams))
        elif has_busy_streams and choice < 0.98:
            session.drain(rng.randrange(streams))
        elif choice > 0.995:
            session.empty_cache()
        maybe_snapshot(session, rng)


def maybe_snapshot(session, rng):
    if rng.random() < 0.006:
        session.take_snapshot()
