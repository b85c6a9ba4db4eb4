"""The paper's transformer: one token per cell of the table, attention over variables and over rows in turn.

Every cell (x, u) becomes a vector of `width`; L layers follow, each attending over the d variables, then over the
n rows, with a feed-forward part after either. Max-pooling over rows leaves one vector per variable, from which two
embeddings per variable and an inner product per ordered pair give the logits. Nothing depends on the order of rows
or on the names of variables, and n and d may be anything from 1 on.

Missing cells enter with the value 0, the mean of a standardized variable. The paper's network is told no more than
that; with `missing_input=True` it also gets the mask as a third input of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from presage.errors import ConfigError, DataError
from presage.networks.network import NetConfig, Network, register_network

__all__ = ["AxialConfig", "AxialNetwork"]

CELLS_AT_ONCE = 16_384
"""How many cells `predict` works on at a time unless told otherwise: a few tens of MiB of activations."""


@dataclass(frozen=True, kw_only=True)
class AxialConfig(NetConfig):
    """Sizes of the paper's network, and the variants of its ablation.

    axes: "both" alternates attention over variables and rows; "d" or "n" spends all 2L sublayers on one of them.
    head: "inner" is the scaled inner product of unit vectors; "relational" a tanh layer over both embeddings.
    out_width: length of the two embeddings per variable; None means `width`.
    """

    net: ClassVar[str] = "axial"

    layers: int = 8
    width: int = 128
    heads: int = 8
    key_size: int = 32
    hidden: int = 512
    dropout: float = 0.0
    axes: Literal["both", "d", "n"] = "both"
    head: Literal["inner", "relational"] = "inner"
    out_width: int | None = None
    log_scale_start: float = 2.0
    bias_start: float = -3.0
    missing_input: bool = False

    def __post_init__(self) -> None:
        sizes = {"layers": self.layers, "width": self.width, "heads": self.heads, "key_size": self.key_size}
        sizes |= {"hidden": self.hidden, "out_width": self.width if self.out_width is None else self.out_width}
        for name, size in sizes.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ConfigError(f"{name} of the axial network must be a whole number of at least 1, not {size!r}")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {self.dropout!r}")
        if self.axes not in ("both", "d", "n"):
            raise ConfigError(f"axes must be 'both', 'd' or 'n', not {self.axes!r}")
        if self.head not in ("inner", "relational"):
            raise ConfigError(f"head must be 'inner' or 'relational', not {self.head!r}")
        if not (math.isfinite(self.log_scale_start) and math.isfinite(self.bias_start)):
            raise ConfigError("log_scale_start and bias_start must be finite numbers")

    @property
    def sublayer_axes(self) -> tuple[str, ...]:
        """The axis each of the 2L attention sublayers attends over, in order."""
        return ("d", "n") * self.layers if self.axes == "both" else (self.axes,) * (2 * self.layers)


def _linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear map with Kaiming-uniform weights and no offset at the start."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class Attention(nn.Module):
    """Layer norm, then multi-head self-attention over the second-last axis."""

    def __init__(self, config: AxialConfig) -> None:
        super().__init__()
        self.heads, self.key_size = config.heads, config.key_size
        self.norm = nn.LayerNorm(config.width)
        self.qkv = _linear(config.width, 3 * config.heads * config.key_size)
        self.out = _linear(config.heads * config.key_size, config.width)

    def forward(self, z: Tensor) -> Tensor:
        """[B, T, k] -> [B, T, k], without the residual."""
        b, t, _ = z.shape
        qkv = self.qkv(self.norm(z)).view(b, t, 3, self.heads, self.key_size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # 3 x [B, heads, T, key]
        mixed = F.scaled_dot_product_attention(q, k, v)  # [B, heads, T, key]
        return self.out(mixed.transpose(1, 2).reshape(b, t, self.heads * self.key_size))


class Block(nn.Module):
    """An attention sublayer and a feed-forward sublayer, each with its residual."""

    def __init__(self, config: AxialConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.feed = nn.Sequential(
            nn.LayerNorm(config.width),
            _linear(config.width, config.hidden),
            nn.ReLU(),
            _linear(config.hidden, config.width),
        )
        self.dropout = nn.Dropout(config.dropout)

    def attend(self, z: Tensor) -> Tensor:
        """[B, T, k] -> [B, T, k], attending over T."""
        return z + self.dropout(self.attention(z))

    def transform(self, z: Tensor) -> Tensor:
        """[..., k] -> [..., k], each cell by itself."""
        return z + self.dropout(self.feed(z))


class Head(nn.Module):
    """Two embeddings per variable and a logit per ordered pair."""

    def __init__(self, config: AxialConfig) -> None:
        super().__init__()
        out = config.out_width or config.width
        self.cause = nn.Sequential(nn.LayerNorm(config.width), _linear(config.width, out))
        self.effect = nn.Sequential(nn.LayerNorm(config.width), _linear(config.width, out))
        self.bias = nn.Parameter(torch.tensor(float(config.bias_start)))
        self.log_scale: nn.Parameter | None = None
        if config.head == "inner":
            self.log_scale = nn.Parameter(torch.tensor(float(config.log_scale_start)))
        else:
            self.from_cause, self.from_effect = _linear(out, out, bias=False), _linear(out, out, bias=False)
            self.score = _linear(out, 1, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        """[B, d, k] -> logits [B, d, d], row causes column."""
        u = F.normalize(self.cause(z), dim=-1)  # [B, d, out]
        v = F.normalize(self.effect(z), dim=-1)  # [B, d, out]
        if self.log_scale is not None:
            return self.log_scale.exp() * (u @ v.transpose(-1, -2)) + self.bias  # [B, d, d]
        pairs = torch.tanh(self.from_cause(u)[:, :, None] + self.from_effect(v)[:, None])  # [B, d, d, out]
        return self.score(pairs)[..., 0] + self.bias  # [B, d, d]


class AxialNetwork(Network):
    """The paper's inference network."""

    config: AxialConfig

    def __init__(self, config: AxialConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = _linear(3 if config.missing_input else 2, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in config.sublayer_axes)
        self.norm = nn.LayerNorm(config.width)
        self.head = Head(config)

    def forward(self, x: Tensor, u: Tensor, missing: Tensor | None = None) -> Tensor:
        """Edge logits [B, d, d] of datasets [B, n, d]."""
        if x.ndim != 3 or min(x.shape[1:]) < 1:
            raise DataError(f"the values must be [B, n, d] with n and d of at least 1, not {tuple(x.shape)}")
        b, n, d = x.shape
        z = self._cells(x, u, missing)  # [B, n, d, k]
        for block, axis in self._sublayers():
            if axis == "d":
                z = block.attend(z.reshape(b * n, d, -1)).view(b, n, d, -1)  # rows are the batch
            else:
                z = z.transpose(1, 2).reshape(b * d, n, -1)  # variables are the batch
                z = block.attend(z).view(b, d, n, -1).transpose(1, 2)  # [B, n, d, k]
            z = block.transform(z)
        return self.head(self.norm(z).amax(dim=1))

    def activation_bytes(self, n: int, d: int) -> int:
        """About what autograd keeps of one dataset: a dozen widths and the hidden layer in each of 2 L blocks."""
        config = self.config
        sublayers = 2 * config.layers * (6 * config.width + 4 * config.heads * config.key_size + 2 * config.hidden)
        return 4 * n * d * sublayers

    @torch.inference_mode()
    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset [n, d] in evaluation mode, in memory linear in n.

        The same numbers as `forward`, but only the cells themselves, [n, d, k], are kept whole. What attends over
        variables runs in pieces of `rows` rows; what attends over rows runs a few variables at a time.
        """
        if x.ndim != 2 or min(x.shape) < 1:
            raise DataError(f"the values must be [n, d] with n and d of at least 1, not {tuple(x.shape)}")
        n, d = x.shape
        rows = max(1, CELLS_AT_ONCE // d) if rows is None else max(1, rows)
        columns = max(1, min(d, rows * d // n))
        training = self.training
        self.eval()
        try:
            z = x.new_empty(n, d, self.config.width, dtype=self.embed.weight.dtype)
            for part in _slices(n, rows):
                z[part] = self._cells(x[part], u[part], None if missing is None else missing[part])
            for block, axis in self._sublayers():
                if axis == "n":  # a variable attends within itself, so its cells can be replaced at once
                    for part in _slices(d, columns):
                        z[:, part] = block.attend(z[:, part].transpose(0, 1).contiguous()).transpose(0, 1)
                for part in _slices(n, rows):
                    z[part] = block.transform(block.attend(z[part]) if axis == "d" else z[part])
            pooled = torch.stack([self.norm(z[part]).amax(dim=0) for part in _slices(n, rows)]).amax(dim=0)  # [d, k]
            return self.head(pooled[None])[0]
        finally:
            self.train(training)

    def _sublayers(self) -> Iterator[tuple[Block, str]]:
        for block, axis in zip(self.blocks, self.config.sublayer_axes):
            yield cast(Block, block), axis

    def _cells(self, x: Tensor, u: Tensor, missing: Tensor | None) -> Tensor:
        """[..., n, d] values and masks -> [..., n, d, k]."""
        hidden = torch.zeros_like(x, dtype=torch.bool) if missing is None else missing.bool()
        inputs = [x.masked_fill(hidden, 0.0), u.to(x.dtype)]
        if self.config.missing_input:
            inputs.append(hidden.to(x.dtype))
        return self.embed(torch.stack(inputs, dim=-1))


def _slices(total: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


register_network(AxialConfig, AxialNetwork)
