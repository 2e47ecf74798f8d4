#!/usr/bin/env bash
# PrettyTime's parser 5.0.7 (times in words for Java): the interval of "every friday at 5pm" is the time from now to the
# first Friday. Asked on a Wednesday evening, it recurs every two days.
#
# Guess: seven days for "every friday at 5pm" and "every monday at 8am": getRecurInterval() is the interval in
# milliseconds with which the dates recur. For "every 90 minutes" it is 90 minutes.
# Seen: for both it is the first date less the present time, whatever that is. "Every day at 8am" does not recur.
#
# Who it hurts: schedulers and reminders that add the interval to the last run: a weekly run comes every two days, or
# every hour, and each start of the program makes another schedule.
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
      <groupId>org.ocpsoft.prettytime</groupId>
      <artifactId>prettytime-nlp</artifactId>
      <version>5.0.7.Final</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=jars \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import java.util.Date;
import org.ocpsoft.prettytime.nlp.PrettyTimeParser;
import org.ocpsoft.prettytime.nlp.parse.DateGroup;

class Seen {
  static String about(double seconds, double wanted) {
    return Math.abs(seconds - wanted) < 5 ? "yes" : "no";
  }

  public static void main(String[] arguments) {
    PrettyTimeParser parser = new PrettyTimeParser();
    parser.parseSyntax("every friday");  // the first call takes a second
    for (String text : new String[] {"every friday at 5pm", "every monday at 8am", "every 90 minutes"}) {
      DateGroup group = parser.parseSyntax(text).get(0);
      double wait = (group.getDates().get(0).getTime() - new Date().getTime()) / 1000.0;
      System.out.print(group.isRecurring() + " " + about(group.getRecurInterval() / 1000.0, wait) + ", ");
      if (text.contains("friday")) {
        System.err.println("every " + group.getRecurInterval() / 3600000.0 + " hours");
      }
    }
    DateGroup group = parser.parseSyntax("every 90 minutes").get(0);
    System.out.print(about(group.getRecurInterval() / 1000.0, 5400));
  }
}
PROGRAM
seen=$(TZ=UTC java -cp "jars/*" Seen.java 2> log) || { cat log && exit 1; }
echo "PrettyTime 5.0.7, on Fridays, on Mondays and each 90 minutes, is the interval the wait for the first one: $seen"
grep '^every' log
[ "$seen" = "true yes, true yes, true yes, yes" ]
