#!/usr/bin/env bash
# skedule 0.4.0 (schedules in words for Java): "1 of jan,apr,jul,oct 00:00", asked in February or March, comes on
# 1 July. 1 April is left out.
#
# Guess: 1 April, for it is the next day that the words name. They are an example of the documentation.
# Seen: from noon of 1 February to 30 March it is 1 July, and from 15 January 1 April. It goes to the same day of the
# next month that fits, and is past the first by then. "1st monday of sep,oct,nov 17:00" from 15 August is in October.
#
# Who it hurts: whoever starts a service between two quarters: its next run for quarterly invoices or reports is three
# months late.
set -euo pipefail
for tool in mvn java; do
  command -v "$tool" > /dev/null || { echo "skipped: there is no $tool" && exit 77; }
done
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -DoutputDirectory=. \
  -Dartifact=com.github.shyiko.skedule:skedule:0.4.0:jar:kalvanized > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import com.github.shyiko.skedule.Schedule;
import java.time.ZonedDateTime;

class Seen {
  static void next(String words, String day) {
    System.out.print(Schedule.parse(words).next(ZonedDateTime.parse(day + "T12:00:00Z")).toLocalDate() + " ");
  }

  public static void main(String[] arguments) {
    for (String day : new String[] {"2026-01-15", "2026-02-01", "2026-03-15", "2026-03-30"}) {
      next("1 of jan,apr,jul,oct 00:00", day);
    }
    next("1st monday of sep,oct,nov 17:00", "2026-08-15");
  }
}
PROGRAM
seen=$(java -cp skedule-0.4.0-kalvanized.jar Seen.java)
echo "skedule 0.4.0: $seen"
[ "$seen" = "2026-04-01 2026-07-01 2026-07-01 2026-07-01 2026-10-05 " ]
