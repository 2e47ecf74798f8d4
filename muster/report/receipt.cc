// SPDX-License-Identifier: Apache-2.0
#include "muster/report/receipt.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"

namespace muster::report {

std::string EscapeName(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\r", "\\r"}});
}

std::string UnescapeName(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\\\", "\\"}, {"\\n", "\n"}, {"\\r", "\r"}});
}

std::string ReceiptTime(absl::Time time) {
  if (time == absl::InfinitePast()) return "never";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

std::optional<absl::Time> ParseReceiptTime(absl::string_view text) {
  if (text == "never") return absl::InfinitePast();
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return std::nullopt;
  return time;
}

std::string VersionLines(const std::map<std::string, int64_t>& items_by_version) {
  std::string lines;
  for (const auto& [version, items] : items_by_version) {
    absl::StrAppend(&lines, "items_by_version ", items, " ", EscapeName(version), "\n");
  }
  return lines;
}

namespace {

constexpr absl::string_view kVersion = "1";

absl::string_view SurvivesText(AckSurvives survives) {
  return survives == AckSurvives::kPower ? "power" : "process";
}

// Takes lines of "name value" off a text, in the order that is asked for. After the first mistake
// it does nothing, and status() says which line was wrong.
class LineReader {
 public:
  explicit LineReader(absl::string_view text) : rest_(text) {}

  void Text(absl::string_view name, std::string* value) {
    if (auto taken = Take(name)) *value = UnescapeName(*taken);
  }

  template <typename Number>
  void Count(absl::string_view name, Number* value) {
    auto taken = Take(name);
    if (taken && !absl::SimpleAtoi(*taken, value)) Fail(name);
  }

  void Time(absl::string_view name, absl::Time* value) {
    auto taken = Take(name);
    if (!taken) return;
    if (auto time = ParseReceiptTime(*taken))
      *value = *time;
    else
      Fail(name);
  }

  bool NextIs(absl::string_view name) const {
    return absl::StartsWith(rest_, absl::StrCat(name, " "));
  }

  void Fail(absl::string_view name) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(absl::StrCat("receipt: line '", name, "' is missing or damaged"));
  }

  absl::Status status() const {
    if (!status_.ok() || rest_.empty()) return status_;
    return absl::DataLossError("receipt: there is text behind its last line");
  }

 private:
  std::optional<absl::string_view> Take(absl::string_view name) {
    if (!status_.ok()) return std::nullopt;
    const size_t end = rest_.find('\n');
    if (!NextIs(name) || end == absl::string_view::npos) {
      Fail(name);
      return std::nullopt;
    }
    const absl::string_view value = rest_.substr(name.size() + 1, end - name.size() - 1);
    rest_.remove_prefix(end + 1);
    return value;
  }

  absl::string_view rest_;
  absl::Status status_;
};

void ReadVersions(LineReader* lines, std::map<std::string, int64_t>* items_by_version) {
  while (lines->NextIs("items_by_version")) {
    std::string line;
    lines->Text("items_by_version", &line);
    const size_t space = line.find(' ');
    int64_t items = 0;
    if (space == std::string::npos ||
        !absl::SimpleAtoi(absl::string_view(line).substr(0, space), &items)) {
      return lines->Fail("items_by_version");
    }
    (*items_by_version)[line.substr(space + 1)] = items;
  }
}

void ReadSurvives(LineReader* lines, AckSurvives* survives) {
  std::string text;
  lines->Text("ack_survives", &text);
  *survives = text == "power" ? AckSurvives::kPower : AckSurvives::kProcess;
  if (SurvivesText(*survives) != text) lines->Fail("ack_survives");
}

void ReadCounts(LineReader* lines, Receipt* receipt) {
  lines->Count("items", &receipt->items);
  lines->Count("transactions", &receipt->transactions);
  lines->Count("aggregated", &receipt->aggregated);
  lines->Count("rejected", &receipt->rejected);
  lines->Count("dead_lettered", &receipt->dead_lettered);
  lines->Count("items_dead", &receipt->items_dead);
  ReadVersions(lines, &receipt->items_by_version);
  lines->Count("attempts", &receipt->attempts);
  lines->Count("duplicates_dropped", &receipt->duplicates_dropped);
  lines->Count("conflicts", &receipt->conflicts);
}

}  // namespace

absl::string_view AckSurvivesWords(AckSurvives survives) {
  return survives == AckSurvives::kPower
             ? "an acknowledged put survives a power cut: it was synced to the disk first"
             : "an acknowledged put survives the death of the process, but not a power cut";
}

std::string Receipt::ToText() const {
  std::string text =
      absl::StrCat("muster-receipt ", kVersion, "\nbatch ", batch, "\nrevision ", revision,
                   "\njob ", EscapeName(job), "\njob_revision ", EscapeName(job_revision),
                   "\nhandler_version ", EscapeName(handler_version), "\n");
  absl::StrAppend(&text, "items ", items, "\ntransactions ", transactions, "\naggregated ",
                  aggregated, "\nrejected ", rejected, "\ndead_lettered ", dead_lettered,
                  "\nitems_dead ", items_dead, "\n", VersionLines(items_by_version));
  absl::StrAppend(&text, "attempts ", attempts, "\nduplicates_dropped ", duplicates_dropped,
                  "\nconflicts ", conflicts, "\ncreated ", ReceiptTime(created), "\nfirst_counted ",
                  ReceiptTime(first_counted), "\nlast_counted ", ReceiptTime(last_counted), "\n");
  absl::StrAppend(&text, "ack_survives ", SurvivesText(ack_survives), "\nitems_sha256 ",
                  items_sha256, "\nrows_sha256 ", rows_sha256, "\nrejections_sha256 ",
                  rejections_sha256, "\n");
  return text;
}

std::string Receipt::Checksum() const { return base::Sha256Hex(ToText()); }

absl::StatusOr<Receipt> ParseReceipt(absl::string_view text) {
  LineReader lines(text);
  Receipt receipt;
  std::string version;
  lines.Text("muster-receipt", &version);
  if (version != kVersion) lines.Fail("muster-receipt");
  lines.Count("batch", &receipt.batch);
  lines.Count("revision", &receipt.revision);
  lines.Text("job", &receipt.job);
  lines.Text("job_revision", &receipt.job_revision);
  lines.Text("handler_version", &receipt.handler_version);
  ReadCounts(&lines, &receipt);
  lines.Time("created", &receipt.created);
  lines.Time("first_counted", &receipt.first_counted);
  lines.Time("last_counted", &receipt.last_counted);
  ReadSurvives(&lines, &receipt.ack_survives);
  lines.Text("items_sha256", &receipt.items_sha256);
  lines.Text("rows_sha256", &receipt.rows_sha256);
  lines.Text("rejections_sha256", &receipt.rejections_sha256);
  MUSTER_RETURN_IF_ERROR(lines.status());
  return receipt;
}

}  // namespace muster::report
