#!/usr/bin/env bash
# inifile 1.0 (of Debian 12, configuration files for Lua): of "max-age = 60" and "retry.limit = 5" nothing is read, and
# when the file is saved again they are gone.
#
# Guess: 60 and 5; sections may be called [other-part] and [part.two]. Or an error.
# Seen: a key has letters, digits and underscores. A line with any other key, one that begins with a space, and one with
# no value, as "note =", is skipped, and nothing is said.
#
# Who it hurts: programs that change one value in the file of another and save it: the other's limits and times are back
# at their defaults.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 lua5.4 lua-inifile=1.0-3 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
printf '[queue]\nname=mail\nmax-age=60\nretry.limit=5\n  lease=9\n[other-part]\nmax_jobs=7\n' > queue.ini
cat > seen.lua << 'PROGRAM'
local inifile = require "inifile"
local settings = inifile.parse("queue.ini")
inifile.save("queue.ini", settings)
local queue = settings.queue
print(queue.name, queue["max-age"], queue["retry.limit"], queue.lease, settings["other-part"].max_jobs)
PROGRAM
seen=$(LUA_PATH="package/usr/share/lua/5.4/?.lua" package/usr/bin/lua5.4 seen.lua | tr '\t' ' ')
seen="$seen, $(grep . queue.ini | paste -s -d ' ')"
echo "inifile 1.0, name, max-age, retry.limit, lease and max_jobs, and the file saved again: $seen"
[ "$seen" = "mail nil nil nil 7, [queue] name=mail [other-part] max_jobs=7" ]
