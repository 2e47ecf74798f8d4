#!/usr/bin/env bash
# iso8601 0.13.0 (of Debian 12, times and durations for Ruby): of a second it keeps one digit. 10:30:15.25 is
# "10:30:15.3", 15.04 is 15, and 10:30:59.96 is an error, for it would be 10:30:60.
#
# Guess: 15.25, 15.04 and 59.96, as they were read: the standard gives the fraction as many digits as are wanted.
# Seen: second() and to_s() are rounded to a tenth, to_f() and == have the rest. What to_s() wrote is not equal to the
# time. From 59.95 on, no time is read at all: RangeError, "out of range".
#
# Who it hurts: times in milliseconds from logs and messages: their order within a tenth of a second is lost once they
# are written again, and of each 1200 one is refused, so a test seldom shows it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-iso8601=0.13.0-1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
cat > seen.rb << 'PROGRAM'
require "iso8601"

%w[15.25 15.04 59.94 59.96].each do |seconds|
  begin
    time = ISO8601::DateTime.new("2026-11-30T10:30:#{seconds}Z")
    print time, " ", time == ISO8601::DateTime.new(time.to_s), ", "
  rescue StandardError => error
    print error.class
  end
end
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/ruby3.1 --disable-gems -I package/usr/lib/ruby/vendor_ruby \
  -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "iso8601 0.13.0, 10:30 and 15.25, 15.04, 59.94 and 59.96 seconds, and are they equal once written: $seen"
[ "$seen" = "2026-11-30T10:30:15.3+00:00 false, 2026-11-30T10:30:15+00:00 false, 2026-11-30T10:30:59.9+00:00 false, \
ISO8601::Errors::RangeError" ]
