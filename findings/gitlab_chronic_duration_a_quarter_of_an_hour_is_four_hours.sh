#!/usr/bin/env bash
# gitlab-chronic-duration 0.10.6.2 (of Debian 12, durations in words for Ruby): "a quarter of an hour" is four hours,
# and "half an hour" is an hour. "An hour and a half" is an hour and two seconds.
#
# Guess: 900, 1800 and 5400 seconds, or nothing for words that it does not know: "one and a half hours" is 5400.
# Seen: 14400, 3600 and 3602. A quarter becomes 1/4, of which the last digit stands before the hour. A digit without a
# unit after it counts as seconds, and the word "half" alone is skipped. With raise_exceptions they are errors.
#
# Who it hurts: time that people enter as they say it, for a bill or for the length of a job: it is doubled or more, or
# a third is lost, and no error tells.
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

texts = ["a quarter of an hour", "half an hour", "an hour and a half", "one and a half hours"]
print texts.map { |text| ChronicDuration.parse(text).to_i }.join(" ")
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/ruby3.1 --disable-gems -I package/usr/lib/ruby/vendor_ruby \
  -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "gitlab-chronic-duration 0.10.6.2, seconds of a quarter, a half and twice one and a half hours: $seen"
[ "$seen" = "14400 3600 3602 5400" ]
