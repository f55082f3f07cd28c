# Copies files; the folder structure is kept.

copy_new() {
  from=$1
  to=$2
  for file in $(new_files $from $to); do
    mkdir -p $to/$(dirname $file)
    cp -p $from/$file $to/$file 2>/dev/null
  done
}

# The files of FROM that are newer than the stamp, relative to it.
new_files() {
  cd $1
  if [ -e "$2/.stamp" ]; then
    find * -type f -newer "$2/.stamp"
  else
    find * -type f
  fi
}
