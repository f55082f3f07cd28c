#!/usr/bin/env bash
set -u
place=$(mktemp -d)
trap 'chmod -R u+rwx "$place"; rm -rf "$place"' EXIT
fail() { echo "failed: $1"; exit 1; }
script=$PWD/backup.sh
mkdir -p "$place/my files/a  b" "$place/my files/-dash" "$place/my files/.hidden"
names=("one two" "a  b/three  four" "-n" "-dash/-rf" ".dot" ".hidden/x" $'line\nend' 'star*' 'a\b' ' lead' 'trail ')
for name in "${names[@]}"; do printf '%s' "$name" > "$place/my files/$name"; done
bash "$script" "$place/my files" "$place/the copy" > "$place/out" 2> "$place/err" || fail "exit code $?: $(cat "$place/err")"
for name in "${names[@]}"; do
  [ -f "$place/the copy/$name" ] || fail "not there: $name"
  cmp -s "$place/my files/$name" "$place/the copy/$name" || fail "differs: $name"
done
[ "$(cat "$place/out")" = "Backup complete" ] || fail "said: $(cat "$place/out")"
# relative folders, and only what is new
cd "$place" || exit 1
touch -d '2 days ago' "my files/one two"; rm "the copy/one two"
printf new > "my files/new"
touch -d '+2 seconds' "my files/new"
bash "$script" "my files" "the copy" > /dev/null || fail "the second time"
[ -f "the copy/new" ] || fail "new is not there"
[ ! -e "the copy/one two" ] || fail "what is old was copied again"
# a file that cannot be copied: a folder stands in its place
rm -rf second; mkdir -p "second/bad file/x" from
printf 1 > "from/bad file"; printf 2 > "from/good file"
bash "$script" from second > out 2> err; code=$?
[ $code -eq 1 ] || fail "exit code $code where a file could not be copied"
grep -q "bad file" err || fail "the file is not named on stderr"
grep -q "Backup complete" out && fail "it says that it is complete"
[ -f "second/good file" ] || fail "it did not go on"
[ ! -e second/.stamp ] || fail "a backup that is not complete has left a stamp"
# a file that was missed is copied by the next backup
rm -rf "second/bad file"
bash "$script" from second > /dev/null || fail "the third time"
[ -f "second/bad file" ] || fail "what was missed is still missing"
echo ok
