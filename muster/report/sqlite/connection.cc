// SPDX-License-Identifier: Apache-2.0

// Connection registers two SQL functions that add exactly, because SQLite itself would turn a large
// sum into a rounded float:
//   muster_add_decimal(a, b)   TEXT + TEXT → TEXT, base::Decimal
//   muster_add_int(a, b)       INTEGER + INTEGER → INTEGER, 64 bits
// A sum that does not fit fails the statement with SQLITE_RANGE (OutOfRange); a stored value that
// is no number fails it with SQLITE_CORRUPT (DataLoss).

#include "muster/report/sqlite/connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/base/check.h"
#include "muster/base/damage.h"
#include "muster/base/decimal.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/page_sums.h"

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

void RegisterExactAdd(sqlite3* database) {
  sqlite3_create_function_v2(database, "muster_add_decimal", 2, kFunctionFlags, nullptr, AddDecimal,
                             nullptr, nullptr, nullptr);
  sqlite3_create_function_v2(database, "muster_add_int", 2, kFunctionFlags, nullptr, AddInt,
                             nullptr, nullptr, nullptr);
}

// In a file that is yet to be made; another one stays as it is.
void ReserveSums(sqlite3* database) {
  int bytes = kSumBytes;
  const int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
  MUSTER_CHECK(code == SQLITE_OK, "reserving ", kSumBytes,
               " bytes of each page: ", sqlite3_errstr(code));
}

int OpenFlags(OpenMode mode) {
  const int common = SQLITE_OPEN_NOMUTEX;
  switch (mode) {
    case OpenMode::kReadOnly:
      return common | SQLITE_OPEN_READONLY;
    case OpenMode::kWrite:
      return common | SQLITE_OPEN_READWRITE;
    case OpenMode::kCreate:
      return common | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  }
  return common;
}

// SQLITE_STATIC, without the C cast of its macro.
constexpr sqlite3_destructor_type kNotCopied = nullptr;

// A null pointer would bind NULL: an empty view may have one.
const char* DataOf(absl::string_view bytes) { return bytes.empty() ? "" : bytes.data(); }

absl::StatusCode CodeOf(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
    case SQLITE_CANTOPEN:  // too many open files, say; that there is no file, only Open can tell
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::StatusCode::kFailedPrecondition;
    case SQLITE_RANGE:
      return absl::StatusCode::kOutOfRange;
    default:
      return absl::StatusCode::kInternal;
  }
}

// The transactions of muster itself are short.
constexpr char kWhoLocks[] =
    ": another program has a transaction open in it, an SQL shell or editor perhaps: end it there";

// What the last call on `database`, which ended with `code`, has to say.
absl::Status FailureOf(sqlite3* database, int code) {
  // Of a read of the schema, which may have many pages, SQLite keeps only the primary code.
  const int extended = sqlite3_extended_errcode(database);
  const int64_t page = DamagedPageOf(database);
  if (extended != SQLITE_IOERR_DATA && !(extended == SQLITE_IOERR && page != 0)) {
    const bool is_locked = (code & 0xff) == SQLITE_BUSY;
    absl::Status failure =
        StatusOf(code, absl::StrCat(sqlite3_errmsg(database), is_locked ? kWhoLocks : ""));
    if (absl::IsDataLoss(failure)) base::NoteDamage(base::Damaged::kReport);
    return failure;
  }
  base::NoteDamage(base::Damaged::kReport);
  return absl::DataLossError(absl::StrCat(
      "page ", page,
      " is damaged, its checksum does not match: `muster check --repair` mends the report"));
}

bool IsAbsent(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found;
}

// `path` as a URI which tells SQLite that the file never changes.
std::string ImmutableUri(absl::string_view path) {
  return absl::StrCat(
      "file:", absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}}),
      "?immutable=1");
}

// SQLite creates the files of its log even to read, and cannot where the user may only read.
// Without a log the database file is complete, and can be read as it is. A writer that begins
// meanwhile goes unnoticed, so this is only for when there is no other way.
bool MustBeImmutable(const std::string& path, OpenMode mode) {
  if (mode != OpenMode::kReadOnly || !IsAbsent(path + "-wal")) return false;
  const std::string folder = std::filesystem::path(path).parent_path();
  return access(folder.empty() ? "." : folder.c_str(), W_OK) != 0;
}

}  // namespace

absl::Status StatusOf(int code, absl::string_view message) {
  return absl::Status(CodeOf(code), absl::StrCat("SQLite: ", message));
}

std::string QuoteIdentifier(absl::string_view name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

Statements::~Statements() { Clear(); }

void Statements::Clear() {
  for (const auto& [sql, statement] : unused_) sqlite3_finalize(statement);
  unused_.clear();
}

sqlite3_stmt* Statements::Take(absl::string_view sql) {
  const auto found = unused_.find(sql);
  if (found == unused_.end()) return nullptr;
  sqlite3_stmt* const statement = found->second;
  unused_.erase(found);
  return statement;
}

void Statements::Keep(sqlite3_stmt* statement) {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);  // texts that are not copied may be gone
  // Some of them answer what was so when they were prepared.
  const absl::string_view sql = sqlite3_sql(statement);
  if (absl::StartsWith(sql, "PRAGMA")) {
    sqlite3_finalize(statement);
    return;
  }
  if (unused_.size() >= kMaxStatements) Clear();
  if (!unused_.try_emplace(sql, statement).second) sqlite3_finalize(statement);
}

void Statement::Note(int code) {
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::CheckParameters(int values) const {
  const int parameters = sqlite3_bind_parameter_count(statement_.get());
  MUSTER_CHECK(parameters == values, "parameters ", parameters, ", values ", values, ": ",
               sqlite3_sql(statement_.get()));
}

void Statement::BindOne(int position, int64_t value) {
  Note(sqlite3_bind_int64(statement_.get(), position, value));
}

void Statement::BindOne(int position, absl::string_view text) {
  Note(sqlite3_bind_text64(statement_.get(), position, DataOf(text), text.size(), kNotCopied,
                           SQLITE_UTF8));
}

void Statement::BindOne(int position, const Blob& blob) {
  Note(sqlite3_bind_blob64(statement_.get(), position, DataOf(blob.bytes), blob.bytes.size(),
                           kNotCopied));
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) {
    return absl::InternalError(absl::StrCat("SQLite: bind: ", sqlite3_errstr(bind_error_)));
  }
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  absl::Status status = FailureOf(sqlite3_db_handle(statement_.get()), code);
  Reset();
  return status;
}

absl::Status Statement::Finish() {
  absl::StatusOr<bool> row = true;
  while (row.ok() && *row) row = Step();
  Reset();
  return row.status();
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  bind_error_ = SQLITE_OK;
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

absl::string_view Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return "";
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return absl::string_view(reinterpret_cast<const char*>(text), static_cast<size_t>(bytes));
}

absl::string_view Statement::Bytes(int column) const {
  const void* blob = sqlite3_column_blob(statement_.get(), column);
  if (blob == nullptr) return "";
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return absl::string_view(static_cast<const char*>(blob), static_cast<size_t>(bytes));
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Connection::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Connection::~Connection() = default;

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, OpenMode mode,
                                                             absl::Duration busy_wait) {
  sqlite3* raw = nullptr;
  const bool immutable = MustBeImmutable(path, mode);
  const std::string name = immutable ? ImmutableUri(path) : path;
  const int flags = OpenFlags(mode) | (immutable ? SQLITE_OPEN_URI : 0);
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, PageSumsVfs());
  std::unique_ptr<Connection> connection(new Connection(raw));  // closes it on error, too
  if (code == SQLITE_CANTOPEN && mode != OpenMode::kCreate && IsAbsent(path)) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such file"));
  }
  if (code != SQLITE_OK) {
    return base::Annotate(StatusOf(code, raw == nullptr ? "no memory" : sqlite3_errmsg(raw)), path);
  }
  connection->SetBusyWait(busy_wait);
  RegisterExactAdd(raw);
  if (mode == OpenMode::kCreate) ReserveSums(raw);
  // What a tampered schema says must not run our functions.
  MUSTER_RETURN_IF_ERROR(connection->Execute("PRAGMA trusted_schema = OFF"));
  return connection;
}

void Connection::SetBusyWait(absl::Duration busy_wait) {
  sqlite3_busy_timeout(database_.get(), static_cast<int>(absl::ToInt64Milliseconds(busy_wait)));
}

absl::Status Connection::Execute(absl::string_view sql) {
  const int code =
      sqlite3_exec(database_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : FailureOf(database_.get(), code);
}

absl::StatusOr<Statement> Connection::Prepare(absl::string_view sql) {
  if (sqlite3_stmt* const again = statements_.Take(sql); again != nullptr) {
    return Statement(again, &statements_);
  }
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return FailureOf(database_.get(), code);
  return Statement(raw, &statements_);
}

int64_t Connection::Changes() const { return sqlite3_changes64(database_.get()); }

absl::StatusOr<int64_t> Connection::QueryInt(absl::string_view sql) {
  MUSTER_ASSIGN_OR_RETURN(Statement query, Prepare(sql));
  MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? query.Int(0) : 0;
}

bool Connection::WritesPageSums() const { return sqlite::WritesPageSums(database_.get()); }

absl::StatusOr<Transaction> Transaction::Begin(Connection* connection, absl::string_view begin) {
  MUSTER_RETURN_IF_ERROR(connection->Execute(begin));
  return Transaction(connection);
}

Transaction::Transaction(Transaction&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)) {}

// SQLite has rolled back by itself after some errors; then there is nothing left to do, and saying
// so is no error worth telling.
Transaction::~Transaction() {
  if (connection_ != nullptr) connection_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  MUSTER_RETURN_IF_ERROR(connection_->Execute("COMMIT"));
  connection_ = nullptr;
  return absl::OkStatus();
}

namespace {

// A file beside the database, because closing a second descriptor of the database itself would drop
// the locks that SQLite holds on it.
std::string LockFileOf(const std::string& database) { return absl::StrCat(database, "-lock"); }

// ", process 123", where the kernel's list of locks tells who holds that of the file; flock does
// not. A line of it: "1: FLOCK  ADVISORY  WRITE 123 fe:00:4711 0 EOF".
std::string LockHolder(const os::FileDescriptor& lock) {
  struct stat file = {};
  if (fstat(lock.get(), &file) != 0) return "";
  const std::string place = absl::StrFormat("%02x:%02x:%d", major(file.st_dev), minor(file.st_dev),
                                            static_cast<uint64_t>(file.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    // 0: a process outside of this container.
    if (words.size() > 5 && words[1] == "FLOCK" && words[5] == place && words[4] != "0") {
      return absl::StrCat(", process ", words[4]);
    }
  }
  return "";
}

absl::Status TakeLock(const os::FileDescriptor& lock, int kind, const std::string& database) {
  if (flock(lock.get(), kind | LOCK_NB) == 0) return absl::OkStatus();
  return base::Busy(absl::StrCat("report ", database, " is used by another process",
                                 LockHolder(lock), "; stop it first"));
}

absl::StatusOr<os::FileDescriptor> OpenLocked(const std::string& database, int kind) {
  const std::string path = LockFileOf(database);
  os::FileDescriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.get() < 0) return absl::ErrnoToStatus(errno, path);
  MUSTER_RETURN_IF_ERROR(TakeLock(lock, kind, database));
  return lock;
}

}  // namespace

absl::StatusOr<os::FileDescriptor> LockForWriting(const std::string& database) {
  return OpenLocked(database, LOCK_EX);
}

absl::StatusOr<os::FileDescriptor> LockForOwner(const std::string& database) {
  return OpenLocked(database, LOCK_SH);
}

absl::Status CheckNobodyWrites(const std::string& database) {
  const std::string path = LockFileOf(database);
  const os::FileDescriptor lock(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.get() < 0 && errno == ENOENT) return absl::OkStatus();
  if (lock.get() < 0) return absl::ErrnoToStatus(errno, path);
  return TakeLock(lock, LOCK_EX, database);
}

}  // namespace muster::report::sqlite
