#!/usr/bin/env bash
# sabre/vobject 2.1.7 (of Debian 12, iCalendar for PHP): a weekly rule with hours and without a weekday comes every day.
# FREQ=WEEKLY;BYHOUR=8,17 from a Monday is at 8 and at 17 on Monday, Tuesday and Wednesday.
#
# Guess: two times a week, on Mondays, as RFC 5545 has it: where a rule names no weekday, it is that of the start.
# Seen: two times a day, and with INTERVAL=2 on each day of every other week. A weekly rule without hours, or with
# BYDAY=MO, is right. A monthly rule with BYHOUR=8,17 has the hour of the start only.
#
# Who it hurts: calendars of resources and on-call plans: what is weekly is expanded to seven times as much.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 php8.2-cli php8.2-common libargon2-1 libedit2 libpcre2-8-0 libsodium23 libxml2 libicu72 \
  php8.2-mbstring libonig5 php-sabre-vobject=2.1.7-6.1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
extensions=$(dirname "$(find "$PWD/package" -name mbstring.so)")
cat > seen.php << 'PROGRAM'
<?php
error_reporting(E_ALL & ~E_DEPRECATED);
require "Sabre/VObject/includes.php";

foreach (["WEEKLY;BYHOUR=8,17", "WEEKLY;INTERVAL=2;BYHOUR=8", "WEEKLY;BYDAY=MO;BYHOUR=8,17", "WEEKLY"] as $rule) {
  $lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", "DTSTART:20261102T080000Z",
            "RRULE:FREQ=$rule;COUNT=8", "END:VEVENT", "END:VCALENDAR", ""];
  $calendar = Sabre\VObject\Reader::read(implode("\r\n", $lines));
  $times = new Sabre\VObject\RecurrenceIterator($calendar, "1");
  for ($number = 0; $number < 4; ++$number, $times->next()) {
    echo $times->getDtStart()->format("D j G, ");
  }
}
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php \
  -d extension_dir="$extensions" -d extension=mbstring -d date.timezone=UTC seen.php)
echo "sabre/vobject 2.1.7, weekly with hours, every two weeks with an hour, with the weekday, and without hours: $seen"
[ "$seen" = "Mon 2 8, Mon 2 17, Tue 3 8, Tue 3 17, Mon 2 8, Tue 3 8, Wed 4 8, Thu 5 8, \
Mon 2 8, Mon 2 17, Mon 9 8, Mon 9 17, Mon 2 8, Mon 9 8, Mon 16 8, Mon 23 8, " ]
