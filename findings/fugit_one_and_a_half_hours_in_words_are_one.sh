#!/usr/bin/env bash
# fugit 1.5.2 (of Debian 12, durations and schedules for Ruby, which rufus-scheduler and Sidekiq's cron use): the words
# of a duration have no fractions. "1.5h" is "1 hours", and "0.5h" "0 hour".
#
# Guess: "1.5 hours" or "1 hour, and 30 minutes", for it has 5400 seconds, and to_plain_s() says "1.5h".
# Seen: to_long_s() says "1 hours", and "1 days" for a day and a half. to_iso_s() is PT1.5H, which the same library does
# not read: it is nil.
#
# Who it hurts: messages and bills that tell a person how long something ran or will run: up to half of it is missing.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-fugit=1.5.2-1 ruby-raabro=1.4.0-1 ruby-et-orbi=1.2.2-1 \
  ruby-tzinfo=2.0.5-1 ruby-concurrent=1.1.6+dfsg-5 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
gems=$(find "$PWD"/package/usr/share/rubygems-integration/all/gems -type d \
  \( -name lib -o -path '*/lib/concurrent-ruby' \) | paste -s -d :)
cat > seen.rb << 'PROGRAM'
require "set"
require "fugit"

%w[1.5h 0.5h 1.5d].each do |text|
  duration = Fugit.parse_duration(text)
  iso = duration.to_iso_s
  print "#{duration.to_sec.to_i} #{duration.to_long_s}, #{iso} #{Fugit.parse_duration(iso).inspect}; "
end
PROGRAM
seen=$(TZ=UTC LD_LIBRARY_PATH=$libraries RUBYLIB=$gems package/usr/bin/ruby3.1 --disable-gems \
  -I package/usr/lib/ruby/vendor_ruby -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "fugit 1.5.2, seconds, words and ISO 8601 of 1.5h, 0.5h and 1.5d: $seen"
[ "$seen" = "5400 1 hours, PT1.5H nil; 1800 0 hour, PT0.5H nil; 129600 1 days, P1.5D nil; " ]
