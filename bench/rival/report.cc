// SPDX-License-Identifier: Apache-2.0
#include "bench/rival/report.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "bench/rival/partial.h"

namespace rival {
namespace {

// Revenue is kept in thousandths: 64 bits hold the sales of any shop.
constexpr char kSchema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE counted(item INTEGER PRIMARY KEY);"
    "CREATE TABLE totals(name TEXT, key TEXT, month TEXT, revenue INTEGER, units INTEGER,"
    " transactions INTEGER, PRIMARY KEY(name, key, month)) WITHOUT ROWID";
constexpr char kCount[] = "INSERT OR IGNORE INTO counted VALUES(?)";
constexpr char kAdd[] =
    "INSERT INTO totals VALUES(?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
    " revenue = revenue + excluded.revenue, units = units + excluded.units,"
    " transactions = transactions + excluded.transactions";
constexpr char kPlaces[] = "place";
constexpr char kCustomers[] = "customer";

void Bind(sqlite3_stmt* statement, int place, absl::string_view text) {
  sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

int64_t Thousandths(bench::Int128 revenue) {
  const auto narrow = static_cast<int64_t>(revenue);
  if (narrow != revenue) bench::Die("revenue: more than 64 bits hold");
  return narrow;
}

}  // namespace

Report::Report(const std::string& path) {
  if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK) bench::Die("cannot open the report");
  Execute(kSchema);
  count_ = Prepare(kCount);
  add_ = Prepare(kAdd);
}

Report::~Report() {
  sqlite3_finalize(count_);
  sqlite3_finalize(add_);
  sqlite3_close(database_);
}

void Report::Execute(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    bench::Die(absl::StrCat("report: ", sqlite3_errmsg(database_)));
  }
}

sqlite3_stmt* Report::Prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) {
    bench::Die(absl::StrCat("report: ", sqlite3_errmsg(database_)));
  }
  return statement;
}

void Report::Run(sqlite3_stmt* statement) {
  if (sqlite3_step(statement) != SQLITE_DONE) {
    bench::Die(absl::StrCat("report: ", sqlite3_errmsg(database_)));
  }
  sqlite3_reset(statement);
}

bool Report::IsNew(uint64_t item) {
  sqlite3_bind_int64(count_, 1, static_cast<int64_t>(item));
  Run(count_);
  return sqlite3_changes(database_) == 1;
}

// Adds the results up before it writes them to the database, so that each row is written once.
void Report::Add(absl::Span<const absl::string_view> partials) {
  Execute("BEGIN IMMEDIATE");
  bench::Totals sums;
  for (const absl::string_view partial : partials) {
    if (!IsNew(ItemOf(partial))) continue;
    AddPartial(partial, &sums);
    ++items_;
  }
  for (const auto& [key, row] : sums.by_country_month) AddRow(kPlaces, key.first, key.second, row);
  for (const auto& [customer, row] : sums.by_customer) AddRow(kCustomers, customer, "", row);
  Execute("COMMIT");
  transactions_ += sums.transactions;
  rejected_ += sums.rejected;
}

void Report::AddRow(const char* group, absl::string_view key, absl::string_view month,
                    const bench::Sums& sums) {
  Bind(add_, 1, group);
  Bind(add_, 2, key);
  Bind(add_, 3, month);
  sqlite3_bind_int64(add_, 4, Thousandths(sums.revenue));
  sqlite3_bind_int64(add_, 5, sums.units);
  sqlite3_bind_int64(add_, 6, sums.transactions);
  Run(add_);
}

std::string Report::GroupsJson() {
  std::deque<std::string> texts;
  bench::Totals totals;
  sqlite3_stmt* const rows = Prepare("SELECT * FROM totals");
  const auto text = [&](int column) -> absl::string_view {
    return texts.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(rows, column)));
  };
  while (sqlite3_step(rows) == SQLITE_ROW) {
    const bool is_place = text(0) == kPlaces;
    const absl::string_view key = text(1);
    const absl::string_view month = text(2);
    (is_place ? totals.by_country_month[{key, month}] : totals.by_customer[key]) =
        bench::Sums{sqlite3_column_int64(rows, 3), sqlite3_column_int64(rows, 4),
                    sqlite3_column_int64(rows, 5)};
  }
  sqlite3_finalize(rows);
  return bench::GroupsJson(totals);
}

}  // namespace rival
