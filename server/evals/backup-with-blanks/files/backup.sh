#!/usr/bin/env bash
# Copy what is new in FROM to TO.
here=$(dirname "$0")
. "$here/lib/copy.sh"
. "$here/lib/stamp.sh"

if [ $# -ne 2 ] || [ ! -d "$1" ]; then
  echo "usage: backup.sh FROM TO" >&2
  exit 2
fi
mkdir -p "$2"
copy_new "$1" "$2"
touch_stamp "$2"
echo "Backup complete"
