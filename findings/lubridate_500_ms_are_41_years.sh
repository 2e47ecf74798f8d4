#!/usr/bin/env bash
# lubridate 1.9.2 (of Debian 12, times and durations for R): the text "500 ms" is 500 months and a second, which is 41
# years and eight months.
#
# Guess: half a second, for ms is how milliseconds are written everywhere, or NA, as "500 milliseconds" is.
# Seen: 1314900001 seconds. m is a month, as the documentation has it, and the s after it, which has no number, is one
# second more. "5ms" is five months.
#
# Who it hurts: timeouts and delays that are read from settings of other programs: a wait of half a second ends in 2068,
# and no warning tells it.
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
texts <- c("500 ms", "5ms", "500 milliseconds", "500 m", "1 s")
cat(format(sapply(texts, function(text) as.numeric(duration(text))), digits = 12, trim = TRUE))
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries R_LIBS=$R_HOME/site-library TZ=UTC \
  "$R_HOME/bin/exec/R" --vanilla --no-echo --file=seen.R 2> log || { cat log >&2 && exit 1; })
echo "lubridate 1.9.2, seconds of 500 ms, 5ms, 500 milliseconds, 500 m and 1 s: $seen"
[ "$seen" = "1314900001 13149001 NA 1314900000 1" ]
