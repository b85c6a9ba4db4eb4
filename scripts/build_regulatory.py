"""Build src/presage/assets/networks/regulatory.npz from the two networks in the wheel of the public avici package.

    pip download avici==1.0.7 --no-deps -d wheels
    python scripts/build_regulatory.py wheels/avici-1.0.7-py3-none-any.whl

The files come from GeneNetWeaver; origin and terms are in src/presage/assets/networks/NOTICE.md.
"""

from __future__ import annotations

import argparse
import os
import zipfile
from pathlib import Path

import numpy as np

FILES = {
    "ecoli": "avici/assets/ecoli_transcriptional_network_regulonDB_6_7.tsv",
    "yeast": "avici/assets/yeast_transcriptional_network_Balaji2006.tsv",
}
SIGNS = {"+": 1, "-": -1, "+-": 0, "?": 0}  # 0: both or unknown
OUT = Path(__file__).resolve().parents[1] / "src" / "presage" / "assets" / "networks" / "regulatory.npz"


def read(text: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names (sorted), edges uint16 [2, m] sorted by source and target, signs int8 [m]."""
    rows = [line.split("\t") for line in text.splitlines() if line.strip()]
    names = sorted({name for row in rows for name in row[:2]})
    index = {name: k for k, name in enumerate(names)}
    signs: dict[tuple[int, int], int] = {}
    for row in rows:
        edge = index[row[0]], index[row[1]]
        sign = SIGNS[row[2].strip()] if len(row) > 2 else 0
        if signs.setdefault(edge, sign) != sign:
            signs[edge] = 0  # listed twice with different signs
    edges = sorted(signs)
    return names, np.array(edges, dtype=np.uint16).T, np.array([signs[e] for e in edges], dtype=np.int8)


def main() -> None:
    """Read the wheel named on the command line and write the compact file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the avici wheel, or a folder it is unpacked or installed in")
    wheel = parser.parse_args().wheel
    arrays: dict[str, np.ndarray] = {}
    for key, file in FILES.items():
        if wheel.is_dir():
            text = (wheel / file).read_text(encoding="utf-8")
        else:
            with zipfile.ZipFile(wheel) as archive:
                text = archive.read(file).decode("utf-8")
        names, edges, signs = read(text)
        arrays[f"{key}_names"] = np.frombuffer("\n".join(names).encode(), dtype=np.uint8)
        arrays[f"{key}_edges"] = edges
        arrays[f"{key}_signs"] = signs
        print(f"{key}: {len(names)} genes, {edges.shape[1]} edges, {int((signs != 0).sum())} known signs")
    temporary = OUT.with_suffix(".tmp.npz")
    np.savez_compressed(temporary, **arrays)
    os.replace(temporary, OUT)
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
