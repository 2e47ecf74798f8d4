// SPDX-License-Identifier: Apache-2.0

// Connection and Statement: SQLite behind absl::Status and absl::string_view. Nothing here knows of
// batches. Each file has page sums (page_sums.h), if a Connection made it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/status.h"
#include "muster/os/file_descriptor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::report::sqlite {

// A BLOB among bound values; text otherwise.
struct Blob {
  absl::string_view bytes;
};

inline constexpr size_t kMaxStatements = 64;

// The prepared statements of a connection that are not in use, by their text: to parse a statement
// costs more than to run most of them. Holds kMaxStatements, and begins anew beyond. Not
// thread-safe.
class Statements {
 public:
  Statements() = default;
  ~Statements();
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  // Null: there is none of this text.
  sqlite3_stmt* Take(absl::string_view sql);
  // Takes ownership.
  void Keep(sqlite3_stmt* statement);

 private:
  void Clear();

  absl::flat_hash_map<std::string, sqlite3_stmt*> unused_;  // owned
};

struct GiveBack {
  void operator()(sqlite3_stmt* statement) const { to->Keep(statement); }

  Statements* to = nullptr;  // not owned; null: of no statement
};

// A prepared statement. Bound text is not copied: it must live until the step that uses it. Not
// thread-safe; must not outlive its connection.
class Statement {
 public:
  Statement() = default;

  // Begins anew with these parameters, in order.
  template <typename... Values>
  Statement& Bind(const Values&... values) {
    Reset();
    int position = 0;
    (BindOne(++position, values), ...);
    return *this;
  }

  // True: a row stands ready. False: there is no further one.
  absl::StatusOr<bool> Step();

  // Calls `row()` at each row, until there is no further one.
  template <typename Row>
  absl::Status ForEach(Row row) {
    for (;;) {
      MUSTER_ASSIGN_OR_RETURN(const bool found, Step());
      if (!found) return absl::OkStatus();
      row();
    }
  }
  // What `row()` makes of each.
  template <typename Row>
  absl::StatusOr<std::vector<std::invoke_result_t<Row>>> Collect(Row row) {
    std::vector<std::invoke_result_t<Row>> all;
    MUSTER_RETURN_IF_ERROR(ForEach([&] { all.push_back(row()); }));
    return all;
  }

  // Binds, runs a statement that gives no rows, and ends it.
  template <typename... Values>
  absl::Status Run(const Values&... values) {
    CheckParameters(static_cast<int>(sizeof...(values)));
    return Bind(values...).Finish();
  }

  // Steps through the rest and resets.
  absl::Status Finish();
  // Lets go of the row, and of what the database keeps for it.
  void Reset();

  void BindOne(int position, int64_t value);
  void BindOne(int position, uint64_t value) { BindOne(position, static_cast<int64_t>(value)); }
  void BindOne(int position, int value) { BindOne(position, static_cast<int64_t>(value)); }
  void BindOne(int position, absl::string_view text);
  void BindOne(int position, const std::string& text) {
    BindOne(position, absl::string_view(text));
  }
  void BindOne(int position, const Blob& blob);

  // Of the row that stands ready; columns count from 0. Views live until the next step or reset.
  int64_t Int(int column) const;
  absl::string_view Text(int column) const;
  absl::string_view Bytes(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Connection;
  Statement(sqlite3_stmt* statement, Statements* from) : statement_(statement, GiveBack{from}) {}
  void Note(int code);
  // Stops the process unless the statement has so many parameters: SQLite takes one without a value
  // for NULL.
  void CheckParameters(int values) const;

  std::unique_ptr<sqlite3_stmt, GiveBack> statement_;
  int bind_error_ = 0;  // the first one since Reset
};

inline constexpr absl::Duration kBusyWait = absl::Seconds(2);  // a person's query with a shell

enum class OpenMode { kReadOnly, kWrite, kCreate };

// Not thread-safe.
class Connection {
 public:
  // NotFound: no file, unless kCreate. Otherwise see StatusOf. `busy_wait`: how long SQLite itself
  // waits for a lock that another connection holds. kReadOnly needs no right to write to the folder
  // while there is no writer.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, OpenMode mode,
                                                          absl::Duration busy_wait = kBusyWait);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // As `busy_wait` of Open, from now on.
  void SetBusyWait(absl::Duration busy_wait);

  // Runs statements that are separated by semicolons.
  absl::Status Execute(absl::string_view sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // Rows that the last statement inserted, changed or deleted.
  int64_t Changes() const;
  // The single integer of a query's single row.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  // Whether the file, which is not empty, has page sums.
  bool WritesPageSums() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Connection(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
  Statements statements_;  // gone before the database
};

// A transaction that is rolled back unless it was committed.
class Transaction {
 public:
  // `begin` is "BEGIN" or "BEGIN IMMEDIATE". Not owned.
  static absl::StatusOr<Transaction> Begin(Connection* connection, absl::string_view begin);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Status Commit();

 private:
  explicit Transaction(Connection* connection) : connection_(connection) {}
  Connection* connection_;  // nullptr once it has ended
};

// Locks "<database>-lock" until the descriptor is closed or the process dies: one writer per
// report. base::Busy: another writer, in this process or another, has it.
absl::StatusOr<os::FileDescriptor> LockForWriting(const std::string& database);
// The same, shared with others that call this: of the owners of a report, only the last one writes
// (identity.h). So a suspended owner does not keep the next one out.
absl::StatusOr<os::FileDescriptor> LockForOwner(const std::string& database);
// base::Busy while somebody has that lock. Makes no file.
absl::Status CheckNobodyWrites(const std::string& database);

// The meaning of SQLite's result codes: FULL is ResourceExhausted; BUSY, LOCKED, IOERR and CANTOPEN
// are Unavailable, CORRUPT and NOTADB are DataLoss; READONLY is FailedPrecondition; RANGE, which
// muster's own SQL functions return (connection.cc), is OutOfRange. A page whose checksum does not
// match is DataLoss, too.
absl::Status StatusOf(int code, absl::string_view message);

// "a" with quotes, and those inside of it doubled: any text is a safe SQL identifier.
std::string QuoteIdentifier(absl::string_view name);

}  // namespace muster::report::sqlite
