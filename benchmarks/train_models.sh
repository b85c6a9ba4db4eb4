#!/usr/bin/env bash
# Train bundled models again from nothing and release them: benchmarks/train_models.sh [NAME ...]
#
# A model is made in stages, each going on from the one before with the settings of records/NAME/STAGE/config.json and
# the core-minutes of records/NAME/record.json; STRETCH=4 gives every stage four times as long. What comes out has the
# same recipe, not the same bits: the code has moved on since the earlier stages.
#
# Every stage is resumable: start the script again after an interruption and it goes on. One thread each; two models fit
# a machine of two cores side by side, started by hand with their names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
runs=${PRESAGE_RUNS:-runs}
stretch=${STRETCH:-1}
models=${MODELS:-src/presage/assets/models}
records=${RECORDS:-records}
export OMP_NUM_THREADS=1
[ $# -gt 0 ] || set -- linear rff grn scm
for name in "$@"; do
    budgets=$("$python" - "records/$name/record.json" "$stretch" <<'END'
import json, sys
stages = json.load(open(sys.argv[1]))["stages"]
print(*(stage["core_minutes"] * float(sys.argv[2]) for stage in stages))
END
    )
    stage=0
    before=()
    for minutes in $budgets; do
        stage=$((stage + 1))
        run="$runs/$name-$stage"
        start=()
        [ ${#before[@]} -eq 0 ] || start=(--start "${before[-1]}/model.safetensors")
        if [ ! -f "$run/model.safetensors" ]; then
            "$python" -m presage train --config "records/$name/$stage/config.json" --out "$run" --minutes "$minutes" \
                --threads 1 --resume "${start[@]}"
        fi
        before+=("$run")
    done
    unset 'before[-1]'
    "$python" benchmarks/release.py "$run" "$name" --before "${before[@]}" --models "$models" --records "$records"
done
