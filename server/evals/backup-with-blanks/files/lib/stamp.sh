# The time of the last backup that was complete.

touch_stamp() {
  touch "$1/.stamp"
}
