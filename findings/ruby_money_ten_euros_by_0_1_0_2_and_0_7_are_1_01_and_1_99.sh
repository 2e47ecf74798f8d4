#!/usr/bin/env bash
# money 6.16.0 (of Debian 12, amounts for Ruby): of ten euros that are shared by 0.1, 0.2 and 0.7, the first gets 1.01
# and the second 1.99.
#
# Guess: 1.00, 2.00 and 7.00. There is nothing left over, so nobody gets a cent more than his share.
# Seen: 101, 199 and 700 cents. The sum of 0.1, 0.2 and 0.7 is 0.9999999999999999, and 0.2 of it is cut to 199. The cent
# goes to the first, whose share is exact. By 10, 20 and 70, or by shares that are BigDecimal, it is 100, 200 and 700.
#
# Who it hurts: commissions and splits by fractions: whoever comes first gets a cent of the next, each time, and the sum
# is right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-money=6.16.0-1 ruby-i18n=1.10.0-2 \
  ruby-concurrent=1.1.6+dfsg-5 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
gems=$(find "$PWD"/package/usr/share/rubygems-integration/all/gems -type d \
  \( -name lib -o -path '*/lib/concurrent-ruby' \) | paste -s -d :)
cat > seen.rb << 'PROGRAM'
require "set"
require "money"

Money.rounding_mode = BigDecimal::ROUND_HALF_UP
exact = %w[0.1 0.2 0.7].map { |share| BigDecimal(share) }
[[0.1, 0.2, 0.7], [10, 20, 70], exact].each do |shares|
  print Money.new(1000, "EUR").allocate(shares).map(&:cents).join(" "), "; "
end
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries RUBYLIB=$gems package/usr/bin/ruby3.1 --disable-gems -W0 \
  -I package/usr/lib/ruby/vendor_ruby -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "money 6.16.0, cents of ten euros by 0.1, 0.2 and 0.7, by 10, 20 and 70, and by decimals: $seen"
[ "$seen" = "101 199 700; 100 200 700; 100 200 700; " ]
