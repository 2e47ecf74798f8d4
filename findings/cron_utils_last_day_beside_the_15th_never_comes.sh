#!/usr/bin/env bash
# cron-utils 9.2.1 (cron expressions for Java), the form of Quartz: "0 0 9 L,15 * ?", the last day of the month and the
# 15th, comes on the 15th only. Of "1,15W" the W counts for nothing.
#
# Guess, from 10 November 2026: 15 and 30 November, then 15 December; or an error, as there is for other values that it
# does not know. Each alone, L and 15, is right.
# Seen: 15 November, 15 December and 15 January. Its description of the days is "at -1 and 15 days". "1,15W" comes on
# Sunday, 15 November, and 15W alone on Monday the 16th.
#
# Who it hurts: pay runs and statements twice a month: the one at the end of the month is never made.
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
      <groupId>com.cronutils</groupId>
      <artifactId>cron-utils</artifactId>
      <version>9.2.1</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=jars \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import com.cronutils.descriptor.CronDescriptor;
import com.cronutils.model.Cron;
import com.cronutils.model.CronType;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

class Seen {
  public static void main(String[] arguments) {
    CronParser parser = new CronParser(CronDefinitionBuilder.instanceDefinitionFor(CronType.QUARTZ));
    for (String days : new String[] {"L,15", "L", "1,15W", "15W"}) {
      Cron cron = parser.parse("0 0 9 " + days + " * ?");
      ZonedDateTime time = ZonedDateTime.parse("2026-11-10T12:00:00Z");
      for (int number = 0; number < 3; ++number) {
        time = ExecutionTime.forCron(cron).nextExecution(time).get();
        System.out.print(time.format(DateTimeFormatter.ofPattern("d MMM ", Locale.UK)));
      }
      System.out.print("(" + CronDescriptor.instance(Locale.UK).describe(cron) + "), ");
    }
  }
}
PROGRAM
seen=$(java -cp "jars/*" Seen.java 2> log) || { cat log && exit 1; }
echo "cron-utils 9.2.1, L,15 and L, 1,15W and 15W: $seen"
[ "$seen" = "15 Nov 15 Dec 15 Jan (at 09:00 at -1 and 15 days), 30 Nov 31 Dec 31 Jan (at 09:00 last day of month), \
15 Nov 1 Dec 15 Dec (at 09:00 at 1 and 15 days), \
16 Nov 15 Dec 15 Jan (at 09:00 the nearest weekday to the 15 of the month), " ]
