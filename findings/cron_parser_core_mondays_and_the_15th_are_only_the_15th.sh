#!/usr/bin/env bash
# cron-parser-core 3.5 (net.redhogs, cron expressions in words for Java): where a day of the month and a weekday are
# given, the weekday is left out. "0 10 15 * 1" is "At 10:00 am, on day 15 of the month".
#
# Guess: both days, as "on day 15 of the month, only on Monday", for cron runs it on the 15th and on each Monday.
# Seen: only the 15th. So it is with "0 10 1,15 * 1" and with the last Friday of "0 10 15 * 5L". Without a day of the
# month the weekday is there.
#
# Who it hurts: whoever shows people their schedules in words, to check them: four or five runs a month are not told.
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
      <groupId>net.redhogs.cronparser</groupId>
      <artifactId>cron-parser-core</artifactId>
      <version>3.5</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-nop</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import net.redhogs.cronparser.CronExpressionDescriptor;

class Seen {
  public static void main(String[] arguments) throws Exception {
    for (String expression : new String[] {"0 10 15 * 1", "0 10 1,15 * 1", "0 10 15 * 5L", "0 10 * * 1"}) {
      System.out.print(CronExpressionDescriptor.getDescription(expression).replace("At 10:00 am, ", "") + "; ");
    }
  }
}
PROGRAM
seen=$(java -Duser.language=en -cp 'lib/*' Seen.java)
echo "cron-parser-core 3.5, the 15th, the 1st and 15th with Mondays, the 15th with the last Friday, Mondays: $seen"
day="of the month; "
[ "$seen" = "on day 15 ${day}on day 1 and 15 ${day}on day 15 ${day}only on Monday; " ]
