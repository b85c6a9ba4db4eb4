"""The paper's transformer: one token per cell of the table, attention over variables and over rows in turn.

Every cell (x, u) becomes a vector of `width`; L layers follow, each attending over the d variables, then over the
n rows, with a feed-forward layer after each. Max-pooling over rows leaves one vector per variable, from which two
embeddings per variable and an inner product per ordered pair give the logits. The network is invariant to the order of
rows and equivariant to the order of variables; n and d may be any numbers of at least 1.

Missing cells have the value 0, the mean of a standardized variable. With `missing_input=True` the mask of missing cells
is a third input; the paper's network has no such input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from presage.config import param
from presage.errors import DataError
from presage.networks.network import NetConfig, Network, register_network

__all__ = ["AxialConfig", "AxialNetwork"]

CELLS_AT_ONCE = 16_384
"""How many cells `predict` processes at a time by default: a few tens of MiB of activations."""


@dataclass(frozen=True, kw_only=True)
class AxialConfig(NetConfig):
    """Sizes of the paper's network, and the variants of its ablation.

    axes: "both" alternates attention over variables and rows; with "d" or "n" all 2L sublayers attend over one axis.
    head: "inner" is the scaled inner product of unit vectors; "relational" a tanh layer over both embeddings.
    out_width: length of the two embeddings per variable; None means `width`.
    """

    net: ClassVar[str] = "axial"

    layers: int = param(8, ge=1)
    width: int = param(128, ge=1)
    heads: int = param(8, ge=1)
    key_size: int = param(32, ge=1)
    hidden: int = param(512, ge=1)
    dropout: float = param(0.0, ge=0, lt=1)
    axes: Literal["both", "d", "n"] = "both"
    head: Literal["inner", "relational"] = "inner"
    out_width: int | None = param(None, ge=1)
    log_scale_start: float = 2.0
    bias_start: float = -3.0
    missing_input: bool = False

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return 2 * self.layers

    @property
    def sublayer_axes(self) -> tuple[str, ...]:
        """The axis each of the 2L attention sublayers attends over, in order."""
        return ("d", "n") * self.layers if self.axes == "both" else (self.axes,) * (2 * self.layers)


def _linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear layer with Kaiming-uniform weights and zero bias."""
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
        found: Tensor = self.out(mixed.transpose(1, 2).reshape(b, t, self.heads * self.key_size))
        return found


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
        found: Tensor = z + self.dropout(self.attention(z))
        return found

    def transform(self, z: Tensor) -> Tensor:
        """[..., k] -> [..., k], each cell by itself."""
        found: Tensor = z + self.dropout(self.feed(z))
        return found


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
        found: Tensor = self.score(pairs)[..., 0] + self.bias  # [B, d, d]
        return found


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
        found: Tensor = self.head(self.norm(z).amax(dim=1))
        return found

    def io_layers(self) -> Iterator[nn.Module]:
        """The embedding of cells and the head."""
        yield from (self.embed, self.head)

    def activation_bytes(self, n: int, d: int) -> int:
        """Approximate memory that autograd keeps of one dataset: the sublayers' activations in each of 2 L blocks."""
        config = self.config
        sublayers = 2 * config.layers * (6 * config.width + 4 * config.heads * config.key_size + 2 * config.hidden)
        return 4 * n * d * sublayers

    @torch.inference_mode()
    def predict(self, x: Tensor, u: Tensor, missing: Tensor | None = None, rows: int | None = None) -> Tensor:
        """Edge logits [d, d] of one dataset [n, d] in evaluation mode, in memory linear in n.

        The same numbers as `forward`, but only the cells [n, d, k] are kept in memory as a whole. Attention over
        variables runs on chunks of `rows` rows, attention over rows on a few variables at a time.
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
                if axis == "n":  # attention stays within a variable, so its cells can be overwritten at once
                    for part in _slices(d, columns):
                        z[:, part] = block.attend(z[:, part].transpose(0, 1).contiguous()).transpose(0, 1)
                for part in _slices(n, rows):
                    z[part] = block.transform(block.attend(z[part]) if axis == "d" else z[part])
            pooled = torch.stack([self.norm(z[part]).amax(dim=0) for part in _slices(n, rows)]).amax(dim=0)  # [d, k]
            found: Tensor = self.head(pooled[None])[0]
            return found
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
        found: Tensor = self.embed(torch.stack(inputs, dim=-1))
        return found


def _slices(total: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


register_network(AxialConfig, AxialNetwork)
