#!/usr/bin/env bash
# JobRunr 8.2.0 (background jobs for Java): "0 0 1,L * *", the first and the last day of each month, is on the 28th, the
# 29th, the 30th and the 31st, too.
#
# Guess: 30 November, 1 December, 31 December, 1 January. L alone is the last day, and 1,L is accepted.
# Seen: 28, 29 and 30 November, 1, 28, 29, 30 and 31 December, 1 January. Besides L, a weekday is not heard of any
# more: "0 0 L * MON" has the last day of each month and no Monday, and "0 0 15 * MON" has the 15th and each Monday.
#
# Who it hurts: whoever closes accounts or sends bills on both ends of the month: the closing runs up to four times,
# three of them before the month is over.
set -euo pipefail
for tool in mvn java; do
  command -v "$tool" > /dev/null || { echo "skipped: there is no $tool" && exit 77; }
done
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > pom.xml << 'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>seen</groupId>
  <artifactId>seen</artifactId>
  <version>0</version>
  <dependencies>
    <dependency>
      <groupId>org.jobrunr</groupId>
      <artifactId>jobrunr</artifactId>
      <version>8.2.0</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import java.time.Instant;
import java.time.ZoneOffset;
import org.jobrunr.scheduling.cron.CronExpression;

class Seen {
  static void days(String expression, int count) {
    var cron = new CronExpression(expression);
    var time = Instant.parse("2026-11-02T12:00:00Z");
    for (int number = 0; number < count; ++number) {
      time = cron.next(time, time, ZoneOffset.UTC);
      System.out.print(time.toString().substring(5, 10) + (number < count - 1 ? " " : ", "));
    }
  }

  public static void main(String[] arguments) {
    days("0 0 1,L * *", 9);
    days("0 0 L * *", 3);
    days("0 0 L * MON", 3);
    days("0 0 15 * MON", 3);
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java 2> log || { cat log >&2 && exit 1; })
echo "JobRunr 8.2.0, days 1,L, L, L with Monday, and 15 with Monday, from 2 November: $seen"
[ "$seen" = "11-28 11-29 11-30 12-01 12-28 12-29 12-30 12-31 01-01, 11-30 12-31 01-31, 11-30 12-31 01-31, \
11-09 11-15 11-16, " ]
