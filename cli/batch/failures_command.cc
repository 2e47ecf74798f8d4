// SPDX-License-Identifier: Apache-2.0

// muster batch rejections | dead-letters: what is not in a batch's results, to be taken along.
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/batch/batch_admin.h"
#include "cli/batch/batch_view.h"
#include "cli/batch/commands.h"
#include "cli/batch/failures.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/input/format.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

// Rows of a table unless it is told otherwise: some screens full. Other formats have all.
constexpr int64_t kTableRows = 100;
// What a table shows of a record.
constexpr size_t kShownRecordBytes = 80;

struct FailureOptions {
  CommonOptions common;
  FailureKind kind = FailureKind::kRejected;
  uint64_t batch = 0;
  int64_t limit = 0;  // 0: none was given
  std::string after;
  bool as_input = false;
};

// "ITEM:LINE", as a list says where it goes on.
absl::StatusOr<report::RejectionPosition> ParsePosition(const std::string& text) {
  report::RejectionPosition position;
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &position.item) ||
      !absl::SimpleAtoi(parts[1], &position.line) || position.line < 0) {
    return absl::InvalidArgumentError(
        "must be ITEM:LINE, as the list before said where to go on, such as 12:6401");
  }
  return position;
}

ordered_json JsonOf(const FailedTransaction& failure) {
  ordered_json json = {{"item", failure.item}, {"line", failure.line}, {"reason", failure.reason}};
  if (!failure.record.has_value()) {
    json["record"] = nullptr;
  } else if (base::IsValidUtf8(*failure.record)) {
    json["record"] = *failure.record;
  } else {
    json["record_base64"] = absl::Base64Escape(*failure.record);
  }
  if (failure.retried_in != 0) json["retried_in"] = failure.retried_in;
  if (failure.retry_of_line != 0) json["retry_of_line"] = failure.retry_of_line;
  return json;
}

// Writes the transactions as they come: there may be more than memory should hold.
class FailureWriter {
 public:
  virtual ~FailureWriter() = default;
  virtual void Begin(const FailureReader& reader) {}
  virtual void Write(const FailedTransaction& failure) = 0;
  virtual void End() {}
};

class TableFailures final : public FailureWriter {
 public:
  explicit TableFailures(std::ostream* out) : out_(*out) {}
  void Write(const FailedTransaction& failure) override {
    const std::string record = failure.record.value_or("-");
    std::string shown = base::Printable(record, kShownRecordBytes);
    if (record.size() > kShownRecordBytes) shown += "…";
    report::RejectionRow links;
    links.retried_in = failure.retried_in;
    links.retry_of_line = failure.retry_of_line;
    rows_.push_back({absl::StrCat(failure.item),
                     failure.line == 0 ? "-" : absl::StrCat(failure.line), failure.reason,
                     std::move(shown), RetryText(links)});
    any_retry_ = any_retry_ || !rows_.back().back().empty();
  }
  void End() override {
    Table table;
    table.AddColumns({"item", "line"}, Align::kRight);
    table.AddColumns({"because", "record"});
    if (any_retry_) table.AddColumn("retry");
    for (std::vector<std::string>& row : rows_) {
      if (!any_retry_) row.pop_back();
      table.AddRow(std::move(row));
    }
    table.PrintTo(out_);
  }

 private:
  std::ostream& out_;
  std::vector<std::vector<std::string>> rows_;
  bool any_retry_ = false;
};

class CsvFailures final : public FailureWriter {
 public:
  explicit CsvFailures(std::ostream* out) : out_(*out) {}
  void Begin(const FailureReader&) override { out_ << "item,line,reason,record\n"; }
  void Write(const FailedTransaction& failure) override {
    out_ << failure.item << "," << failure.line << "," << CsvField(failure.reason) << ","
         << CsvField(failure.record.value_or("")) << "\n";
  }

 private:
  std::ostream& out_;
};

class JsonFailures final : public FailureWriter {
 public:
  explicit JsonFailures(std::ostream* out) : out_(*out) {}
  void Begin(const FailureReader&) override { out_ << "["; }
  void Write(const FailedTransaction& failure) override {
    out_ << separator_
         << JsonOf(failure).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    separator_ = ",\n";
  }
  void End() override { out_ << "]\n"; }

 private:
  std::ostream& out_;
  const char* separator_ = "";
};

class YamlFailures final : public FailureWriter {
 public:
  explicit YamlFailures(std::ostream* out) : out_(*out) {}
  void Write(const FailedTransaction& failure) override {
    is_empty_ = false;
    out_ << YamlItem(JsonOf(failure), 0);
  }
  void End() override {
    if (is_empty_) out_ << "[]\n";
  }

 private:
  std::ostream& out_;
  bool is_empty_ = true;
};

// The records alone, behind the header that they were submitted with; without those that a retry
// leaves out, too.
class InputOfFailures final : public FailureWriter {
 public:
  InputOfFailures(std::ostream* out, std::ostream* err) : out_(*out), err_(*err) {}
  void Begin(const FailureReader& reader) override { out_ << reader.header(); }
  void Write(const FailedTransaction& failure) override {
    if (!failure.record.has_value() || failure.open_quote) {
      ++left_out_;
      return;
    }
    out_ << *failure.record << input::LineEndBehind(*failure.record);
  }
  void End() override {
    if (left_out_ == 0) return;
    err_
        << "muster: left out " << Counted(left_out_, "record")
        << ", longer than a record may be, or with a quote that is never closed and would take the "
           "next record with it; mend these at their source\n";
  }

 private:
  std::ostream& out_;
  std::ostream& err_;
  uint64_t left_out_ = 0;
};

std::unique_ptr<FailureWriter> WriterFor(const FailureOptions& options,
                                         const Environment& environment) {
  std::ostream* const out = environment.out;
  if (options.as_input) return std::make_unique<InputOfFailures>(out, environment.err);
  switch (options.common.output) {
    case OutputFormat::kCsv:
      return std::make_unique<CsvFailures>(out);
    case OutputFormat::kJson:
      return std::make_unique<JsonFailures>(out);
    case OutputFormat::kYaml:
      return std::make_unique<YamlFailures>(out);
    case OutputFormat::kTable:
      break;
  }
  return std::make_unique<TableFailures>(out);
}

// Writes up to `limit`, 0: all, and answers whether there are more.
absl::StatusOr<bool> WriteAll(FailureReader* reader, int64_t limit, FailureWriter* writer,
                              bool needs_records) {
  int64_t written = 0;
  const auto room = [&] {
    return limit == 0 ? kMaxFailurePage : static_cast<size_t>(limit - written);
  };
  for (bool is_first = true; limit == 0 || written < limit; is_first = false) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<FailedTransaction> page, reader->Next(room()));
    if (needs_records) MUSTER_RETURN_IF_ERROR(reader->records_problem());
    if (is_first) writer->Begin(*reader);  // not before something can be said
    if (page.empty()) {
      writer->End();
      return false;
    }
    for (const FailedTransaction& failure : page) writer->Write(failure);
    written += static_cast<int64_t>(page.size());
  }
  writer->End();
  FailureReader behind = *reader;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FailedTransaction> next, behind.Next(1));
  return !next.empty();
}

absl::Status Export(const FailureOptions& options, const Environment& environment) {
  report::RejectionPosition after;
  if (!options.after.empty()) {
    MUSTER_ASSIGN_OR_RETURN(after, ParsePosition(options.after));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto admin, OpenBatchAdmin(options.common, environment));
  FailureReader reader(admin.get(), options.batch, options.kind, after);
  const bool is_table = !options.as_input && options.common.output == OutputFormat::kTable;
  const int64_t limit = options.limit == 0 && is_table ? kTableRows : options.limit;
  const std::unique_ptr<FailureWriter> writer = WriterFor(options, environment);
  MUSTER_ASSIGN_OR_RETURN(const bool more,
                          WriteAll(&reader, limit, writer.get(), options.as_input));
  if (!reader.records_problem().ok()) {
    *environment.err << "muster: the records are left out: "
                     << Printable(reader.records_problem().message()) << "\n";
  }
  if (more) {
    *environment.err << "muster: there are more: the same command with --after "
                     << reader.position().item << ":" << reader.position().line << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddFailures(CLI::App* batch, const Environment& environment) {
  const auto add_verb = [&](const char* name, FailureKind kind, const char* about) {
    const auto options = std::make_shared<FailureOptions>();
    options->kind = kind;
    CLI::App* const command = AddCommand(batch, name, about, environment, [options, &environment] {
      return WithListHint(Export(*options, environment), "muster batch list", options->common);
    });
    args::Add(command, "BATCH", &options->batch, "Its number").Required();
    args::Add(command, "--limit", &options->limit, "How many; all, or as a table 100, without it")
        .Check(args::Range(int64_t{1}, int64_t{1'000'000'000}))
        .TypeName("N");
    args::Add(command, "--after", &options->after,
              "Go on there, as the list before said at its end")
        .Check([](const std::string& text) {
          return std::string(ParsePosition(text).status().message());
        })
        .TypeName("ITEM:LINE");
    args::AddFlag(command, "--as-input", &options->as_input,
                  "Print the records alone, behind the header: an input to submit again");
    AddDataDirOrServer(command, &options->common);
    AddController(command, &options->common);
    AddOutput(command, &options->common, Csv::kYes);
  };
  add_verb("rejections", FailureKind::kRejected,
           "The transactions that a batch rejected, with line, reason and record");
  add_verb("dead-letters", FailureKind::kDeadLettered,
           "The transactions of items that were given up, with line, cause and record");
}

}  // namespace muster::cli
