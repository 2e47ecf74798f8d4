#!/usr/bin/env bash
# fugit 1.5.2 (of Debian 12, schedules in words for Ruby, which rufus-scheduler and Sidekiq's cron use): "every day at
# 5 and 6 pm" is at five in the morning and at six in the evening. At "12 am" is noon.
#
# Guess: 17:00 and 18:00, as people mean it; and midnight, as "0 0 * * *".
# Seen: "0 5,18 * * *", and "0 12 * * *" for 12 am as for 12 pm. "12:30 am" is "30 12 * * *". "At 5 pm and 6 pm" is
# right, and so is "at midnight".
#
# Who it hurts: jobs whose schedule is a sentence of a person's: the run of the evening comes twelve hours early, and
# the nightly one at noon.
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

["5 and 6 pm", "5 pm and 6 pm", "12 am", "12 pm", "12:30 am", "midnight"].each do |hours|
  print Fugit.parse("every day at #{hours}").to_cron_s, "; "
end
PROGRAM
seen=$(TZ=UTC LD_LIBRARY_PATH=$libraries RUBYLIB=$gems package/usr/bin/ruby3.1 --disable-gems \
  -I package/usr/lib/ruby/vendor_ruby -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "fugit 1.5.2, at 5 and 6 pm, 5 pm and 6 pm, 12 am, 12 pm, 12:30 am and midnight: $seen"
[ "$seen" = "0 5,18 * * *; 0 17,18 * * *; 0 12 * * *; 0 12 * * *; 30 12 * * *; 0 0 * * *; " ]
