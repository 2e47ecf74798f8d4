// SPDX-License-Identifier: Apache-2.0

// What a handler gets: the schema of its job and, as WorkItem, the slice of a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/output_record.h"
#include "muster/base/trace_context.h"

namespace muster::handler {

// Position of a column in Transaction, of a group in JobSchema::groups.
struct Column {
  int index = -1;
};
struct Group {
  int index = -1;
};

struct MeasureSchema {
  enum class Type { kInt, kDecimal };
  std::string name;
  Type type = Type::kInt;
  int scale = 0;  // decimals kept; 0 for kInt. A value that needs more is refused, never rounded.
};

struct GroupSchema {
  std::string name;
  std::vector<std::string> keys;  // at least one
  std::vector<MeasureSchema> measures;
};

struct JobSchema {
  std::string job;
  std::string revision;
  std::vector<std::string> columns;  // the job file's input.columns, in their order
  std::vector<GroupSchema> groups;
  std::vector<base::OutputColumn> outputs =
      {};  // of the records that it may return; none: no records

  // InvalidArgument naming the missing one and the existing ones.
  absl::StatusOr<Column> FindColumn(absl::string_view name) const;
  absl::StatusOr<Group> FindGroup(absl::string_view name) const;
};

// WorkItem: the slice of a batch that a handler processes at a time.

// One record of the input. Views into the work item: valid during Handler::Process.
class Transaction {
 public:
  Transaction(int ordinal, int64_t line, const absl::string_view* fields, int field_count)
      : ordinal_(ordinal), line_(line), fields_(fields), field_count_(field_count) {}

  // The field of a column, unquoted and unescaped, otherwise as it stands in the input. An absent
  // JSON member or null is "".
  absl::string_view operator[](Column column) const { return fields_[column.index]; }
  absl::Span<const absl::string_view> fields() const {
    return absl::MakeConstSpan(fields_, field_count_);
  }
  // Where it begins in the input: 1-based physical line.
  int64_t line() const { return line_; }
  // Position in its work item, from 0.
  int ordinal() const { return ordinal_; }
  // The same transaction as the only one of an item.
  Transaction Alone() const { return Transaction(0, line_, fields_, field_count_); }

 private:
  int ordinal_;
  int64_t line_;
  const absl::string_view* fields_;
  int field_count_;
};

// What identifies and bounds one attempt at an item.
struct ItemContext {
  uint64_t batch = 0;
  uint32_t index = 0;  // of the item in its batch, from 0
  int attempt = 1;     // handler starts charged, this one included
  bool last_attempt = false;
  // The line of the one transaction that this item is cut down to; see WorkItem::id.
  std::optional<int64_t> only_line;
  absl::Time deadline = absl::InfiniteFuture();
  std::stop_token stop_token;
  std::optional<base::TraceContext> trace;
};

class WorkItem {
 public:
  WorkItem(ItemContext context, std::vector<Transaction> transactions)
      : context_(std::move(context)), transactions_(std::move(transactions)) {}

  // The idempotency key: "batch/index". An item that has failed on all attempts but the last is
  // tried transaction by transaction, each as an item of its own: "batch/index:line".
  std::string id() const;
  uint64_t batch() const { return context_.batch; }
  uint32_t index() const { return context_.index; }
  int attempt() const { return context_.attempt; }
  bool last_attempt() const { return context_.last_attempt; }
  absl::Time deadline() const { return context_.deadline; }
  const std::stop_token& stop_token() const { return context_.stop_token; }
  // The batch's trace, for what the handler calls and records; nullopt: the batch has none.
  const std::optional<base::TraceContext>& trace() const { return context_.trace; }
  absl::Span<const Transaction> transactions() const { return transactions_; }

 private:
  ItemContext context_;
  std::vector<Transaction> transactions_;
};

}  // namespace muster::handler
