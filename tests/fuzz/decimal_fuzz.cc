// SPDX-License-Identifier: Apache-2.0

// Two decimal numbers, written one behind the other with a space between.
#include <optional>

#include "muster/base/decimal.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using base::Decimal;

bool Same(const Decimal& a, const Decimal& b) {
  return a.units() == b.units() && a.scale() == b.scale();
}

std::optional<Decimal> Read(absl::string_view text) {
  const std::optional<Decimal> tried = Decimal::TryParse(text);
  const absl::StatusOr<Decimal> parsed = Decimal::Parse(text);
  Must(tried.has_value() == parsed.ok(), "Parse and TryParse agree on what is a number");
  if (!tried.has_value()) {
    Must(absl::IsInvalidArgument(parsed.status()) || absl::IsOutOfRange(parsed.status()),
         "what is no number is InvalidArgument or OutOfRange");
    return tried;
  }
  Must(Same(*tried, *parsed), "Parse and TryParse agree on the number");
  const std::optional<Decimal> again = Decimal::TryParse(tried->ToString());
  Must(again.has_value() && Same(*again, *tried), "ToString parses back to the same number");
  const Decimal trimmed = tried->Trimmed();
  Must(trimmed == *tried && trimmed.scale() <= tried->scale(), "trimming keeps the value");
  const std::optional<Decimal> grown = trimmed.TryRescale(tried->scale());
  Must(grown.has_value() && Same(*grown, *tried), "the trimmed zeros can be put back");
  return tried;
}

void Combine(const Decimal& a, const Decimal& b) {
  const std::optional<Decimal> sum = Decimal::TryAdd(a, b);
  const std::optional<Decimal> swapped = Decimal::TryAdd(b, a);
  Must(sum.has_value() == swapped.has_value(), "the order does not decide what can be added");
  Must(Decimal::Add(a, b).ok() == sum.has_value(), "Add and TryAdd agree");
  const Decimal minus_b = *Decimal::FromUnits(-b.units(), b.scale());
  if (sum.has_value()) {
    Must(*sum == *swapped, "the order does not decide a sum");
    const std::optional<Decimal> back = Decimal::TryAdd(*sum, minus_b);
    Must(back.has_value() && *back == a, "what was added can be taken away");
  }
  if (const std::optional<Decimal> difference = Decimal::TryAdd(a, minus_b)) {
    Must((a <=> b) == (difference->units() <=> 0), "the sign of a difference is the order");
  }
  const std::optional<Decimal> product = Decimal::TryMultiply(a, b);
  Must(product == Decimal::TryMultiply(b, a), "the order does not decide a product");
  Must(Decimal::Multiply(a, b).ok() == product.has_value(), "Multiply and TryMultiply agree");
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  const absl::string_view text = Text(data, size);
  const size_t space = text.find(' ');
  const auto a = Read(text.substr(0, space));
  if (!a.has_value() || space == absl::string_view::npos) return 0;
  if (const auto b = Read(text.substr(space + 1))) Combine(*a, *b);
  return 0;
}
