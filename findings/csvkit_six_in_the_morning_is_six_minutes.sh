#!/usr/bin/env bash
# csvkit 2.2.0 (CSV on the command line, of Python): a column of times of the day is taken for durations of minutes and
# seconds, and written as such. A shift that starts at 6:00 starts at 0:06:00.
#
# Guess: 6:00 and 14:30, as they stand, for csvsort only puts lines in order; or 6:00:00.
# Seen: 0:06:00 and 0:14:30, and so csvjson has it. 6:00:00 with seconds stays. With --no-inference all stays.
#
# Who it hurts: whoever sorts or joins tables of opening hours, shifts or readings by the clock: they are a sixtieth of
# what they were, and still look like times.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check csvkit==2.2.0
cat > "$work/seen.csv" << 'CSV'
shift,start,end
late,14:30,23:00:00
early,6:00,14:30:00
CSV
sorted() { "$work/venv/bin/csvsort" --columns shift "$@" "$work/seen.csv" | paste --serial --delimiters=' '; }
seen="$(sorted); $(sorted --no-inference)"
echo "csvkit 2.2.0, csvsort plain and with --no-inference: $seen"
early="shift,start,end early"
[ "$seen" = "$early,0:06:00,14:30:00 late,0:14:30,23:00:00; $early,6:00,14:30:00 late,14:30,23:00:00" ]
