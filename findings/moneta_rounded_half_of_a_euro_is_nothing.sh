#!/usr/bin/env bash
# JavaMoney's Moneta 1.4.4 (the reference implementation of JSR 354 for Java): RoundedMoney divides to the decimals of
# the amount that is divided. Half of a euro is nothing, and a quarter of ten euros is two.
#
# Guess: 0.50 and 2.50, for it rounds to the cents of its currency, as a product does: 10 times 0.25 is 2.5.
# Seen: EUR 0 and EUR 2, also with Monetary.getDefaultRounding() as the third argument, and also for 1.00, which is
# made to 1 before. A quarter of 19.99 is EUR 5, to the cent, and a third of 10 euros, times 3, is 9. Money has 0.5 and
# 2.5.
#
# Who it hurts: shares, instalments and pro-rated fees of whole amounts: up to a whole euro or two are lost in each,
# with the class that is there for accounts.
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
      <groupId>org.javamoney.moneta</groupId>
      <artifactId>moneta-core</artifactId>
      <version>1.4.4</version>
    </dependency>
  </dependencies>
</project>
POM
mvn --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=jars \
  > log 2>&1 || { cat log && exit 1; }
cat > Seen.java << 'PROGRAM'
import java.math.BigDecimal;
import javax.money.Monetary;
import javax.money.MonetaryAmount;
import org.javamoney.moneta.Money;
import org.javamoney.moneta.RoundedMoney;

class Seen {
  static MonetaryAmount rounded(String amount) {
    return RoundedMoney.of(new BigDecimal(amount), "EUR");
  }

  public static void main(String[] arguments) {
    System.out.print(rounded("1").divide(2) + ", " + rounded("1.00").divide(2) + ", " + rounded("10").divide(4) + ", ");
    System.out.print(RoundedMoney.of(new BigDecimal("10"), "EUR", Monetary.getDefaultRounding()).divide(4) + ", ");
    System.out.print(rounded("19.99").divide(4) + ", " + rounded("10").divide(3).multiply(3) + ", ");
    System.out.print(rounded("10").multiply(0.25) + ", " + Money.of(10, "EUR").divide(4));
  }
}
PROGRAM
seen=$(java -cp "jars/*" Seen.java 2> log) || { cat log && exit 1; }
echo "Moneta 1.4.4: $seen"
[ "$seen" = "EUR 0, EUR 0, EUR 2, EUR 2, EUR 5, EUR 9, EUR 2.5, EUR 2.5" ]
