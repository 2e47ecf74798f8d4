#!/usr/bin/env bash
# RcppTOML 0.2.2 (of Debian 12, TOML for R): the array [1, 2.5] is 1 and 2, and [0, 0.19] is two times nothing.
#
# Guess: 1 and 2.5, and 0 and 0.19: an array of TOML 1.0 may have numbers of both kinds, and R's vectors of numbers hold
# them. Or an error.
# Seen: an array is one of whole numbers if its first number is whole, and the fractions of the others are cut off.
# [2.5, 1] and [1.0, 2.5] keep them.
#
# Who it hurts: settings with a list of rates, steps or buckets, whose first is often 0 or 1: rates become nothing,
# and no warning tells it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 r-base-core libblas3 liblapack3 libtre5 libgfortran5 libgomp1 libquadmath0 libicu72 \
  libreadline8 r-cran-rcpptoml=0.2.2+dfsg-1 r-cran-rcpp 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
export R_HOME=$work/package/usr/lib/R
ln --symbolic --force Renviron.ucf "$R_HOME/etc/Renviron"
libraries=$(find "$work/package/usr/lib" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -s -d :)
cat > seen.R << 'PROGRAM'
library(RcppTOML)
text <- paste("a = [1, 2.5]", "b = [0, 0.19, 0.99]", "c = [2.5, 1]", "d = [1.0, 2.5]", sep = "\n")
settings <- parseTOML(text, fromFile = FALSE)
cat(sapply(c("a", "b", "c", "d"), function(key) paste(settings[[key]], collapse = " ")), sep = ", ")
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries R_LIBS=$R_HOME/site-library TZ=UTC \
  "$R_HOME/bin/exec/R" --vanilla --no-echo --file=seen.R 2> log || { cat log >&2 && exit 1; })
echo "RcppTOML 0.2.2, [1, 2.5], [0, 0.19, 0.99], [2.5, 1] and [1.0, 2.5]: $seen"
[ "$seen" = "1 2, 0 0 0, 2.5 1, 1 2.5" ]
