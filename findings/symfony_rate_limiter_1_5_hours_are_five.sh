#!/usr/bin/env bash
# symfony/rate-limiter 5.4 (of Debian 12, rate limits for PHP): an interval of "1.5 hours" is five hours, and "0.5
# minutes" are five minutes.
#
# Guess: 5400 seconds and 30; or an error, as there is for "half an hour" and for PT1H30M.
# Seen: 18000 and 300 seconds until the next one, in fixed windows and in token buckets. Of the number only the digits
# after the point count. "90 minutes" and "1 hour 30 minutes" are right.
#
# Who it hurts: services whose limits are in a configuration file: a customer who has used up the limit waits for hours
# longer than it says, or with "2.1 hours" for one only.
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

foreach (["1.5 hours", "0.5 minutes", "2.1 hours", "90 minutes", "1 hour 30 minutes", "half an hour"] as $interval) {
  try {
    $rule = ["id" => "id", "policy" => "fixed_window", "limit" => 1, "interval" => $interval];
    $limiter = (new RateLimiterFactory($rule, new InMemoryStorage()))->create();
    $limiter->consume();
    echo round($limiter->consume()->getRetryAfter()->getTimestamp() - microtime(true), -1), " ";
  } catch (Exception $error) {
    echo (new ReflectionClass($error))->getShortName();
  }
}
PROGRAM
seen=$(LD_LIBRARY_PATH=$libraries package/usr/bin/php8.2 -n -d include_path=package/usr/share/php seen.php)
echo "rate-limiter 5.4, 1.5 hours, 0.5 minutes, 2.1 hours, 90 minutes, 1 hour 30 minutes and half an hour: $seen"
[ "$seen" = "18000 300 3600 5400 5400 LogicException" ]
