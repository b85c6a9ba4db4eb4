"""The device a network runs on: the CPU unless another one is requested and available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.errors import ConfigError

if TYPE_CHECKING:
    import torch

__all__ = ["find_device"]


def find_device(device: Any) -> torch.device:
    """The torch device of a name such as "cpu", "cuda", "cuda:1" or "mps"; None is the CPU.

    Raises `ConfigError` if torch does not know the device or this machine does not have it.
    """
    import torch

    if device is None:
        return torch.device("cpu")
    if not isinstance(device, (str, torch.device)):
        raise ConfigError(f"device must be a name such as 'cpu', 'cuda' or 'mps', not {device!r}")
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).cpu()  # some devices exist only by name
    # torch reports absent devices by errors of several classes
    except (RuntimeError, AssertionError, ImportError, ValueError) as error:
        usable = ", ".join(_usable())
        raise ConfigError(
            f"the device {str(device)!r} cannot be used here; devices of this machine: {usable}"
        ) from error
    return found


def _usable() -> list[str]:
    import torch

    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found
