#!/usr/bin/env bash
# The tests: each prints a line when it fails.
set -u
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/from/sub"
echo one > "$place/from/one"
echo two > "$place/from/sub/two"
bash backup.sh "$place/from" "$place/to" > "$place/said" || { echo "it failed"; exit 1; }
[ "$(cat "$place/to/sub/two")" = two ] || { echo "sub/two is not there"; exit 1; }
[ "$(cat "$place/said")" = "Backup complete" ] || { echo "it said: $(cat "$place/said")"; exit 1; }
[ "$(bash backup.sh 2>&1; echo $?)" = "usage: backup.sh FROM TO
2" ] || { echo "usage"; exit 1; }
echo ok
