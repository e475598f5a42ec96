"""What the current GPU's clock and power were while something ran, as nvidia-smi samples them."""

from __future__ import annotations

import statistics
import subprocess
from contextlib import suppress
from types import TracebackType

import torch

PERIOD_MS = 20
FIELDS = "clocks.sm,power.draw.instant,temperature.gpu"


class GpuClock:
    """Samples while a `with` block runs; the GPU must be busy throughout."""

    def __enter__(self) -> GpuClock:
        uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
        command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits", "-lms", str(PERIOD_MS), "-i", uuid]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.terminate()
        self.printed = self.process.communicate()[0]

    def result(self) -> dict[str, float]:
        """Medians of SM clock (MHz), power (W) and temperature (degrees Celsius), and how many samples there were."""
        samples = []
        for line in self.printed.splitlines():
            with suppress(ValueError):  # the last line may be cut
                values = [float(part) for part in line.split(",")]
                if len(values) == len(FIELDS.split(",")):
                    samples.append(values)
        if not samples:
            return {"samples": 0}
        clock, power, heat = (statistics.median(column) for column in zip(*samples))
        return {"sm_clock_mhz": clock, "power_watts": power, "temperature_celsius": heat, "samples": len(samples)}
