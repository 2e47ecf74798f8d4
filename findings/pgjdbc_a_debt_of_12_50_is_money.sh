#!/usr/bin/env bash
# pgjdbc 42.7.8 (PostgreSQL's driver for Java): an amount without a currency sign loses its first character. A PGmoney
# of "12.50" is 2.50, and one of "-12.50" is 12.50.
#
# Guess: 12.50 and -12.50, as the server has '12.50'::money and '-12.50'::money. Or an error, as "-$12.50" is.
# Seen: the first character is taken for the sign of the currency, whatever it is. "1,234.50" is 234.50, and "0.50"
# happens to be right. The value of a negative amount is written as "-$12.5", which the same class refuses.
#
# Who it hurts: whoever binds amounts of a form or a file to a column of the type money: small amounts lose their
# first digit, and a debt is a credit.
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
import java.sql.SQLException;
import org.postgresql.util.PGmoney;

class Seen {
  static String value(String text) {
    try {
      return new PGmoney(text).getValue();
    } catch (SQLException error) {
      return "refused";
    }
  }

  public static void main(String[] arguments) {
    for (String text : new String[] {"12.50", "-12.50", "1,234.50", "0.50", "$12.50", "($12.50)", "-$12.5"}) {
      System.out.print(value(text) + " ");
    }
  }
}
PROGRAM
seen=$(java -cp 'lib/*' Seen.java)
echo "pgjdbc 42.7.8, 12.50, -12.50, 1,234.50, 0.50, \$12.50, (\$12.50) and -\$12.5: $seen"
[ "$seen" = "\$2.5 \$12.5 \$234.5 \$0.5 \$12.5 -\$12.5 refused " ]
