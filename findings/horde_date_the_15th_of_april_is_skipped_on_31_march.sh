#!/usr/bin/env bash
# Horde_Date 2.4.1 (of Debian 12, recurring dates for PHP): the 15th of each month, asked for on 31 March, is 15 May. On
# 30 March and on 1 April, it is 15 April.
#
# Guess: 15 April each time.
# Seen: on the 31st of a month before a shorter one, that month is skipped: 31 May gives 15 July, 31 August 15 October
# and 31 October 15 December. 31 January gives 15 March. On 31 July it is 15 August. The month after 31 March is taken
# to be that of 31 April, which is 1 May.
#
# Who it hurts: whoever makes the plan of the next month on the last day of a month: instalments and bills of five
# months a year are left out.
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

$rule = new Horde_Date_Recurrence("2026-01-15 12:00:00");
$rule->setRecurType(Horde_Date_Recurrence::RECUR_MONTHLY_DATE);
$rule->setRecurInterval(1);
foreach (["03-30", "03-31", "04-01", "05-31", "07-31", "08-31", "10-31"] as $day) {
  echo $rule->nextRecurrence(new Horde_Date("2026-$day 00:00:00"))->format("m-d"), ", ";
}
echo $rule->nextRecurrence(new Horde_Date("2027-01-31 00:00:00"))->format("m-d");
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php -d date.timezone=UTC \
  seen.php)
echo "Horde_Date 2.4.1, the 15th from 30, 31 March, 1 April, 31 May, 31 July, 31 August, 31 October, 31 January: $seen"
[ "$seen" = "04-15, 05-15, 04-15, 07-15, 08-15, 10-15, 12-15, 03-15" ]
