# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash disable=SC2154  # the script that sources this sets $daemons
# Named programs that stay in the background after the script that started them has ended. Sourced,
# after say.sh, by a script that sets `daemons` to a folder with these files of each program:
#
#   NAME.pid   its pid and its start time, which together are unique; missing: the program is stopped
#   NAME.log   its output; NAME.log.1 is the output of the previous start

daemon_log() { echo "$daemons/$1.log"; }

# When process $1 was started, in clock ticks since the boot. Fails when the process is gone.
start_time() {
  local stat fields
  { stat=$(< "/proc/$1/stat"); } 2> /dev/null || return 1
  read -ra fields <<< "${stat##*) }"  # the program's name, before it, may contain blanks
  [ "${fields[0]}" != Z ] && echo "${fields[19]}"
}

# Whether the program was started and not stopped since. It may have died.
daemon_is_wanted() { [ -f "$daemons/$1.pid" ]; }

daemon_runs() {
  local pid started now
  daemon_is_wanted "$1" && read -r pid started < "$daemons/$1.pid" &&
    now=$(start_time "$pid") && [ "$now" = "$started" ]
}

# Starts a command as $1, in its own session: a signal that stops this script does not stop it.
daemon_start() {
  local name=$1 log
  shift
  log=$(daemon_log "$name")
  [ ! -f "$log" ] || mv "$log" "$log.1"
  : > "$log"  # a reader may be faster than the program
  setsid "$@" < /dev/null > "$log" 2>&1 9>&- &
  echo "$! $(start_time $!)" > "$daemons/$name.pid"
}

# Whether the program's last report says that it is ready. nats-server reports it once.
daemon_ready() {
  local said
  daemon_runs "$1" || return 1
  said=$(grep -Eo 'msg=ready|msg="not ready|Server is ready' "$(daemon_log "$1")" | tail -n 1)
  [ -n "$said" ] && [ "$said" != 'msg="not ready' ]
}

# Waits until the program is ready. Fails when it ends, or is not ready within $2 seconds.
daemon_await() {
  local end=$((SECONDS + $2))
  until daemon_ready "$1"; do
    daemon_runs "$1" && [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# Asks all programs named after $1 to end, and waits for them. Fails with the name of a program that
# does not end within $1 seconds.
daemons_stop() {
  local end=$((SECONDS + $1)) name pid rest
  shift
  for name in "$@"; do
    ! daemon_runs "$name" || { read -r pid rest < "$daemons/$name.pid" && kill "$pid"; }
  done
  for name in "$@"; do
    while daemon_runs "$name"; do
      [ "$SECONDS" -lt "$end" ] || fail "$name does not end; its log is $(daemon_log "$name")"
      sleep 0.1
    done
    rm -f "$daemons/$name.pid"
  done
}

# Kills the program, and does not wait for its end.
daemon_kill() {
  local pid rest
  ! daemon_runs "$1" || { read -r pid rest < "$daemons/$1.pid" && kill -9 "$pid"; }
  rm -f "$daemons/$1.pid"
}
