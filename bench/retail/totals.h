// SPDX-License-Identifier: Apache-2.0

// The retail job by hand: the totals of examples/retail/handler.cc, worked out by a plain loop. It
// checks what that handler checks, and rejects the same lines.
//
// It takes the shortcuts of a hand-written program: keys are views into the text, and a date or a
// key that repeats the line before is not parsed again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "bench/retail/csv_reader.h"
#include "muster/base/decimal.h"

namespace bench {

using muster::base::Int128;

inline constexpr int kScale = 3;  // decimals of revenue

struct Sums {
  Int128 revenue = 0;  // in units of 10^-kScale
  int64_t units = 0;
  int64_t transactions = 0;
};

using CountryMonth = std::pair<absl::string_view, absl::string_view>;

struct Totals {
  absl::flat_hash_map<CountryMonth, Sums> by_country_month;
  absl::flat_hash_map<absl::string_view, Sums> by_customer;
  int64_t transactions = 0;
  int64_t rejected = 0;
};

// The places of the columns in the header.
struct Columns {
  size_t quantity, price, date, customer, country, count;
};

// The whole file; mapped until the program ends.
absl::string_view MapFile(const char* path);

// Takes the header.
Columns FindColumns(CsvReader* reader);

// Adds up the records of a text. Owns the memory of the keys of its totals, except the text.
class Biller {
 public:
  // Owns none of its arguments.
  Biller(CsvReader* reader, const Columns& columns) : reader_(reader), columns_(columns) {}

  // Reads to the end of the text.
  const Totals& Run();

 private:
  bool Bill(const std::array<absl::string_view, kMaxFields>& fields);
  bool CheckDate(absl::string_view date);
  Sums* PlaceOf(absl::string_view country);
  Sums* CustomerOf(absl::string_view customer);

  CsvReader* const reader_;
  const Columns columns_;
  Totals totals_;
  // The values of the line before. The pointers are valid until another row is looked up.
  absl::string_view date_, country_, customer_;
  Sums* place_ = nullptr;  // of country_ and the month of date_
  Sums* customer_sums_ = nullptr;
};

// The totals as `muster report BATCH -o json` prints them. A row whose lines were all rejected is
// left out.
std::string GroupsJson(const Totals& totals);

}  // namespace bench
