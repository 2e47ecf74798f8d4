// SPDX-License-Identifier: Apache-2.0

// Receipt: the proof of a batch, and the form of its lines: "name value", with "\n" after each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::report {

// EscapeName writes backslash, line feed and carriage return as \\, \n and \r; UnescapeName reads
// them.
std::string EscapeName(absl::string_view text);
std::string UnescapeName(absl::string_view text);

// RFC 3339, UTC, with as many decimals as there are; "never" for absl::InfinitePast().
std::string ReceiptTime(absl::Time time);
std::optional<absl::Time> ParseReceiptTime(absl::string_view text);

// A line "items_by_version ITEMS VERSION" for each version.
std::string VersionLines(const std::map<std::string, int64_t>& items_by_version);

// Receipt: the proof of a batch. It says where every transaction went, and seals the stored rows
// that show it, so that any reader of the store can verify it (report/audit.h).
//
// Its canonical form is text: one "name value" line each, in this order, "\n" after each line. The
// checksum is the SHA-256 of that text.
//
//   muster-receipt 1                    the form's version
//   batch 7
//   revision 1                          2, 3 … when issued again after a redrive
//   job retail
//   job_revision 5f1c…
//   handler_version 1                   that the batch is bound to; empty: to none
//   items 1084                          work items, each with exactly one row
//   transactions 541909                 = aggregated + rejected + dead_lettered
//   aggregated 541909
//   rejected 0
//   dead_lettered 0
//   items_dead 0
//   items_by_version 1084 1             one line per handler version: items, version
//   attempts 1084                       handler starts
//   duplicates_dropped 0                when it was issued
//   conflicts 0                         likewise
//   created 2011-12-09T12:50:00Z
//   first_counted 2011-12-09T12:50:01.000042Z
//   last_counted 2011-12-09T12:50:02.000042Z
//   ack_survives power                  process or power: what an acknowledged put outlives
//   items_sha256 …                      of the items' rows (report/audit.h)
//   rows_sha256 …                       of the groups' rows
//   rejections_sha256 …                 of the rejections
//
// Backslash, line feed and carriage return in a name are written \\, \n and \r.

// What an acknowledged put of this batch's items survives.
enum class AckSurvives { kProcess, kPower };

// A sentence for people.
absl::string_view AckSurvivesWords(AckSurvives survives);

// What the batch's ledger knows of a sealed batch.
struct BatchFacts {
  uint64_t batch = 0;
  std::string job;
  std::string job_revision;
  std::string handler_version;
  uint64_t items = 0;
  uint64_t transactions = 0;
  absl::Time created;
  AckSurvives ack_survives = AckSurvives::kProcess;
};

struct Receipt : BatchFacts {
  int64_t revision = 1;
  int64_t aggregated = 0;
  int64_t rejected = 0;
  int64_t dead_lettered = 0;
  int64_t items_dead = 0;
  std::map<std::string, int64_t> items_by_version;  // handler version → items
  int64_t attempts = 0;
  int64_t duplicates_dropped = 0;
  int64_t conflicts = 0;
  absl::Time first_counted;  // absl::InfinitePast() for a batch without items
  absl::Time last_counted;
  std::string items_sha256;
  std::string rows_sha256;
  std::string rejections_sha256;

  std::string ToText() const;
  std::string Checksum() const;  // SHA-256 of ToText(), in hex
};

// A receipt as it lies in a store.
struct StoredReceipt {
  std::string text;
  std::string checksum;
};

// DataLoss naming the line that is not as Receipt::ToText writes it.
absl::StatusOr<Receipt> ParseReceipt(absl::string_view text);

}  // namespace muster::report
