#!/usr/bin/env bash
# symfony/rate-limiter 5.4 (of Debian 12, rate limits for PHP): with fixed windows, any number of reservations get the
# same next window. Of two in ten seconds, seven are to wait 0, 0, 10, 10, 10, 10 and 10 seconds.
#
# Guess: 0, 0, 10, 10, 20, 20 and 30 seconds, two in each window, as the token bucket of the same package gives times
# that follow each other: 0, 0, 5, 10, 15, 20 and 25 seconds for one in five seconds.
# Seen: all five that are too many are told the beginning of the next window. What is reserved there is not counted in
# that window either: when it has begun, two more are accepted at once.
#
# Who it hurts: workers that reserve and sleep as told, to keep to the limit of another service: all of them wake in the
# same second, and it sees seven where two are allowed.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 php8.2-cli php8.2-common libargon2-1 libedit2 libpcre2-8-0 libsodium23 libxml2 libicu72 \
  php-symfony-rate-limiter=5.4.53+dfsg-0+deb12u1 php-symfony-lock php-symfony-options-resolver php-psr-log \
  php-symfony-deprecation-contracts 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
cat > seen.php << 'PROGRAM'
<?php
require "Symfony/Component/RateLimiter/autoload.php";

use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\InMemoryStorage;

function limiter(array $rule) {
  return (new RateLimiterFactory(["id" => "id", "limit" => 2] + $rule, new InMemoryStorage()))->create();
}

function waits($limiter) {
  for ($number = 0; $number < 7; ++$number) {
    echo round($limiter->reserve()->getWaitDuration()), " ";
  }
}
waits(limiter(["policy" => "fixed_window", "interval" => "10 seconds"]));
waits(limiter(["policy" => "token_bucket", "rate" => ["interval" => "5 seconds", "amount" => 1]]));

$limiter = limiter(["policy" => "fixed_window", "interval" => "2 seconds"]);
waits($limiter);
sleep(3);
for ($number = 0; $number < 3; ++$number) {
  echo $limiter->consume()->isAccepted() ? "accepted " : "refused ";
}
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php seen.php)
echo "rate-limiter 5.4, seconds to wait in fixed windows and in a token bucket; two a second long: $seen"
[ "$seen" = "0 0 10 10 10 10 10 0 0 5 10 15 20 25 0 0 2 2 2 2 2 accepted accepted refused " ]
