#!/usr/bin/env bash
# resilience4j 2.3.0 (retries for Java): waits that begin with 10 ms and grow by 5 per cent each time stay at 10 ms.
#
# Guess: 10, 10, 11, and so on, about 25 ms at the 20th attempt, 109 at the 50th and 1252 at the 100th.
# Seen: 10 at the 100th attempt, too. Each wait is cut off to whole milliseconds before the next is made of it, and 10.5
# is 10 again. 3 ms with a factor of 1.3 stay 3, and 1 ms with 1.5 stays 1. 100 ms that grow by 5 per cent grow, but the
# 20th is 239 in place of 252.
#
# Who it hurts: whoever begins with a short wait so that a lock or a queue is tried again soon: the calls never become
# fewer, however long the other side is down.
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
      <groupId>io.github.resilience4j</groupId>
      <artifactId>resilience4j-core</artifactId>
      <version>2.3.0</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import io.github.resilience4j.core.IntervalFunction;

class Seen {
  static void waits(IntervalFunction wait) {
    for (int attempt : new int[] {1, 2, 20, 100}) {
      System.out.print(wait.apply(attempt) + (attempt < 100 ? " " : ", "));
    }
  }

  public static void main(String[] arguments) {
    waits(IntervalFunction.ofExponentialBackoff(10, 1.05));
    waits(IntervalFunction.ofExponentialBackoff(3, 1.3));
    waits(IntervalFunction.ofExponentialBackoff(1, 1.5));
    waits(IntervalFunction.ofExponentialBackoff(100, 1.05));
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java 2> log || { cat log >&2 && exit 1; })
echo "resilience4j 2.3.0, waits 1, 2, 20 and 100 of 10 ms * 1.05, 3 * 1.3, 1 * 1.5 and 100 * 1.05: $seen"
[ "$seen" = "10 10 10 10, 3 3 3 3, 1 1 1 1, 100 105 239 11409, " ]
