#!/usr/bin/env bash
# Three hospitals train one model on this machine. Each is a process of its own, with its own table, key and ledger.
# They talk over mutual TLS 1.3. docs/guide/owners.rst has the same commands for three terminals.
#
#   examples/three_hospitals.sh [FOLDER]      FOLDER must not hold an example yet (default: study)
#
# SKDP is the command (default: skdp).
set -euo pipefail
study=${1:-study}
read -ra skdp <<<"${SKDP:-skdp}"

"${skdp[@]}" party example --out "$study"

parties=()
for index in 0 1 2; do
  names=(hospital_a hospital_b hospital_c)
  "${skdp[@]}" party --config "$study/plan.toml" --index "$index" --data "$study/${names[index]}.csv" --out "$study" --ceiling 3 1e-6 &
  parties+=($!)
done
for party in "${parties[@]}"; do
  wait "$party" # a party that failed ends this script
done

# All three hold the same model, and each has charged its own ledger.
cmp "$study"/rand-hie.hospital_{a,b}.model.json
cmp "$study"/rand-hie.hospital_{b,c}.model.json
"${skdp[@]}" ledger "$study/hospital_a.ledger"
