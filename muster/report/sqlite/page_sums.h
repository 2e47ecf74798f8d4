// SPDX-License-Identifier: Apache-2.0

// Page sums: a checksum in each page of a report's file. SQLite has none, and reads a changed digit
// of a sum as it reads any other.
//
//   a page of 4096 bytes
//   +---------------------------------------------------------------+----------------------+
//   | what SQLite stores; the file's header reserves the other 8    | XXH3 of the page and |
//   |                                                               | its number           |
//   +---------------------------------------------------------------+----------------------+
//   0                                                               4088                   4096
//
// A SQLite VFS between SQLite and the file writes the checksum with each page, and verifies it with
// each page that is read. Above it the last 8 bytes are zero, and so they are in the write-ahead
// log, which has checksums of its own. A program without the VFS that moves the log into the file,
// as the sqlite3 shell does after a crash, leaves zeros, which stand for "no checksum": such a page
// is read as it is, until `muster check --repair` or the next change gives it one.
//
// A program without the VFS must not change pages: it would leave a checksum that is not theirs.
// The file's write version (byte 18) is 3, which tells every SQLite to read the file and not to
// write it; above the VFS it is 2.
//
// A file that an older muster made has no checksums, and is read without.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

struct sqlite3;

namespace muster::report::sqlite {

inline constexpr int kPageBytes = 4096;
inline constexpr int kSumBytes = 8;
inline constexpr int kHeaderBytes = 100;               // of page 1: what describes the file
inline constexpr int64_t kApplicationId = 0x6d757374;  // PRAGMA application_id: "must"
// From this PRAGMA user_version on, a report has page sums.
inline constexpr int64_t kFirstSummedVersion = 2;

// The name of the VFS, registered at the first call. Thread-safe.
const char* PageSumsVfs();

// Whether a file with this header has page sums. Three places say so, so that damage to one of them
// does not turn the verification off. False when `header` is shorter than kHeaderBytes.
bool HasPageSums(absl::string_view header);

enum class PageState {
  kSound,
  kUnsummed,  // another program wrote it
  kDamaged,
};
// Of a page of a file with page sums; pages count from 1.
PageState CheckPage(absl::string_view page, int64_t number);

// The page of the file of `database`'s "main" where a read last met damage; 0: none did.
int64_t DamagedPageOf(sqlite3* database);
// Whether the pages that `database` writes to "main" get checksums. The file has its first page.
bool WritesPageSums(sqlite3* database);

}  // namespace muster::report::sqlite
