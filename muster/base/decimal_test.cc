// SPDX-License-Identifier: Apache-2.0
#include "muster/base/decimal.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::base {
namespace {

using ::testing::HasSubstr;

const char kLargest[] = "99999999999999999999999999999999999999";  // 38 digits

Decimal D(absl::string_view text) {
  const absl::StatusOr<Decimal> value = Decimal::Parse(text);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.value_or(Decimal());
}

std::string Sum(absl::string_view a, absl::string_view b) {
  const absl::StatusOr<Decimal> sum = Decimal::Add(D(a), D(b));
  return sum.ok() ? sum->ToString() : absl::StatusCodeToString(sum.status().code());
}

std::string Product(absl::string_view a, absl::string_view b) {
  const absl::StatusOr<Decimal> product = Decimal::Multiply(D(a), D(b));
  return product.ok() ? product->ToString() : absl::StatusCodeToString(product.status().code());
}

absl::StatusCode ParseError(absl::string_view text) {
  EXPECT_FALSE(Decimal::TryParse(text).has_value()) << text;
  return Decimal::Parse(text).status().code();
}

TEST(DecimalTest, KeepsTheDecimalsThatWereWritten) {
  for (const char* text : {"0", "12", "-12.50", "0.001", "-0.5", "1234567890123456789.25", kLargest,
                           "0.123456789012345678", "123456789012345678", "1234567890123456789",
                           "12345678901234567890.123456789012345678"}) {
    EXPECT_EQ(D(text).ToString(), text);
  }
}

TEST(DecimalTest, ReadsSignsLeadingZerosAndABarePoint) {
  EXPECT_EQ(D("+1").ToString(), "1");
  EXPECT_EQ(D(".5").ToString(), "0.5");
  EXPECT_EQ(D("-.25").ToString(), "-0.25");
  EXPECT_EQ(D("007").ToString(), "7");
  EXPECT_EQ(D(absl::StrCat(std::string(100, '0'), kLargest)).ToString(), kLargest);
}

TEST(DecimalTest, HasNoNegativeZero) {
  EXPECT_EQ(D("-0").ToString(), "0");
  EXPECT_EQ(D("-0.00").ToString(), "0.00");
}

TEST(DecimalTest, RefusesWhatIsNotAPlainNumber) {
  for (const char* text :
       {"", "+", "-", ".", "-.", "5.", "1.2.3", "--1", "+-1", "1e5", " 1", "1 ", "1,000", "0x1",
        "NaN", "inf", "1-", "\xd9\xa1", "12345678901234567890."}) {
    EXPECT_EQ(ParseError(text), absl::StatusCode::kInvalidArgument) << "'" << text << "'";
  }
  EXPECT_EQ(ParseError(absl::string_view("1\0", 2)), absl::StatusCode::kInvalidArgument);
}

TEST(DecimalTest, RefusesMoreDigitsThanItHolds) {
  EXPECT_EQ(ParseError(absl::StrCat("1", kLargest)), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ParseError(std::string(1000, '9')), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ParseError("0.1234567890123456789"), absl::StatusCode::kInvalidArgument);
}

TEST(DecimalTest, ShowsOnlyTheStartOfALongBadText) {
  const absl::Status status = Decimal::Parse(std::string(100000, 'x')).status();
  EXPECT_LT(status.message().size(), 200u);
}

TEST(DecimalTest, AddsExactlyAcrossScales) {
  EXPECT_EQ(Sum("0.1", "0.2"), "0.3");
  EXPECT_EQ(Sum("1.5", "2.255"), "3.755");
  EXPECT_EQ(Sum("-1.00", "1"), "0.00");
  EXPECT_EQ(Sum(kLargest, "-1"), "99999999999999999999999999999999999998");
}

TEST(DecimalTest, AddsWhatOnlyFitsWithoutTrailingZeros) {
  EXPECT_EQ(Sum(kLargest, "0.00"), kLargest);
  EXPECT_EQ(Sum("1.000000000000000000", kLargest), "OUT_OF_RANGE");
}

TEST(DecimalTest, AddsAndRescalesInPlaceOrNotAtAll) {
  Decimal sum = D("1.50");
  EXPECT_TRUE(sum.AddInPlace(D("-0.25")));
  EXPECT_TRUE(sum.AddInPlace(D("1")));  // of another scale
  EXPECT_EQ(sum.ToString(), "2.25");
  EXPECT_FALSE(sum.RescaleInPlace(1));
  EXPECT_TRUE(sum.RescaleInPlace(18));
  EXPECT_EQ(sum.ToString(), "2.250000000000000000");
  Decimal most = D("99999999999999999999999999999999999999");
  EXPECT_FALSE(most.AddInPlace(D("1")));
  EXPECT_FALSE(most.RescaleInPlace(1));
  EXPECT_EQ(most.ToString(), "99999999999999999999999999999999999999");
}

TEST(DecimalTest, ShowsNumbersOfEveryLength) {
  for (const char* text : {"0", "999999999999999999", "1000000000000000000", "1000000000000000001",
                           "-9223372036854775809"}) {
    EXPECT_EQ(D(text).ToString(), text);
  }
  EXPECT_EQ(D("10000000000000000000000000000000000.001").ToString(),
            "10000000000000000000000000000000000.001");
  EXPECT_EQ(D("-0.000000000000000001").ToString(), "-0.000000000000000001");
}

TEST(DecimalTest, RefusesASumThatDoesNotFit) {
  EXPECT_EQ(Sum(kLargest, "1"), "OUT_OF_RANGE");
  EXPECT_EQ(Sum(kLargest, "0.1"), "OUT_OF_RANGE");
  EXPECT_EQ(Sum(absl::StrCat("-", kLargest), "-1"), "OUT_OF_RANGE");
  EXPECT_EQ(Sum(kLargest, kLargest), "OUT_OF_RANGE");  // does not fit 128 bits either
}

TEST(DecimalTest, MultipliesExactly) {
  EXPECT_EQ(Product("6", "2.55"), "15.30");
  EXPECT_EQ(Product("-12", "1.25"), "-15.00");
  EXPECT_EQ(Product("-1.5", "-1.5"), "2.25");
  EXPECT_EQ(Product("12345678901234567890", "987654321098765432"),
            "12193263113702179521140070120989178480");
  EXPECT_EQ(Product("9999999999999999999", "9999999999999999999"),
            "99999999999999999980000000000000000001");
}

TEST(DecimalTest, DropsTrailingZerosWhereTheProductNeedsRoom) {
  EXPECT_EQ(Product("0.50000000000", "0.50000000000"), "0.25");
  EXPECT_EQ(Product("1000.000000000000000000", "100.000000000000000000"), "100000");
}

TEST(DecimalTest, RefusesAProductThatDoesNotFit) {
  EXPECT_EQ(Product(kLargest, "2"), "OUT_OF_RANGE");
  EXPECT_EQ(Product(kLargest, kLargest), "OUT_OF_RANGE");
  EXPECT_EQ(Product("0.0000000001", "0.0000000001"), "OUT_OF_RANGE");
  EXPECT_EQ(Product("18446744073709551616", "-9223372036854775808"), "OUT_OF_RANGE");
}

TEST(DecimalTest, RescalesOnlyWithoutLoss) {
  EXPECT_EQ(D("1.5").Rescale(3)->ToString(), "1.500");
  EXPECT_EQ(D("1.500").Rescale(1)->ToString(), "1.5");
  EXPECT_EQ(D("0").Rescale(18)->ToString(), "0.000000000000000000");
  const absl::Status lossy = D("-1.255").Rescale(2).status();
  EXPECT_EQ(lossy.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lossy.message()), HasSubstr("-1.255 needs more than 2 decimals"));
  EXPECT_EQ(D(kLargest).Rescale(1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(D("1").Rescale(19).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(D("1").Rescale(-1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DecimalTest, TrimsTrailingZerosOnly) {
  EXPECT_EQ(D("10.50").Trimmed().ToString(), "10.5");
  EXPECT_EQ(D("100").Trimmed().ToString(), "100");
  EXPECT_EQ(D("0.000").Trimmed().ToString(), "0");
}

TEST(DecimalTest, ComparesByValue) {
  EXPECT_EQ(D("1.5"), D("1.500"));
  EXPECT_LT(D("-2"), D("-1.999"));
  EXPECT_GT(D(kLargest), D("0.123456789012345678"));
  EXPECT_LT(D(absl::StrCat("-", kLargest)), D("0.000000000000000001"));
  EXPECT_LT(D("0.000000000000000001"), D(kLargest));
}

TEST(DecimalTest, BuildsFromUnitsWithinItsRangeOnly) {
  EXPECT_EQ(Decimal::FromUnits(-1250, 2)->ToString(), "-12.50");
  EXPECT_FALSE(Decimal::FromUnits(D(kLargest).units() + 1, 0).has_value());
  EXPECT_FALSE(Decimal::FromUnits(1, 19).has_value());
  EXPECT_FALSE(Decimal::FromUnits(1, -1).has_value());
}

class DecimalPropertyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const uint32_t seed = testing::TestSeed();
    RecordProperty("seed", static_cast<int>(seed));
    trace_ = absl::StrCat("seed ", seed);
    random_.seed(seed);
  }

  // Up to 17 digits, so that three of them can be added and two multiplied within 38 digits.
  Decimal Any() {
    std::uniform_int_distribution<int64_t> units(-99999999999999999, 99999999999999999);
    std::uniform_int_distribution<int> digits(0, 17);
    const int64_t value = units(random_) >> (3 * digits(random_));
    return *Decimal::FromUnits(value, digits(random_) / 2);
  }

  std::string trace_;
  std::mt19937_64 random_;
};

TEST_F(DecimalPropertyTest, ObeysTheLawsOfArithmetic) {
  SCOPED_TRACE(trace_);
  for (int i = 0; i < 5000; ++i) {
    const Decimal a = Any(), b = Any(), c = Any();
    ASSERT_EQ(Decimal::TryAdd(a, b), Decimal::TryAdd(b, a));
    ASSERT_EQ(*Decimal::TryAdd(*Decimal::TryAdd(a, b), c),
              *Decimal::TryAdd(a, *Decimal::TryAdd(b, c)));
    ASSERT_EQ(*Decimal::TryMultiply(a, b), *Decimal::TryMultiply(b, a));
    ASSERT_EQ(a < b, *Decimal::TryAdd(a, c) < *Decimal::TryAdd(b, c)) << a << " " << b << " " << c;
  }
}

TEST_F(DecimalPropertyTest, ReadsBackWhatItShows) {
  SCOPED_TRACE(trace_);
  for (int i = 0; i < 5000; ++i) {
    const Decimal a = *Decimal::TryMultiply(Any(), Any());
    ASSERT_EQ(D(a.ToString()), a);
    ASSERT_EQ(D(a.ToString()).scale(), a.scale());
    ASSERT_EQ(a.Trimmed(), a);
  }
}

// Changing, adding and dropping characters of good numbers finds the paths between the two readers.
TEST_F(DecimalPropertyTest, BothFormsOfParseAgreeOnDamagedNumbers) {
  SCOPED_TRACE(trace_);
  const std::string alphabet = "0123456789.+-e ";
  for (int i = 0; i < 20000; ++i) {
    std::string text = Any().ToString();
    text[random_() % text.size()] = alphabet[random_() % alphabet.size()];
    text.insert(random_() % text.size(), 1, alphabet[random_() % alphabet.size()]);
    const std::optional<Decimal> quick = Decimal::TryParse(text);
    const absl::StatusOr<Decimal> explained = Decimal::Parse(text);
    ASSERT_EQ(quick.has_value(), explained.ok()) << text;
    if (quick) {
      ASSERT_EQ(D(quick->ToString()), *quick) << text;
    }
  }
}

// As Python's Decimal and others print them.
TEST(DecimalTest, ReadsExponentsWhereTheyAreAsked) {
  const auto read = [](absl::string_view text) {
    const absl::StatusOr<Decimal> value = Decimal::ParseWithExponent(text);
    return value.ok() ? value->ToString() : std::string(value.status().message());
  };
  EXPECT_EQ(read("1E+2"), "100");
  EXPECT_EQ(read("-25e-1"), "-2.5");
  EXPECT_EQ(read("+1.50e1"), "15.0");
  EXPECT_EQ(read(".5E1"), "5");
  EXPECT_EQ(read("0E-8"), "0.00000000");
  EXPECT_EQ(read("0E-400"), "0.000000000000000000");
  EXPECT_EQ(read("0E+400"), "0");
  EXPECT_EQ(read("1E-7"), "0.0000001");
  EXPECT_EQ(read("1.5000000000000000000000"), "1.500000000000000000");
  EXPECT_EQ(read("12.50"), "12.50");
  EXPECT_EQ(read("1E-19"), "'1E-19' has more than 18 decimals");
  EXPECT_EQ(read("1E38"), "'1E38' has more than 38 digits");
  for (const char* wrong : {"", "E", "e5", "1E", "1E+", "1E+-2", "1E 2", "1e2.5", "NaN", "1e2e3",
                            "Infinity", "1E99999999999"}) {
    EXPECT_EQ(read(wrong), absl::StrCat("'", wrong, "' is not a decimal number"));
  }
  EXPECT_EQ(Decimal::TryParse("1E+2"), std::nullopt);
}

}  // namespace
}  // namespace muster::base
