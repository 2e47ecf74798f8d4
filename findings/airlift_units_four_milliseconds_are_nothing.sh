#!/usr/bin/env bash
# airlift units 1.10 (durations of configurations for Java, as in Trino): four milliseconds as 0.004s are "0.00s" in
# JSON, and come back as nothing.
#
# Guess: what is written is read back as the same duration: 0.004s.
# Seen: 0.00s and 0 milliseconds. Two decimals are written in the unit that the duration has, whatever it is: 1.234s is
# 1.23s, a minute less a millisecond is 60.00s, and ten seconds given in hours are 0.00h.
#
# Who it hurts: whoever hands a backoff, a timeout or a measurement to another service: a short wait becomes none, and
# hours and seconds make a difference for one and the same duration.
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
      <groupId>io.airlift</groupId>
      <artifactId>units</artifactId>
      <version>1.10</version>
    </dependency>
    <dependency>
      <groupId>com.fasterxml.jackson.core</groupId>
      <artifactId>jackson-databind</artifactId>
      <version>2.18.2</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import com.fasterxml.jackson.databind.ObjectMapper;
import io.airlift.units.Duration;
import java.util.concurrent.TimeUnit;

class Seen {
  static void written(Duration duration) throws Exception {
    var mapper = new ObjectMapper();
    String json = mapper.writeValueAsString(duration);
    System.out.print(duration.toMillis() + " " + json + " " + mapper.readValue(json, Duration.class).toMillis() + "; ");
  }

  public static void main(String[] arguments) throws Exception {
    written(Duration.valueOf("0.004s"));
    written(Duration.valueOf("4ms"));
    written(Duration.valueOf("1.234s"));
    written(Duration.valueOf("59.999s"));
    written(new Duration(10.0 / 3600, TimeUnit.HOURS));
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java)
echo "airlift units 1.10, milliseconds, JSON and milliseconds read: $seen"
[ "$seen" = '4 "0.00s" 0; 4 "4.00ms" 4; 1234 "1.23s" 1230; 59999 "60.00s" 60000; 10000 "0.00h" 0; ' ]
