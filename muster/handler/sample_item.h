// SPDX-License-Identifier: Apache-2.0

// SampleItem: a work item with its own text, for testing a handler without a queue.
//
//   SampleItem item({{"6", "2.55"}, {"-1", "3.39"}});
//   Results results(&schema, item.size());
//   handler.Process(item.get(), results);
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/handler/work_item.h"

namespace muster::handler {

// The rows' lines are 2, 3, …, as in a file with a header.
class SampleItem {
 public:
  explicit SampleItem(std::vector<std::vector<std::string>> rows, ItemContext context = {})
      : rows_(std::move(rows)) {
    fields_.reserve(rows_.size());
    std::vector<Transaction> transactions;
    transactions.reserve(rows_.size());
    for (const std::vector<std::string>& row : rows_) {
      fields_.emplace_back(row.begin(), row.end());
      const int ordinal = static_cast<int>(transactions.size());
      transactions.emplace_back(ordinal, ordinal + 2, fields_.back().data(),
                                static_cast<int>(row.size()));
    }
    item_ = std::make_unique<WorkItem>(std::move(context), std::move(transactions));
  }

  const WorkItem& get() const { return *item_; }
  const Transaction& operator[](int ordinal) const {
    return item_->transactions()[static_cast<size_t>(ordinal)];
  }
  int size() const { return static_cast<int>(rows_.size()); }

 private:
  const std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<absl::string_view>> fields_;
  std::unique_ptr<WorkItem> item_;
};

}  // namespace muster::handler
