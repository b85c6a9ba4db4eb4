#!/usr/bin/env bash
# Train and release every bundled model from nothing: benchmarks/train_models.sh [CORE_MINUTES] [NAME ...]
#
# The files in the package had less: rff, scm and grn were made in two runs each (records/NAME/first, then records/NAME), all
# four in 24 to 78 core-minutes.
#
# Each run is resumable: start the script again after an interruption and it goes on. Runs take CORE_MINUTES (default
# 240) of processor time each on one thread; two fit a machine of two cores side by side, started by hand with their names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
minutes=${1:-240}
shift || true
names=("${@:-linear rff grn scm}")
python=${PYTHON:-.venv/bin/python}
runs=${PRESAGE_RUNS:-runs}
for name in ${names[*]}; do
    if [ ! -f "$runs/$name/model.safetensors" ]; then
        OMP_NUM_THREADS=1 "$python" -m presage train --config "benchmarks/recipes/$name.json" --out "$runs/$name" \
            --minutes "$minutes" --resume
    fi
    OMP_NUM_THREADS=1 "$python" benchmarks/release.py "$runs/$name" "$name"
done
