#!/usr/bin/env bash
# skedule 0.4.0 (schedules in words for Java): "every 2 hours from 18:00 to 23:00" also comes at 00:00.
#
# Guess: 18:00, 20:00 and 22:00, and then 18:00 of the next day.
# Seen: midnight follows 22:00. Whatever is a step after the last run, and past midnight, counts as before the end:
# "every 45 minutes from 22:00 to 23:30" comes at 00:15. With an end of 21:00 the window is kept.
#
# Who it hurts: jobs that may run in the evening only, before a backup or the close of the day: one run comes after it,
# and belongs to the next day.
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
  public static void main(String[] arguments) {
    for (String words : new String[] {
        "2 hours from 18:00 to 23:00", "45 minutes from 22:00 to 23:30", "2 hours from 18:00 to 21:00"}) {
      var runs = Schedule.parse("every " + words).iterate(ZonedDateTime.parse("2026-11-02T12:00:00Z"));
      for (int run = 0; run < 5; run++) {
        System.out.print(runs.next().toLocalTime() + " ");
      }
      System.out.print("; ");
    }
  }
}
PROGRAM
seen=$(java -cp skedule-0.4.0-kalvanized.jar Seen.java)
echo "skedule 0.4.0: $seen"
[ "$seen" = "18:00 20:00 22:00 00:00 18:00 ; 22:00 22:45 23:30 00:15 22:00 ; 18:00 20:00 18:00 20:00 18:00 ; " ]
