#!/usr/bin/env bash
# pgjdbc 42.7.8 (PostgreSQL's driver for Java): a PGInterval of "2 weeks 3 days" has three days, and one of "1 week" is
# nothing. A year and two months in the server's style sql_standard, 1-2, are nothing, too.
#
# Guess: 17 days, 7 days, and a year with two months, as the server itself reads these texts. Or an error, which
# "1.5 hours" is.
# Seen: a word that the class does not know is skipped together with its number. It knows years, months, days, hours,
# minutes and seconds. P1W of ISO 8601 is nothing, too, and "1-2 3 4:05:06" keeps the hours, minutes and seconds only.
#
# Who it hurts: leases, retentions and billing periods that are configured in words and bound to a statement as an
# interval: the row is stored with less, and a period of nothing is over at once.
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
      <groupId>org.postgresql</groupId>
      <artifactId>postgresql</artifactId>
      <version>42.7.8</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import org.postgresql.util.PGInterval;

class Seen {
  public static void main(String[] arguments) throws Exception {
    for (String text : new String[] {"2 weeks 3 days", "1 week", "P1W", "1-2", "1-2 3 4:05:06", "3 days 04:05:06"}) {
      var interval = new PGInterval(text);
      System.out.print(interval.getYears() + "-" + interval.getMonths() + " " + interval.getDays() + " "
          + interval.getHours() + ":" + interval.getMinutes() + ":" + interval.getWholeSeconds() + ", ");
    }
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java)
echo "pgjdbc 42.7.8, 2 weeks 3 days, 1 week, P1W, 1-2, 1-2 3 4:05:06 and 3 days 04:05:06: $seen"
[ "$seen" = "0-0 3 0:0:0, 0-0 0 0:0:0, 0-0 0 0:0:0, 0-0 0 0:0:0, 0-0 0 4:5:6, 0-0 3 4:5:6, " ]
