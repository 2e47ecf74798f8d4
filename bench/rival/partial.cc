// SPDX-License-Identifier: Apache-2.0
#include "bench/rival/partial.h"

#include <cstring>
#include <type_traits>

namespace rival {
namespace {

using bench::CountryMonth;
using bench::Sums;

template <typename T>
void Append(T value, std::string* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

void AppendText(absl::string_view text, std::string* out) {
  Append(static_cast<uint32_t>(text.size()), out);
  out->append(text.data(), text.size());
}

void AppendSums(const Sums& sums, std::string* out) {
  Append(sums.revenue, out);
  Append(sums.units, out);
  Append(sums.transactions, out);
}

template <typename T>
T Take(absl::string_view* from) {
  if (from->size() < sizeof(T)) bench::Die("a partial result is cut");
  T value;
  std::memcpy(&value, from->data(), sizeof(T));
  from->remove_prefix(sizeof(T));
  return value;
}

absl::string_view TakeText(absl::string_view* from) {
  const auto size = Take<uint32_t>(from);
  if (from->size() < size) bench::Die("a partial result is cut");
  const absl::string_view text = from->substr(0, size);
  from->remove_prefix(size);
  return text;
}

void AddSums(absl::string_view* from, Sums* sums) {
  sums->revenue += Take<bench::Int128>(from);
  sums->units += Take<int64_t>(from);
  sums->transactions += Take<int64_t>(from);
}

}  // namespace

std::string EncodePartial(uint64_t item, const bench::Totals& totals) {
  std::string partial;
  Append(item, &partial);
  Append(totals.transactions, &partial);
  Append(totals.rejected, &partial);
  Append(static_cast<uint32_t>(totals.by_country_month.size()), &partial);
  for (const auto& [key, sums] : totals.by_country_month) {
    AppendText(key.first, &partial);
    AppendText(key.second, &partial);
    AppendSums(sums, &partial);
  }
  Append(static_cast<uint32_t>(totals.by_customer.size()), &partial);
  for (const auto& [customer, sums] : totals.by_customer) {
    AppendText(customer, &partial);
    AppendSums(sums, &partial);
  }
  return partial;
}

uint64_t ItemOf(absl::string_view partial) { return Take<uint64_t>(&partial); }

void AddPartial(absl::string_view partial, bench::Totals* totals) {
  Take<uint64_t>(&partial);
  totals->transactions += Take<int64_t>(&partial);
  totals->rejected += Take<int64_t>(&partial);
  for (auto rows = Take<uint32_t>(&partial); rows > 0; --rows) {
    const absl::string_view country = TakeText(&partial);
    const absl::string_view month = TakeText(&partial);
    AddSums(&partial, &totals->by_country_month[{country, month}]);
  }
  for (auto rows = Take<uint32_t>(&partial); rows > 0; --rows) {
    const absl::string_view customer = TakeText(&partial);
    AddSums(&partial, &totals->by_customer[customer]);
  }
}

}  // namespace rival
