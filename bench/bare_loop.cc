// The retail job with nothing around it: one loop over the file, on one core, that computes the
// same totals exactly. No queue, no durability, no second thread: what muster's figures are held
// against.
//
//   bare_loop INPUT.csv             prints the figures as JSON
//   bare_loop --groups INPUT.csv    prints the totals, as `muster report BATCH -o json` does
//
// It checks what the example's handler checks, and rejects the same lines. Shortcuts that a
// hand-written program would take are taken: the file is mapped, keys are views into it, and a date
// or a key that the line before had is not looked at again.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "examples/retail/timestamp.h"
#include "muster/base/decimal.h"
#include "muster/base/fingerprint.h"

namespace {

using muster::base::Decimal;
using muster::base::Int128;

constexpr int kScale = 3;  // decimals of revenue
constexpr size_t kMaxFields = 64;

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

[[noreturn]] void Die(absl::string_view what) {
  std::fprintf(stderr, "bare_loop: %.*s\n", static_cast<int>(what.size()), what.data());
  std::_Exit(1);
}

// The whole file; mapped until the program ends.
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

constexpr ptrdiff_t kBlock = 64;

// Bit i is set where byte i of the block is a comma or a line feed.
uint64_t DelimitersIn(const char* block) {
  uint64_t found = 0;
#ifdef __SSE2__
  for (int i = 0; i < kBlock; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const __m128i equal = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(',')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
    found |= uint64_t{static_cast<uint16_t>(_mm_movemask_epi8(equal))} << i;
  }
#else
  for (int i = 0; i < kBlock; ++i) {
    found |= uint64_t{block[i] == ',' || block[i] == '\n'} << i;
  }
#endif
  return found;
}

// Finds commas and line feeds, 64 bytes at a time.
class DelimiterFinder {
 public:
  explicit DelimiterFinder(absl::string_view text)
      : block_(text.data()), end_(text.data() + text.size()) {
    found_ = Scan();
  }

  // The first at or after `at`, or the end of the text. `at` never goes back.
  const char* Find(const char* at) {
    while (at - block_ >= kBlock || (found_ >> (at - block_)) == 0) {
      if (end_ - block_ <= kBlock) return end_;
      block_ += kBlock;
      at = std::max(at, block_);
      found_ = Scan();
    }
    return at + std::countr_zero(found_ >> (at - block_));
  }

 private:
  uint64_t Scan() const {
    if (end_ - block_ >= kBlock) return DelimitersIn(block_);
    std::array<char, kBlock> rest{};
    std::copy(block_, end_, rest.begin());
    return DelimitersIn(rest.data());
  }

  const char* block_;
  const char* const end_;
  uint64_t found_;  // bit i: block_[i] is one
};

// Cuts a file into records and fields (RFC 4180).
class CsvReader {
 public:
  explicit CsvReader(absl::string_view text)
      : at_(text.data()), end_(at_ + text.size()), delimiters_(text) {}

  // The next record's fields; 0 at the end of the file. Blank lines are none.
  size_t Next(std::array<absl::string_view, kMaxFields>* fields) {
    while (at_ != end_ && (*at_ == '\n' || *at_ == '\r')) ++at_;
    if (at_ == end_) return 0;
    for (size_t count = 1; count <= kMaxFields; ++count) {
      (*fields)[count - 1] = *at_ == '"' ? QuotedField() : PlainField();
      if (at_ == end_) return count;
      if (*at_++ == '\n') return count;
      if (at_ == end_) Die("the last record ends in a comma");
    }
    Die("too many fields");
  }

 private:
  absl::string_view PlainField() {
    const char* const begin = at_;
    at_ = delimiters_.Find(at_);
    const bool has_return = at_ != begin && at_[-1] == '\r' && (at_ == end_ || *at_ == '\n');
    return {begin, static_cast<size_t>(at_ - begin) - (has_return ? 1 : 0)};
  }

  absl::string_view QuotedField() {
    const char* const begin = ++at_;
    bool has_quotes = false;
    while (true) {
      const auto* const quote =
          static_cast<const char*>(std::memchr(at_, '"', static_cast<size_t>(end_ - at_)));
      if (quote == nullptr) Die("a quote is never closed");
      at_ = quote + 1;
      if (at_ == end_ || *at_ != '"') break;
      has_quotes = true;
      ++at_;
    }
    const absl::string_view field(begin, static_cast<size_t>(at_ - 1 - begin));
    if (at_ != end_ && *at_ == '\r') ++at_;
    if (at_ != end_ && *at_ != ',' && *at_ != '\n') Die("text after a closing quote");
    return has_quotes ? Unescaped(field) : field;
  }

  absl::string_view Unescaped(absl::string_view field) {
    std::string& text = unescaped_.emplace_back();
    for (size_t i = 0; i < field.size(); ++i) {
      text += field[i];
      if (field[i] == '"') ++i;
    }
    return text;
  }

  const char* at_;
  const char* const end_;
  DelimiterFinder delimiters_;
  std::deque<std::string> unescaped_;
};

struct Columns {
  size_t quantity, price, date, customer, country, count;
};

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

// Keeps what the keys of its totals view.
class Loop {
 public:
  explicit Loop(absl::string_view text) : reader_(text), columns_(FindColumns(&reader_)) {}

  const Totals& Run() {
    std::array<absl::string_view, kMaxFields> fields;
    while (const size_t count = reader_.Next(&fields)) {
      ++totals_.transactions;
      if (count != columns_.count || !Bill(fields)) ++totals_.rejected;
    }
    return totals_;
  }

 private:
  bool Bill(const std::array<absl::string_view, kMaxFields>& fields) {
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

  bool CheckDate(absl::string_view date) {
    if (date == date_) return true;
    if (!retail::IsTimestamp(date)) return false;
    if (date_.empty() || retail::MonthOf(date) != retail::MonthOf(date_)) place_ = nullptr;
    date_ = date;
    return true;
  }

  Sums* PlaceOf(absl::string_view country) {
    if (place_ == nullptr || country != country_) {
      place_ = &totals_.by_country_month[{country, retail::MonthOf(date_)}];
      country_ = country;
    }
    return place_;
  }

  Sums* CustomerOf(absl::string_view customer) {
    if (customer_sums_ == nullptr || customer != customer_) {
      customer_sums_ = &totals_.by_customer[customer];
      customer_ = customer;
    }
    return customer_sums_;
  }

  CsvReader reader_;
  const Columns columns_;
  Totals totals_;
  // Of the line before. Rows stay where they are as long as no other is looked up.
  absl::string_view date_, country_, customer_;
  Sums* place_ = nullptr;  // of country_ and the month of date_
  Sums* customer_sums_ = nullptr;
};

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

// The rows of a group as JSON, sorted; rows whose every line was rejected are none.
template <typename Rows, typename ShowKeys>
std::string GroupJson(absl::string_view name, const Rows& rows, ShowKeys show_keys) {
  std::vector<std::string> shown;
  for (const auto& [key, sums] : rows) {
    if (sums.transactions > 0) shown.push_back(absl::StrCat("{", show_keys(key), Measures(sums)));
  }
  std::sort(shown.begin(), shown.end());
  return absl::StrCat("{\"name\":\"", name, "\",\"rows\":[", absl::StrJoin(shown, ","), "]}");
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

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::string FiguresJson(const Totals& totals, double seconds) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::StrCat("{\"transactions\":", totals.transactions, ",\"rejected\":", totals.rejected,
                      ",\"seconds\":", seconds, ",\"transactions_per_second\":",
                      static_cast<int64_t>(static_cast<double>(totals.transactions) / seconds),
                      ",\"cpu_seconds\":", Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
                      ",\"peak_rss_bytes\":", int64_t{usage.ru_maxrss} * 1024, ",\"checksum\":\"",
                      muster::base::Fingerprint(GroupsJson(totals)).ToHex(), "\"}");
}

}  // namespace

int main(int argc, char** argv) {
  const bool show_groups = argc == 3 && std::strcmp(argv[1], "--groups") == 0;
  if (argc != 2 && !show_groups) Die("usage: bare_loop [--groups] INPUT.csv");
  const auto start = std::chrono::steady_clock::now();
  Loop loop(MapFile(argv[argc - 1]));
  const Totals& totals = loop.Run();
  const std::chrono::duration<double> lapse = std::chrono::steady_clock::now() - start;
  const std::string json = show_groups ? GroupsJson(totals) : FiguresJson(totals, lapse.count());
  std::puts(json.c_str());
  return 0;
}
