#!/usr/bin/env bash
# jsoniter 0.9.23 (JSON for Java): a double is written with at most six decimals. A price of 0.0000004 is 0.
#
# Guess: 4.0E-7, which the same library reads, and which comes back the same.
# Seen: 0. 0.1234567890123 is 0.123457 and 35.00000001 is 35. From 0x4ffffff (83886079) on a number is written whole:
# 123456789.12345678 is 1.2345678912345678E8. A BigDecimal is written whole.
#
# Who it hurts: whoever writes prices of small units, rates and readings: nothing fails, and the small ones are gone.
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
      <groupId>com.jsoniter</groupId>
      <artifactId>jsoniter</artifactId>
      <version>0.9.23</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import com.jsoniter.output.JsonStream;
import java.math.BigDecimal;
import java.util.List;

class Seen {
  public static void main(String[] arguments) {
    System.out.print(JsonStream.serialize(List.of(4e-7, 0.1234567890123, 35.00000001, 123456789.12345678)) + " ");
    System.out.print(JsonStream.serialize(new BigDecimal("0.0000004")));
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java)
echo "jsoniter 0.9.23: $seen"
[ "$seen" = "[0,0.123457,35,1.2345678912345678E8] 4E-7" ]
