#!/usr/bin/env bash
# dragonmantank/cron-expression 3.3.1 (of Debian 12, crontab lines for PHP, which Laravel's scheduler uses):
# "0 0 * * FRI-SUN" comes on Fridays and Saturdays. The Sunday is lost.
#
# Guess: Friday, Saturday and Sunday, as 5-7 is in the same library; or an error.
# Seen: Friday and Saturday of each week. SUN is 0, and of the range from 5 to 0 it makes the days from 5 on. SAT-SUN is
# each Saturday only, and FRI-MON no day at all. 5-7 and FRI,SAT,SUN have all three.
#
# Who it hurts: jobs for weekends: half of the weekend, or a third of it, they never run, and isValidExpression() says
# that the line is right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 php8.2-cli php8.2-common libargon2-1 libedit2 libpcre2-8-0 libsodium23 libxml2 libicu72 \
  php-dragonmantank-cron-expression=3.3.1-2 php-webmozart-assert=1.11.0-1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
extensions=$(dirname "$(find "$PWD/package" -name ctype.so)")
cat > seen.php << 'PROGRAM'
<?php
error_reporting(E_ALL & ~E_DEPRECATED);
require "Cron/autoload.php";

foreach (["FRI-SUN", "SAT-SUN", "5-7", "FRI,SAT,SUN", "FRI-MON"] as $days) {
  $line = "0 0 * * $days";
  echo Cron\CronExpression::isValidExpression($line) ? "valid" : "invalid";
  foreach ((new Cron\CronExpression($line))->getMultipleRunDates(4, new DateTime("2026-11-12")) as $date) {
    echo " ", $date->format("D");
  }
  echo "; ";
}
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php \
  -d extension_dir="$extensions" -d extension=ctype -d date.timezone=UTC seen.php)
echo "cron-expression 3.3.1, FRI-SUN, SAT-SUN, 5-7, FRI,SAT,SUN and FRI-MON: $seen"
[ "$seen" = "valid Fri Sat Fri Sat; valid Sat Sat Sat Sat; valid Fri Sat Sun Fri; valid Fri Sat Sun Fri; \
valid; " ]
