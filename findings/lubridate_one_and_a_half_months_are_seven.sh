#!/usr/bin/env bash
# lubridate 1.9.2 (of Debian 12, times and durations for R): the text "1.5 months" is 213 days, and "0.5 months" is half
# a year. 1.5 as a number of months is 45.7 days.
#
# Guess: 45.66 days both times: duration("1 month") is 30.44 days, and the documentation has fractions in texts, such as
# "1.5 hours", which is 90 minutes.
# Seen: the whole part counts as months, and the fraction as one of a year. "2.5 months" are 243.5 days. Weeks, days,
# hours and minutes are right. period() does the same.
#
# Who it hurts: retentions, lock times and instalments that are given in words: a month and a half ends seven months
# later, and two months end before it.
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
texts <- c("0.5 months", "1 month", "1.5 months", "2 months", "2.5 months", "1.5 weeks", "1.5 hours")
days <- c(sapply(texts, function(text) duration(text) / ddays(1)), duration(1.5, "months") / ddays(1))
cat(format(round(days, 2), trim = TRUE))
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries R_LIBS=$R_HOME/site-library TZ=UTC \
  "$R_HOME/bin/exec/R" --vanilla --no-echo --file=seen.R 2> log || { cat log >&2 && exit 1; })
echo "lubridate 1.9.2, days of 0.5, 1, 1.5, 2 and 2.5 months, 1.5 weeks, 1.5 hours, and 1.5 as a number: $seen"
[ "$seen" = "182.62 30.44 213.06 60.88 243.50 10.50 0.06 45.66" ]
