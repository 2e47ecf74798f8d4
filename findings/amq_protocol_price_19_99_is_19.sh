#!/usr/bin/env bash
# amq-protocol 2.3.2 (of Debian 12, AMQP 0.9.1 for Ruby, which bunny uses): a decimal in the headers of a message loses
# its fraction. 19.99 arrives as 19, and 0.19 as 0.
#
# Guess: 19.99 and 0.19: AMQP has decimals for that, a number of digits and a whole number, and BigDecimal is accepted.
# Seen: 19, 0, 100 for 100.25 and 12345678 for 12345678.90. The bytes say that there are no digits after the point. Some
# small ones happen to be right, as 0.001 is, and 0.05 is 0. The exponent of the BigDecimal, which counts from the first
# digit, is taken for the number of digits after the point.
#
# Who it hurts: whoever takes decimals for prices, rates and quantities in headers and arguments, to be exact: cents are
# gone, and what is less than one is free.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ruby3.1 libruby3.1 libgmp10 ruby-amq-protocol=2.3.2-1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
architecture=$(dirname "$(find package -name rbconfig.rb)")
gems=$(find "$PWD"/package/usr/share/rubygems-integration -type d -name lib | paste -s -d :)
cat > seen.rb << 'PROGRAM'
require "bigdecimal"
require "amq/protocol"

%w[19.99 0.19 100.25 12345678.90 0.05 0.001 5].each do |text|
  bytes = AMQ::Protocol::Table.encode("price" => BigDecimal(text))
  print "#{AMQ::Protocol::Table.decode(bytes)["price"].to_s("F")} #{bytes.bytes[-5]}, "
end
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries RUBYLIB=$gems package/usr/bin/ruby3.1 --disable-gems \
  -I package/usr/lib/ruby/vendor_ruby -I package/usr/lib/ruby/3.1.0 -I "$architecture" seen.rb)
echo "amq-protocol 2.3.2, values read and digits in the bytes, 19.99, 0.19, 100.25, 12345678.90, 0.05, 0.001, 5: $seen"
[ "$seen" = "19.0 0, 0.0 0, 100.0 0, 12345678.0 0, 0.0 2, 0.001 3, 5.0 0, " ]
