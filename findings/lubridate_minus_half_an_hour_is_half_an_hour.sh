#!/usr/bin/env bash
# lubridate 1.9.2 (of Debian 12, times and durations for R): hms("-01:30:00") is minus half an hour, and
# hms("-00:30:00") is half an hour that is not minus.
#
# Guess: -5400 and -1800 seconds. A negative time is not refused: it is parsed, and an hour less is -3600.
# Seen: -1800 and 1800. The sign is that of the first number alone, and a 0 has none. hm() and ms() do the same:
# hm("-1:30") is -30 minutes, and ms("-1:30") is -30 seconds.
#
# Who it hurts: balances of working time and corrections of usage, which are written as -01:30:00 by other programs: an
# hour is missing, and less than an hour changes sides.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 r-base-core libblas3 liblapack3 libtre5 libgfortran5 libgomp1 libquadmath0 libicu72 \
  libreadline8 r-cran-lubridate=1.9.2+dfsg-1 r-cran-generics r-cran-timechange 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
export R_HOME=$work/package/usr/lib/R
ln --symbolic --force Renviron.ucf "$R_HOME/etc/Renviron"
libraries=$(find "$work/package/usr/lib" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -s -d :)
cat > seen.R << 'PROGRAM'
suppressMessages(library(lubridate))
seconds <- period_to_seconds
cat(seconds(hms(c("01:30:00", "-01:00:00", "-01:30:00", "-00:30:00"))), seconds(hm("-1:30")), seconds(ms("-1:30")))
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries R_LIBS=$R_HOME/site-library TZ=UTC \
  "$R_HOME/bin/exec/R" --vanilla --no-echo --file=seen.R 2> log || { cat log >&2 && exit 1; })
echo "lubridate 1.9.2, seconds of 01:30:00, -01:00:00, -01:30:00, -00:30:00, hm -1:30 and ms -1:30: $seen"
[ "$seen" = "5400 -3600 -1800 1800 -1800 -30" ]
