#!/usr/bin/env bash
# ice_cube 0.16.4 (of Debian 12, recurring dates for Ruby): of the rule "the last working day of each month", in the
# words of iCalendar, it makes each working day. BYSETPOS is dropped and nothing is said.
#
# Guess: 27 February, 31 March, 30 April and 29 May 2026; or an error, as there is for a part that is not known.
# Seen: FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1 gives 2, 3, 4 and 5 February, and to_ical() of what was read has
# BYSETPOS no more. BYEASTER=1 is an error.
#
# Who it hurts: calendars and billing plans that are read from other programs: what is due once a month comes on each
# working day.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-ice-cube=0.16.4-3 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
cat > seen.rb << 'PROGRAM'
require "date"
require "ice_cube"

rule = "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=4"
schedule = IceCube::Schedule.from_ical("DTSTART:20260131T090000Z\nRRULE:#{rule}")
print schedule.all_occurrences.map { |time| time.strftime("%d %b, ") }.join, IceCube::Rule.from_ical(rule).to_ical
begin
  IceCube::Rule.from_ical("FREQ=YEARLY;BYEASTER=1")
rescue StandardError => error
  print ", ", error.class
end
PROGRAM
seen=$(TZ=UTC LD_LIBRARY_PATH=$libraries package/usr/bin/ruby3.1 --disable-gems \
  -I package/usr/share/rubygems-integration/all/gems/ice_cube-0.16.4/lib \
  -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "ice_cube 0.16.4, four last working days and the rule: $seen"
[ "$seen" = "02 Feb, 03 Feb, 04 Feb, 05 Feb, FREQ=MONTHLY;COUNT=4;BYDAY=MO,TU,WE,TH,FR, ArgumentError" ]
