#!/usr/bin/env bash
# parse-cron 0.1.4 (of Debian 12, crontab lines for Ruby): "0 0 31 * *" comes twelve times a year: where a month has no
# 31st, on the first of the next one. "0 0 29 2 *" comes on 1 February in each year without a leap day.
#
# Guess: seven times a year, and 29 February 2028, then 29 February 2032, as crontab(5) has it.
# Seen: after 31 January it is 1 February, then 31 March, 1 April, 31 May, 1 June and so on. After 29 February 2028 it
# is 1 February of 2029, 2030 and 2031, four weeks early. With "0 0 30 * *" it is 1 February, once.
#
# Who it hurts: schedulers that ask it for the next run: what closes or bills a month runs a second time on the day
# after, five times a year.
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

def days(line, times)
  time = Time.utc(2027, 12, 31, 12)
  times.times do
    time = CronParser.new(line).next(time)
    print time.strftime("%d %b, ")
  end
end
days("0 0 31 * *", 12)
days("0 0 30 * *", 3)
days("0 0 29 2 *", 4)
PROGRAM
seen=$(TZ=UTC LD_LIBRARY_PATH=$libraries package/usr/bin/ruby3.1 --disable-gems -I package/usr/lib/ruby/vendor_ruby \
  -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "parse-cron 0.1.4, the days 31, 30 and 29 February from the end of 2027: $seen"
[ "$seen" = "31 Jan, 01 Feb, 31 Mar, 01 Apr, 31 May, 01 Jun, 31 Jul, 31 Aug, 01 Sep, 31 Oct, 01 Nov, 31 Dec, \
30 Jan, 01 Feb, 30 Mar, 29 Feb, 01 Feb, 01 Feb, 01 Feb, " ]
