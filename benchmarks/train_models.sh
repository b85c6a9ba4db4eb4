#!/usr/bin/env bash
# Train the bundled models and release them: benchmarks/train_models.sh [NAME ...]
#
# A model is trained in stages: scm from scratch; linear, rff and grn are initialised from the bundled model general
# (records/general/README.md). Each further stage is initialised from the previous one. A stage uses
# records/NAME/STAGE/config.json and the core-minutes of records/NAME/record.json; STRETCH=4 makes every stage four times
# as long. The result follows the same recipe but is not bit-identical, because the code has changed since the earlier
# stages.
#
# Every stage is resumable: start the script again after an interruption. Each run uses one thread, so two models can be
# trained in parallel on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
runs=${PRESAGE_RUNS:-runs}
stretch=${STRETCH:-1}
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
    previous=()
    for minutes in $budgets; do
        stage=$((stage + 1))
        run="$runs/$name-$stage"
        init=()
        [ ${#previous[@]} -eq 0 ] || init=(--init-from "${previous[-1]}/model.safetensors")
        if [ ! -f "$run/model.safetensors" ]; then
            "$python" -m presage train --config "records/$name/$stage/config.json" --out "$run" --minutes "$minutes" \
                --threads 1 --resume "${init[@]}"
        fi
        previous+=("$run")
    done
    domains="$name-ood"
    [ "$name" != scm ] || domains=linear,linear-ood,rff,rff-ood
    "$python" -m presage release "$run" "$name" --out "$runs/released" --domains "$domains" --force
    cp "$runs/released/$name.safetensors" src/presage/assets/models/
    cp -r "$runs/released/records/$name" records/
done
