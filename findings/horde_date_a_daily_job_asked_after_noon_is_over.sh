#!/usr/bin/env bash
# Horde_Date 2.4.1 (of Debian 12, recurring dates for PHP): a job of each day at noon has no next run when it is asked
# for one at one o'clock, on any day.
#
# Guess: noon of the next day. The documentation says that false means that there is none after the given time.
# Seen: false from 12:00:01 on of each day that has a run, and the right date before noon. Each second day, it is the
# same on the days that have one. A weekly rule, asked on its day after noon, has the next week.
#
# Who it hurts: whoever plans the next run when one is done: it is asked a little after the time of the run, and the
# series is over.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 php8.2-cli php8.2-common libargon2-1 libedit2 libpcre2-8-0 libsodium23 libxml2 libicu72 \
  php-horde-date=2.4.1-9 php-horde-exception php-horde-nls php-horde-translation 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
cat > seen.php << 'PROGRAM'
<?php
error_reporting(E_ALL & ~E_DEPRECATED);
spl_autoload_register(fn($class) => require str_replace("_", "/", $class) . ".php");

function runs($type, $interval, ...$times) {
  $rule = new Horde_Date_Recurrence("2026-11-02 12:00:00");
  $rule->setRecurType($type);
  $rule->setRecurInterval($interval);
  $rule->setRecurOnDay(Horde_Date::MASK_MONDAY);
  foreach ($times as $time) {
    $next = $rule->nextRecurrence(new Horde_Date("2026-11-$time"));
    echo $next ? $next->format("d H:i") : "none", ", ";
  }
}
runs(Horde_Date_Recurrence::RECUR_DAILY, 1, "04 11:59:00", "04 12:00:01", "05 00:00:00", "05 13:00:00");
runs(Horde_Date_Recurrence::RECUR_DAILY, 2, "04 13:00:00", "05 13:00:00");
runs(Horde_Date_Recurrence::RECUR_WEEKLY, 1, "02 13:00:00", "09 13:00:00");
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php -d date.timezone=UTC \
  seen.php)
echo "Horde_Date 2.4.1, daily from 4 November 11:59, 12:00:01, 5 November 0:00, 13:00, each second day, weekly: $seen"
[ "$seen" = "04 12:00, none, 05 12:00, none, none, 06 12:00, 09 12:00, 16 12:00, " ]
