// SQL functions that add exactly, because SQLite itself would turn a large sum into a rounded
// float:
//   muster_add_decimal(a, b)   TEXT + TEXT → TEXT, base::Decimal
//   muster_add_int(a, b)       INTEGER + INTEGER → INTEGER, 64 bits
// A sum that does not fit fails the statement with SQLITE_RANGE (OutOfRange); a stored value that
// is no number fails it with SQLITE_CORRUPT (DataLoss).
#pragma once

struct sqlite3;

namespace muster::report::sqlite {

void RegisterExactAdd(sqlite3* database);

}  // namespace muster::report::sqlite
