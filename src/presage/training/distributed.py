"""Machine-dependent parts of training: the allocator, bf16, and the processes that torchrun started."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn

from presage.errors import ConfigError

__all__ = ["Distributed", "check_bf16", "keep_freed_memory"]

_BF16_PROBE = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a); (a @ a)"


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory; returns whether that worked.

    By default it returns every large tensor to the system, and the next one causes page faults: a third of the time of
    a training step on a CPU.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
        # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD of malloc.h
        return bool(libc.mallopt(-3, 1 << 25) and libc.mallopt(-1, 2**31 - 1) and libc.mallopt(-2, 1 << 26))
    except (OSError, AttributeError):
        return False


def check_bf16() -> None:
    """Raise `ConfigError` where bf16 products crash, as on virtual machines that report AMX without supporting it."""
    done = subprocess.run([sys.executable, "-c", _BF16_PROBE], capture_output=True, check=False)
    if done.returncode != 0:
        raise ConfigError(
            "bf16 products crash on this machine's processor; train with fp32, or set the environment variable "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 first"
        )


class Distributed:
    """The processes of a data-parallel run: one, or as many as torchrun started."""

    def __init__(self) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
        cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", local) if cuda else torch.device("cpu")
        self._started = self.size > 1 and not dist.is_initialized()
        if self._started:
            dist.init_process_group("nccl" if cuda else "gloo")

    @property
    def is_main(self) -> bool:
        """Whether this process is rank 0, which writes files and reports."""
        return self.rank == 0

    def all_reduce(self, network: nn.Module, numbers: tuple[float, float]) -> tuple[float, float]:
        """Sum the gradients of a network, and two numbers, over the processes, in one message."""
        if self.size == 1:
            return numbers
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in network.parameters()]
        tail = torch.tensor(numbers, dtype=torch.float32, device=self.device)
        flat = torch.cat([*(gradient.reshape(-1) for gradient in gradients), tail])
        dist.all_reduce(flat)
        at = 0
        for p, gradient in zip(network.parameters(), gradients, strict=True):
            p.grad = flat[at : at + gradient.numel()].view_as(gradient).clone()
            at += gradient.numel()
        return float(flat[-2]), float(flat[-1])

    def broadcast(self, spent: float, stopping: bool) -> tuple[float, bool]:
        """Budget and signals of rank 0, for all processes: clocks differ, schedules must not."""
        if self.size == 1:
            return spent, stopping
        tensor = torch.tensor([spent, float(stopping)], dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        return float(tensor[0]), bool(tensor[1])

    def barrier(self) -> None:
        """Wait for the other processes: rank 0 still writes files after the last step."""
        if self.size > 1:
            dist.barrier()

    def close(self) -> None:
        """Close the connection if this object opened it."""
        if self._started:
            dist.destroy_process_group()
