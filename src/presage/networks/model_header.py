"""Headers of model files: metadata and the network's configuration, read without importing torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from presage.errors import ModelFileError
from presage.files import parse_json

__all__ = ["FORMAT", "VERSION", "header_json", "read_header", "read_metadata"]

FORMAT = "presage-model"
VERSION = 1


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a model file and its network's configuration; weights are not read, the checksum not verified."""
    header = read_header(Path(path))
    return {**header_json(Path(path), header, "metadata"), "network": header_json(Path(path), header, "network")}


def read_header(path: Path) -> dict[str, str]:
    """The header of a model file, checked for format and version."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelFileError(f"{path}: there is no such model file")
    try:
        with safe_open(str(path), framework="np") as file:
            header = file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(
            f"{path}: not a whole safetensors file (truncated, damaged or of another format)"
        ) from error
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a Presage model (its format is not {FORMAT!r})")
    if header.get("version") != str(VERSION):
        raise ModelFileError(
            f"{path}: a model file of version {header.get('version')}; this Presage reads version {VERSION}"
        )
    return header


def header_json(path: Path, header: Mapping[str, str], key: str) -> dict[str, Any]:
    """An entry of the header that holds a JSON object."""
    try:
        value = parse_json(header[key])
    except (KeyError, ValueError) as error:
        raise ModelFileError(f"{path}: its {key} entry is missing or damaged") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{path}: its {key} entry is damaged")
    return value
