#!/usr/bin/env bash
# Horde_Date_Parser 2.0.7 (of Debian 12, times in words for PHP): "in 1.5 hours" is in fifteen hours, and "2.5 days ago"
# was 25 days ago.
#
# Guess: in 90 minutes, and sixty hours ago, or null, which the parser has for what it cannot read.
# Seen: a point in a number is left out. "in 0.5 hours" is in five. "90 minutes from now" is right, and "half an hour
# ago" is null.
#
# Who it hurts: reminders, delays and due dates that people type: ten times as late, and no word of it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 php8.2-cli php8.2-common libargon2-1 libedit2 libpcre2-8-0 libsodium23 libxml2 libicu72 \
  php-horde-date-parser=2.0.7-2 php-horde-date php-horde-exception php-horde-nls php-horde-translation \
  php-horde-support php-horde-util 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
cat > seen.php << 'PROGRAM'
<?php
error_reporting(E_ALL & ~E_DEPRECATED);
spl_autoload_register(fn($class) => require str_replace("_", "/", $class) . ".php");

$now = new Horde_Date("2026-11-30 12:00:00");
foreach (["in 1.5 hours", "in 0.5 hours", "2.5 days ago", "90 minutes from now", "half an hour ago"] as $text) {
  $time = Horde_Date_Parser::parse($text, ["now" => $now]);
  echo $time ? $time->format("d M H:i") : "null", ", ";
}
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php -d date.timezone=UTC \
  seen.php)
echo "Horde_Date_Parser 2.0.7, in 1.5 hours, in 0.5 hours, 2.5 days ago, in 90 minutes, half an hour ago: $seen"
[ "$seen" = "01 Dec 03:00, 30 Nov 17:00, 05 Nov 12:00, 30 Nov 13:30, null, " ]
