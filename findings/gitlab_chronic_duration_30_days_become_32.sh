#!/usr/bin/env bash
# gitlab-chronic-duration 0.10.6.2 (of Debian 12, durations in words for Ruby): with weeks, 30 days are written as
# "1 mo 2 days", which it reads as 32 days. A year comes back as 391 days.
#
# Guess: what output() writes is what parse() reads, as it is without weeks, and a month has the 30 days of
# days_per_month.
# Seen: with weeks: true a month that is written has four weeks, and a month that is read has 30 days. 28 days come back
# as 30, 90 as 96, and 365 days are "13 mos 1 day", 391 days.
#
# Who it hurts: estimates and budgets of time that are kept or sent as text: each month gains two days, every time that
# the text is read and written again.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 \
  ruby-chronic-duration=0.10.6.2-2 ruby-numerizer=0.2.0-2 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
cat > seen.rb << 'PROGRAM'
require "gitlab_chronic_duration"

[true, false].each do |weeks|
  [28, 30, 90, 365].each do |days|
    text = ChronicDuration.output(days * 86400, weeks: weeks)
    print days, " ", text, " ", ChronicDuration.parse(text) / 86400, "; "
  end
end
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/ruby3.1 --disable-gems -I package/usr/lib/ruby/vendor_ruby \
  -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "gitlab-chronic-duration 0.10.6.2, days, their text and its days, with weeks and without: $seen"
[ "$seen" = "28 1 mo 30; 30 1 mo 2 days 32; 90 3 mos 6 days 96; 365 13 mos 1 day 391; \
28 28 days 28; 30 1 mo 30; 90 3 mos 90; 365 12 mos 5 days 365; " ]
