#!/usr/bin/env bash
# RcppTOML 0.2.2 (of Debian 12, TOML for R): the number 3000000000 is -1294967296, and 4294967297 is 1.
#
# Guess: 3000000000: TOML has whole numbers of 64 bits, and R's numbers are exact up to 53 bits. Or NA, or an error.
# Seen: whole numbers are cut to 32 bits. 2147483647 is right, and -2147483648 is NA. In arrays it is the same.
# 3000000000.0 is right.
#
# Who it hurts: limits in bytes, amounts in micro-units and times since 1970 in milliseconds: a limit of 3 GB is
# negative, one of 4 GB (4294967296) is nothing, and no warning tells it.
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
text <- paste("a = 3000000000", "b = 4294967296", "c = 4294967297", "d = [1, 3000000000]", "e = 3000000000.0",
              sep = "\n")
settings <- parseTOML(text, fromFile = FALSE)
cat(sapply(c("a", "b", "c", "d", "e"), function(key) paste(settings[[key]], collapse = " ")), sep = ", ")
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries R_LIBS=$R_HOME/site-library TZ=UTC \
  "$R_HOME/bin/exec/R" --vanilla --no-echo --file=seen.R 2> log || { cat log >&2 && exit 1; })
echo "RcppTOML 0.2.2, 3000000000, 4294967296, 4294967297, [1, 3000000000] and 3000000000.0: $seen"
[ "$seen" = "-1294967296, 0, 1, 1 -1294967296, 3e+09" ]
