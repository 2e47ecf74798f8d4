#!/usr/bin/env bash
# nesbot/carbon 2.65.0 (of Debian 12, times and intervals for PHP): CarbonInterval::minutes(2.5) is two minutes, and
# days(0.5) is nothing. Made of the text "2.5 minutes" it is 150 seconds.
#
# Guess: 150 seconds, half a day, and ten and a half days for weeks(1.5): make() and fromString() do so.
# Seen: 120 seconds, 0, and 864000 seconds, which are ten days. No warning is given, also with strict types and with all
# errors shown. Years and months lose their fraction in texts, too: "1.5 years" is P1Y, and "0.5 months" PT0S.
#
# Who it hurts: time-outs, delays of queues and terms that are calculated, such as days(3 / 2): up to a whole unit is
# cut off, and what should wait half a day does not wait.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 php8.2-cli php8.2-common libargon2-1 libedit2 libpcre2-8-0 libsodium23 libxml2 libicu72 \
  php-nesbot-carbon=2.65.0-1+deb12u1 php-symfony-translation php-symfony-translation-contracts \
  php-symfony-deprecation-contracts php8.2-mbstring libonig5 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
extensions=$(dirname "$(find "$PWD/package" -name mbstring.so)")
cat > seen.php << 'PROGRAM'
<?php
error_reporting(E_ALL & ~E_DEPRECATED);
require "Carbon/autoload.php";
use Carbon\CarbonInterval;

foreach (["minutes" => 2.5, "hours" => 1.5, "days" => 0.5, "weeks" => 1.5] as $unit => $amount) {
  echo CarbonInterval::$unit($amount)->totalSeconds, " or ";
  echo CarbonInterval::make("$amount $unit")->totalSeconds, ", ";
}
echo CarbonInterval::fromString("1.5 years")->spec(), " ", CarbonInterval::fromString("0.5 months")->spec();
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php \
  -d extension_dir="$extensions" -d extension=mbstring -d date.timezone=UTC seen.php)
echo "carbon 2.65.0, seconds of 2.5 minutes, 1.5 hours, 0.5 days and 1.5 weeks, of numbers or texts: $seen"
[ "$seen" = "120 or 150, 3600 or 5400, 0 or 43200, 864000 or 907200, P1Y PT0S" ]
