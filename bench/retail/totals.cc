// SPDX-License-Identifier: Apache-2.0
#include "bench/retail/totals.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "examples/retail/timestamp.h"

namespace bench {
namespace {

using muster::base::Decimal;

bool AddTo(Sums* sums, Int128 revenue, int64_t units) {
  if (__builtin_add_overflow(sums->units, units, &sums->units)) return false;
  // Below 38 digits each, so that the sum of two cannot overflow.
  const std::optional<Decimal> sum = Decimal::FromUnits(sums->revenue + revenue, kScale);
  if (!sum) {
    sums->units -= units;
    return false;
  }
  sums->revenue = sum->units();
  ++sums->transactions;
  return true;
}

void TakeBack(Sums* sums, Int128 revenue, int64_t units) {
  sums->revenue -= revenue;
  sums->units -= units;
  --sums->transactions;
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Measures(const Sums& sums) {
  return absl::StrCat("\"revenue\":\"", Decimal::FromUnits(sums.revenue, kScale)->ToString(),
                      "\",\"units\":\"", sums.units, "\",\"transactions\":\"", sums.transactions,
                      "\"}");
}

// The rows of a group as JSON, sorted. A row whose lines were all rejected is left out.
template <typename Rows, typename ShowKeys>
std::string GroupJson(absl::string_view name, const Rows& rows, ShowKeys show_keys) {
  std::vector<std::string> shown;
  for (const auto& [key, sums] : rows) {
    if (sums.transactions > 0) shown.push_back(absl::StrCat("{", show_keys(key), Measures(sums)));
  }
  std::sort(shown.begin(), shown.end());
  return absl::StrCat("{\"name\":\"", name, "\",\"rows\":[", absl::StrJoin(shown, ","), "]}");
}

}  // namespace

void Die(absl::string_view what) {
  std::fprintf(stderr, "%s: %.*s\n", program_invocation_short_name, static_cast<int>(what.size()),
               what.data());
  std::_Exit(1);
}

absl::string_view MapFile(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) Die(absl::StrCat("cannot read ", path));
  const auto size = static_cast<size_t>(info.st_size);
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (bytes == MAP_FAILED) Die(absl::StrCat("cannot map ", path));
  close(fd);
  return {static_cast<const char*>(bytes), size};
}

Columns FindColumns(CsvReader* reader) {
  std::array<absl::string_view, kMaxFields> header;
  const size_t count = reader->Next(&header);
  const auto find = [&](absl::string_view name) {
    const absl::string_view* const end = header.data() + count;
    const absl::string_view* const found =
        std::find<const absl::string_view*>(header.data(), end, name);
    if (found == end) Die(absl::StrCat("no column ", name));
    return static_cast<size_t>(found - header.data());
  };
  return {find("Quantity"),   find("UnitPrice"), find("InvoiceDate"),
          find("CustomerID"), find("Country"),   count};
}

const Totals& Biller::Run() {
  std::array<absl::string_view, kMaxFields> fields;
  while (const size_t count = reader_->Next(&fields)) {
    ++totals_.transactions;
    if (count != columns_.count || !Bill(fields)) ++totals_.rejected;
  }
  return totals_;
}

bool Biller::Bill(const std::array<absl::string_view, kMaxFields>& fields) {
  const std::optional<Decimal> quantity = Decimal::TryParse(fields[columns_.quantity]);
  const std::optional<Decimal> price = Decimal::TryParse(fields[columns_.price]);
  if (!quantity || quantity->scale() != 0 || !price || !CheckDate(fields[columns_.date])) {
    return false;
  }
  const auto units = static_cast<int64_t>(quantity->units());
  const std::optional<Decimal> product = Decimal::TryMultiply(*quantity, *price);
  const std::optional<Decimal> revenue = product ? product->TryRescale(kScale) : std::nullopt;
  if (units != quantity->units() || !revenue) return false;

  Sums* const place = PlaceOf(fields[columns_.country]);
  if (!AddTo(place, revenue->units(), units)) return false;
  if (AddTo(CustomerOf(fields[columns_.customer]), revenue->units(), units)) return true;
  TakeBack(place, revenue->units(), units);
  return false;
}

bool Biller::CheckDate(absl::string_view date) {
  if (date == date_) return true;
  if (!retail::IsTimestamp(date)) return false;
  if (date_.empty() || retail::MonthOf(date) != retail::MonthOf(date_)) place_ = nullptr;
  date_ = date;
  return true;
}

Sums* Biller::PlaceOf(absl::string_view country) {
  if (place_ == nullptr || country != country_) {
    place_ = &totals_.by_country_month[{country, retail::MonthOf(date_)}];
    country_ = country;
  }
  return place_;
}

Sums* Biller::CustomerOf(absl::string_view customer) {
  if (customer_sums_ == nullptr || customer != customer_) {
    customer_sums_ = &totals_.by_customer[customer];
    customer_ = customer;
  }
  return customer_sums_;
}

std::string GroupsJson(const Totals& totals) {
  return absl::StrCat("{\"groups\":[",
                      GroupJson("by_country_month", totals.by_country_month,
                                [](const CountryMonth& key) {
                                  return absl::StrCat("\"country\":", Quoted(key.first),
                                                      ",\"month\":\"", key.second, "\",");
                                }),
                      ",",
                      GroupJson("by_customer", totals.by_customer,
                                [](absl::string_view customer) {
                                  return absl::StrCat("\"customer\":", Quoted(customer), ",");
                                }),
                      "]}");
}

}  // namespace bench
