#include "cli/output/table.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/printable.h"

namespace muster::cli {
namespace {

// Columns on a terminal: code points, which is right for all but wide and combining characters.
size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void PrintPadded(absl::string_view text, size_t width, Align align, bool last, std::ostream& out) {
  const std::string padding(width - std::min(width, Width(text)), ' ');
  if (align == Align::kRight) out << padding;
  out << std::string(text);
  if (align == Align::kLeft && !last) out << padding;
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string Printable(absl::string_view text) { return base::Printable(text, text.size()); }

std::string Grouped(uint64_t number) {
  std::string digits = absl::StrCat(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

void Table::AddColumn(std::string title, Align align) {
  columns_.push_back({std::move(title), align});
}

void Table::AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

void Table::PrintTo(std::ostream& out) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  const auto print_row = [&](auto cell_of) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) out << "  ";
      PrintPadded(cell_of(i), widths[i], columns_[i].align, i + 1 == columns_.size(), out);
    }
    out << "\n";
  };
  print_row([&](size_t i) { return absl::AsciiStrToUpper(columns_[i].title); });
  for (const auto& row : rows_) {
    print_row([&](size_t i) { return Printable(row[i]); });
  }
}

void Table::PrintCsvTo(std::ostream& out) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    out << (i > 0 ? "," : "") << CsvField(columns_[i].title);
  }
  out << "\n";
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) out << (i > 0 ? "," : "") << CsvField(row[i]);
    out << "\n";
  }
}

std::string Counted(uint64_t number, absl::string_view thing) {
  return absl::StrCat(Grouped(number), " ", thing, number == 1 ? "" : "s");
}

}  // namespace muster::cli
