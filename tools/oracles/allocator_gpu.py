"""The GPU side of record_allocator.py: torch's allocator, and streams that stay busy on demand."""

import ctypes
import threading
import time

import torch

DEVICE = 0
SEGMENT_KINDS = {
    "segment_alloc": "alloc",
    "segment_free": "free",
    "segment_map": "map",
    "segment_unmap": "unmap",
}
# Keys of torch.cuda.memory_stats_as_nested_dict() by the names that the answers use.
STATS = {
    "allocated": "allocated_bytes",
    "active": "active_bytes",
    "reserved": "reserved_bytes",
    "requested": "requested_bytes",
    "inactive_split": "inactive_split_bytes",
    "segments": "segment",
}


class Driver:
    """The few calls of the CUDA driver that torch does not offer, through ctypes."""

    def __init__(self):
        library = ctypes.CDLL("libcuda.so.1")
        self._wait = library.cuStreamWaitValue32_v2
        self._wait.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint]
        self._alloc = library.cuMemAlloc_v2
        self._alloc.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
        self._free = library.cuMemFree_v2
        self._free.argtypes = [ctypes.c_uint64]

    def wait_at_least(self, stream, address, value):
        """The stream waits until the 32-bit word at address is at least value."""
        self._check("cuStreamWaitValue32", self._wait(stream.cuda_stream, address, value, 0))

    def alloc(self, size_bytes):
        pointer = ctypes.c_uint64()
        self._check("cuMemAlloc", self._alloc(ctypes.byref(pointer), size_bytes))
        return pointer.value

    def free(self, pointer):
        self._check("cuMemFree", self._free(pointer))

    @staticmethod
    def _check(call, code):
        if code != 0:
            raise RuntimeError(f"{call} failed with code {code}")


class Gate:
    """Tasks on streams that are unfinished until the host says otherwise.

    Task k of a stream waits until the stream's word of pinned memory is at least k. Before each
    task but the first, a marker event is recorded: once the marker before task k + 1 has passed,
    so has everything that was put on the stream after task k.
    """

    _SPACING_BYTES = 128

    def __init__(self, driver, streams):
        self._driver = driver
        self._streams = streams
        size_bytes = self._SPACING_BYTES * len(streams)
        self._memory = torch.zeros(size_bytes, dtype=torch.uint8).pin_memory()
        base = self._memory.data_ptr()
        self._addresses = [base + self._SPACING_BYTES * i for i in range(len(streams))]
        self._words = [ctypes.c_uint32.from_address(a) for a in self._addresses]
        self._issued = [0] * len(streams)
        self._markers = [{} for _ in streams]
        self._self_test()

    def issue(self, stream):
        """Puts one more task on the stream."""
        marker = torch.cuda.Event()
        marker.record(self._streams[stream])
        self._markers[stream][self._issued[stream]] = marker
        self._issued[stream] += 1
        self._driver.wait_at_least(
            self._streams[stream], self._addresses[stream], self._issued[stream]
        )

    def finish(self, stream, unfinished):
        """Lets the stream finish all but its newest `unfinished` tasks, and waits for that."""
        target = self._issued[stream] - unfinished
        self._words[stream].value = max(target, self._words[stream].value)
        if unfinished == 0:
            self._streams[stream].synchronize()
        else:
            self._markers[stream][target].synchronize()
        self._markers[stream] = {k: v for k, v in self._markers[stream].items() if k > target}

    def open_all(self):
        """Lets all streams finish everything; does not wait. May be called from any thread."""
        for word, issued in zip(self._words, self._issued):
            word.value = issued

    def _self_test(self):
        for stream in range(len(self._streams)):
            self.issue(stream)
        probes = [torch.cuda.Event() for _ in self._streams]
        for probe, stream in zip(probes, self._streams):
            probe.record(stream)
        time.sleep(0.02)
        held = [not probe.query() for probe in probes]
        self.open_all()
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and not all(probe.query() for probe in probes):
            time.sleep(0.001)
        if not all(held) or not all(probe.query() for probe in probes):
            raise RuntimeError(f"the gate does not work: held {held}")
        for stream in range(len(self._streams)):
            self.finish(stream, 0)


class Watchdog(threading.Thread):
    """Opens the gate when a call of the allocator blocks: it then waits for the GPU.

    That happens where the allocator synchronises, after it has looked at its events, so what the
    call decides is what it would have decided with the streams still busy.
    """

    _PATIENCE_S = 0.12

    def __init__(self, gate):
        super().__init__(daemon=True)
        self._gate = gate
        self._lock = threading.Lock()
        self._deadline = None
        self._fired = False
        self.start()

    def arm(self):
        with self._lock:
            self._deadline = time.monotonic() + self._PATIENCE_S
            self._fired = False

    def disarm(self):
        """Returns True if the gate was opened since `arm`."""
        with self._lock:
            self._deadline = None
            return self._fired

    def run(self):
        while True:
            time.sleep(0.01)
            with self._lock:
                if self._deadline is not None and time.monotonic() > self._deadline:
                    self._gate.open_all()
                    self._deadline = None
                    self._fired = True


class Gpu:
    """One GPU with torch's caching allocator: the operations of the scripts, and the answers."""

    def __init__(self, stream_count):
        torch.cuda.init()
        torch.cuda.set_device(DEVICE)
        torch.cuda.synchronize()
        side = [torch.cuda.Stream() for _ in range(stream_count - 1)]
        # The allocator orders streams by their handle; the default stream's is 0.
        self.streams = [torch.cuda.default_stream()] + sorted(side, key=lambda s: s.cuda_stream)
        self._stream_of_handle = {s.cuda_stream: i for i, s in enumerate(self.streams)}
        properties = torch.cuda.get_device_properties(DEVICE)
        self.total_bytes = properties.total_memory
        self.name = properties.name
        self.versions = {"torch": torch.__version__, "cuda": torch.version.cuda}
        self._driver = Driver()
        self.gate = self._make_gate()
        self._watchdog = Watchdog(self.gate) if self.gate else None
        self._ballast = None
        self._uncounted_ooms = 0

    def _make_gate(self):
        try:
            return Gate(self._driver, self.streams)
        except Exception as error:  # the scripts then run without busy streams
            print(f"warning: no busy streams: {error}", flush=True)
            return None

    def start(self, limit_bytes, driver_bytes):
        """Empties the allocator and sets what it may take. Returns (limit, capacity) in bytes."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        fraction = 1.0 if limit_bytes is None else limit_bytes / self.total_bytes
        torch.cuda.set_per_process_memory_fraction(fraction, DEVICE)
        limit = None if limit_bytes is None else int(fraction * float(self.total_bytes))
        capacity = None
        if driver_bytes is not None:
            self._ballast = self._driver.alloc(torch.cuda.mem_get_info(DEVICE)[0] - driver_bytes)
            capacity = torch.cuda.mem_get_info(DEVICE)[0]
        torch.cuda.reset_peak_memory_stats(DEVICE)
        torch.cuda.reset_accumulated_memory_stats(DEVICE)
        self._uncounted_ooms = 0
        torch.cuda.memory._record_memory_history(enabled=None)
        torch.cuda.memory._record_memory_history(
            enabled="all", context=None, stacks="python", max_entries=1_000_000, clear_history=True
        )
        if torch.cuda.memory_reserved(DEVICE) != 0:
            raise RuntimeError(f"{torch.cuda.memory_reserved(DEVICE)} bytes are left over")
        return limit, capacity

    def finish(self):
        """Undoes what `start` did; the caller has freed everything."""
        if self.gate:
            self.gate.open_all()
        torch.cuda.synchronize()
        torch.cuda.memory._record_memory_history(enabled=None)
        if self._ballast is not None:
            self._driver.free(self._ballast)
            self._ballast = None
        torch.cuda.set_per_process_memory_fraction(1.0, DEVICE)
        torch.cuda.empty_cache()

    def alloc(self, size_bytes, stream, is_raw, is_busy):
        """Returns (holder, address, gate was opened); (None, 0, ...) if out of memory."""
        is_watched = is_busy and self._watchdog is not None
        if is_watched:
            self._watchdog.arm()
        try:
            holder, address = self._alloc(size_bytes, stream, is_raw)
        except RuntimeError as error:
            holder, address = None, 0
            if not isinstance(error, torch.OutOfMemoryError):
                if "NVML" not in str(error):
                    raise
                # Where NVML does not work, torch fails over the text of the out-of-memory error,
                # before it counts it.
                self._uncounted_ooms += 1
        finally:
            is_opened = self._watchdog.disarm() if is_watched else False
        return holder, address, is_opened

    def _alloc(self, size_bytes, stream, is_raw):
        if is_raw:
            pointer = torch.cuda.caching_allocator_alloc(size_bytes, DEVICE, self.streams[stream])
            return pointer, pointer
        with torch.cuda.stream(self.streams[stream]):
            tensor = torch.empty(size_bytes, dtype=torch.uint8, device=f"cuda:{DEVICE}")
        return tensor, tensor.data_ptr()

    def free(self, holders):
        """Frees what the one entry of the list holds, and takes it off the list."""
        holder = holders.pop()
        if isinstance(holder, int):
            torch.cuda.caching_allocator_delete(holder)
        del holder

    def record_stream(self, holder, stream):
        holder.record_stream(self.streams[stream])

    def synchronize(self, stream):
        self.streams[stream].synchronize()

    def empty_cache(self):
        torch.cuda.empty_cache()

    def reset_peaks(self):
        torch.cuda.reset_peak_memory_stats(DEVICE)

    def stats(self):
        """Current values, peaks, and counts, by the names of the answers."""
        nested = torch.cuda.memory_stats_as_nested_dict(DEVICE)
        values = {}
        for name, key in STATS.items():
            values[name] = nested[key]["all"]["current"]
            values[name + "_peak"] = nested[key]["all"]["peak"]
        values["retries"] = nested["num_alloc_retries"]
        values["ooms"] = nested["num_ooms"] + self._uncounted_ooms
        values["driver_calls"] = nested["num_device_alloc"] + nested["num_device_free"]
        return values

    def driver_free_bytes(self):
        return torch.cuda.mem_get_info(DEVICE)[0]

    def segment_events(self):
        """[kind, address, bytes, stream] of every exchange with the driver since `start`."""
        trace = torch.cuda.memory._snapshot()["device_traces"][DEVICE]
        return [
            [
                SEGMENT_KINDS[entry["action"]],
                entry["addr"],
                entry["size"],
                self._stream_of_handle[entry["stream"]],
            ]
            for entry in trace
            if entry["action"] in SEGMENT_KINDS
        ]

    def snapshot(self):
        """[address, bytes, stream, is_small, [[bytes, requested, state]...]] of every segment."""
        states = {"active_allocated": "a", "active_pending_free": "w", "inactive": "f"}
        return [
            [
                segment["address"],
                segment["total_size"],
                self._stream_of_handle[segment["stream"]],
                int(segment["segment_type"] == "small"),
                [[b["size"], b["requested_size"], states[b["state"]]] for b in segment["blocks"]],
            ]
            for segment in torch.cuda.memory_snapshot(include_traces=False)
        ]
