#!/usr/bin/env bash
# parse-cron 0.1.4 (of Debian 12, crontab lines for Ruby): "0 9 * * FRI-SUN" comes on the first of each month, whatever
# weekday that is, and "0 22-2 * * *" at midnight only.
#
# Guess: Fridays, Saturdays and Sundays, as 5-7 is; and 22, 23, 0, 1 and 2 o'clock. Or an error, as "5/20" is one.
# Seen: a range that ends before it begins has nothing in it: SUN is 0. Where nothing fits, the first day of the next
# month is taken, and midnight of the next day.
#
# Who it hurts: schedulers that ask it for the next run: work for weekends is done on twelve days a year, many of them
# workdays, and a nightly job of each hour once.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-parse-cron=0.1.4-1.1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
cat > seen.rb << 'PROGRAM'
require "parse-cron"

def runs(line)
  time = Time.utc(2026, 11, 2, 12)
  3.times { print (time = CronParser.new(line).next(time)).strftime("%a %d %b %H, ") }
end
["0 9 * * FRI-SUN", "0 9 * * 5-7", "0 22-2 * * *"].each { |line| runs(line) }
PROGRAM
seen=$(TZ=UTC LD_LIBRARY_PATH=$libraries package/usr/bin/ruby3.1 --disable-gems -I package/usr/lib/ruby/vendor_ruby \
  -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "parse-cron 0.1.4, FRI-SUN, 5-7, and the hours 22-2, from Monday, 2 November: $seen"
[ "$seen" = "Tue 01 Dec 09, Fri 01 Jan 09, Mon 01 Feb 09, Fri 06 Nov 09, Sat 07 Nov 09, Sun 08 Nov 09, \
Tue 03 Nov 00, Wed 04 Nov 00, Thu 05 Nov 00, " ]
