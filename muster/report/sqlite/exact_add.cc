#include "muster/report/sqlite/exact_add.h"

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/base/decimal.h"

namespace muster::report::sqlite {
namespace {

constexpr int kFunctionFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;

void Fail(sqlite3_context* context, int code, const char* message) {
  sqlite3_result_error(context, message, -1);
  sqlite3_result_error_code(context, code);  // after the text, which sets a code of its own
}

std::optional<base::Decimal> DecimalOf(sqlite3_value* value) {
  if (sqlite3_value_type(value) != SQLITE_TEXT) return std::nullopt;
  const unsigned char* text = sqlite3_value_text(value);
  const int bytes = sqlite3_value_bytes(value);
  if (text == nullptr) return std::nullopt;
  return base::Decimal::TryParse(
      absl::string_view(reinterpret_cast<const char*>(text), static_cast<size_t>(bytes)));
}

void AddDecimal(sqlite3_context* context, int, sqlite3_value** values) {
  const std::optional<base::Decimal> a = DecimalOf(values[0]);
  const std::optional<base::Decimal> b = DecimalOf(values[1]);
  if (!a || !b) return Fail(context, SQLITE_CORRUPT, "a stored measure is no decimal number");
  const std::optional<base::Decimal> sum = base::Decimal::TryAdd(*a, *b);
  if (!sum) return Fail(context, SQLITE_RANGE, "the sum has more than 38 digits");
  const std::string text = sum->ToString();
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void AddInt(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) != SQLITE_INTEGER ||
      sqlite3_value_type(values[1]) != SQLITE_INTEGER) {
    return Fail(context, SQLITE_CORRUPT, "a stored measure is no whole number");
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(sqlite3_value_int64(values[0]), sqlite3_value_int64(values[1]),
                             &sum)) {
    return Fail(context, SQLITE_RANGE, "the sum does not fit 64 bits");
  }
  sqlite3_result_int64(context, sum);
}

}  // namespace

void RegisterExactAdd(sqlite3* database) {
  sqlite3_create_function_v2(database, "muster_add_decimal", 2, kFunctionFlags, nullptr, AddDecimal,
                             nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(database, "muster_add_int", 2, kFunctionFlags, nullptr, AddInt,
                             nullptr, nullptr, nullptr);
}

}  // namespace muster::report::sqlite
