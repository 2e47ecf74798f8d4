#!/usr/bin/env bash
# FlatPack 4.0.18 (CSV and fixed columns for Java): getDouble() leaves out the E of a number with an exponent. 1.5E3 is
# 1.53.
#
# Guess: 1500, as Double.parseDouble() and FlatPack's own getBigDecimal() have it.
# Seen: 1.5E3 is 1.53, 1.0E7 is 1.07 and 12e4 is 124. A sign in the exponent is an error. With
# setStrictNumericParse(true) all are right.
#
# Who it hurts: importers of what programs have written: Java itself writes a double from ten million on as 1.0E7. Large
# amounts and readings become small ones.
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
      <groupId>net.sf.flatpack</groupId>
      <artifactId>flatpack</artifactId>
      <version>4.0.18</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-nop</artifactId>
      <version>2.0.17</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=lib \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import java.io.StringReader;
import net.sf.flatpack.DefaultParserFactory;

class Seen {
  public static void main(String[] arguments) {
    var lines = new StringReader("amount\n1.5E3\n1.0E7\n12e4\n10000000.0\n");
    var rows = DefaultParserFactory.getInstance().newDelimitedParser(lines, ',', '"').parse();
    while (rows.next()) {
      System.out.print(rows.getDouble("amount") + " " + rows.getBigDecimal("amount").toPlainString() + "; ");
    }
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java)
echo "FlatPack 4.0.18, getDouble() and getBigDecimal(): $seen"
[ "$seen" = "1.53 1500; 1.07 10000000; 124.0 120000; 1.0E7 10000000.0; " ]
