"""Compiled graphs: what PyTorch's Inductor runs in place of the recorded operators, found out without a GPU.

`record.py` is the way in. The joint graph of the trace is decomposed on fake CUDA tensors (`joint_on_cuda.py`), split and
lowered by Inductor itself (`lowering.py`) under stand-ins for a GPU (`no_gpu.py`); its wrapper's lines (`lines.py`) become
a document of docs/reference/formats.md (`document.py`).
"""
