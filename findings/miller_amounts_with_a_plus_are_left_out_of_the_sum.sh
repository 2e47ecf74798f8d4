#!/usr/bin/env bash
# Miller 6.6.0 (of Debian 12, CSV and JSON Lines on the command line): an amount with a plus is a text. Of +5.00, +12.00
# and -3.00 the sum is -3, and the largest is +5.00.
#
# Guess: 14 and +12.00, or an error. In an expression, +5 + 1 is 6.
# Seen: from a file, +5.00 is a string. stats1 leaves it out of the sum and the mean and still counts it, of the largest
# it compares the letters, and there is no amount over ten. Nothing is said, and the exit code is 0.
#
# Who it hurts: statements of banks and lists of corrections that write a plus before what comes in: the totals have
# only what goes out.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 miller=6.6.0-2+b3 2> /dev/null
dpkg-deb --extract miller_*.deb package
mlr=package/usr/bin/mlr
printf 'amount\n+5.00\n+12.00\n-3.00\n' > amounts.csv
expression=$("$mlr" -n put "end {print +5 + 1}")
numbers=$("$mlr" --icsv --onidx --ofs " " stats1 -a sum,mean,max,count -f amount amounts.csv)
large=$("$mlr" --icsv --onidx filter "\$amount > 10" "then" count amounts.csv)
seen="$expression; $numbers; $large"
echo "Miller 6.6.0, +5 + 1; sum, mean, largest and count of three amounts; amounts over ten: $seen"
[ "$seen" = "6; -3 -3 +5.00 3; 0" ]
