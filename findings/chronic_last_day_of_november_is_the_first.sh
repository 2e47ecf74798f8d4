#!/usr/bin/env bash
# chronic 0.10.5 (of GitLab, in Debian 12, times in words for Ruby): "last day of november" is 1 November, and "last
# friday of november" the first Friday. "Last day of the month" is the first day of the month before.
#
# Guess, asked on 20 October 2026: 30 November, 27 November and 31 October of 2026; or nil, as for words that it does
# not understand: "first monday of december" is nil.
# Seen: 1 November 2025, 7 November 2025, which is the first Friday, and 1 September 2026. "Last" goes back to the
# November or the month before, and of that the first day is taken, in each year and month that was tried.
#
# Who it hurts: programs that take due dates and terms as people write them: the date is past already, and the job runs
# at once or the invoice is overdue when it is made.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-chronic=0.10.5-2 ruby-numerizer=0.2.0-2 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
gems=$(find "$PWD"/package/usr/share/rubygems-integration/all/gems -type d -name lib | paste -s -d :)
cat > seen.rb << 'PROGRAM'
require "chronic"

["last day of november", "last friday of november", "last day of the month", "first monday of december"].each do |text|
  time = Chronic.parse(text, now: Time.utc(2026, 10, 20, 12))
  print time ? time.strftime("%a %d %b %Y, ") : "nil"
end
PROGRAM
seen=$(TZ=UTC LD_LIBRARY_PATH=$libraries RUBYLIB=$gems package/usr/bin/ruby3.1 --disable-gems \
  -I package/usr/lib/ruby/vendor_ruby -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "chronic 0.10.5, asked on 20 October 2026: $seen"
[ "$seen" = "Sat 01 Nov 2025, Fri 07 Nov 2025, Tue 01 Sep 2026, nil" ]
