// SPDX-License-Identifier: Apache-2.0
#include "muster/input/content_kind.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/input/byte_scan.h"
#include "muster/input/json_members.h"

namespace muster::input {
namespace {

using Kind = InputFormat::Kind;

// Of so many unreadable records, and no readable one like them, an input is of another kind. Fewer
// are rejected one by one: they may be damaged ones among others.
constexpr int kFewRecords = 3;
// At the end of an input that is held against padding.
constexpr size_t kTailBytes = size_t{64} << 10;
constexpr size_t kShownBytes = 40;

absl::Status Refuse(absl::string_view what, absl::string_view to_do) {
  return absl::InvalidArgumentError(absl::StrCat("the input is ", what, ": ", to_do));
}

// Kinds of files by the bytes that they begin with.

struct Magic {
  size_t offset;
  absl::string_view bytes;
  absl::string_view what;
  absl::string_view to_do;
  bool may_be_text = false;  // the bytes alone could begin a text
};

constexpr absl::string_view kExport = "export its records as CSV or JSON lines first";

const Magic kMagics[] = {
    {0, "\x1F\x8B", "compressed with gzip",
     "unpack it first, for example with gzip -dc FILE > UNPACKED"},
    {0, "BZh", "compressed with bzip2",
     "unpack it first, for example with bzip2 -dc FILE > UNPACKED", true},
    {0,
     absl::string_view("\xFD"
                       "7zXZ\0",
                       6),
     "compressed with xz", "unpack it first, for example with xz -dc FILE > UNPACKED"},
    {0, "\x28\xB5\x2F\xFD", "compressed with zstd",
     "unpack it first, for example with zstd -dc FILE > UNPACKED"},
    {0, "\x04\x22\x4D\x18", "compressed with lz4",
     "unpack it first, for example with lz4 -dc FILE > UNPACKED"},
    {0, "\x1F\x9D", "compressed with compress",
     "unpack it first, for example with gzip -dc FILE > UNPACKED"},
    {0, "7z\xBC\xAF\x27\x1C", "a 7-Zip archive", "unpack it first, for example with 7z x FILE"},
    {0, "Rar!\x1A\x07", "a RAR archive", "unpack it first"},
    {257, "ustar", "a tar archive",
     "unpack it first, for example with tar -xf FILE, and submit the files in it", true},
    {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "an old workbook or document of Microsoft Office",
     "save its sheet as CSV UTF-8 first"},
    {0, "PAR1", "a Parquet file", kExport, true},
    {0, "ORC", "an ORC file", kExport, true},
    {0, "Obj\x01", "an Avro file", kExport},
    {0, "ARROW1", "an Arrow file", kExport, true},
    {0, absl::string_view("SQLite format 3\0", 16), "an SQLite database", kExport},
    {0, "%PDF-", "a PDF document", "export the data that it was made of as CSV", true},
};

// Whether `text` has bytes that no text has.
bool HasBinary(absl::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x07 || (c > 0x0D && c < 0x1B); };
  return std::any_of(text.begin(), text.end(), is_control) ||
         base::FirstInvalidUtf8(text) < text.size();
}

absl::Status CheckZip(absl::string_view text) {
  if (!absl::StartsWith(text, "PK\x03\x04") && !absl::StartsWith(text, "PK\x05\x06")) {
    return absl::OkStatus();
  }
  if (absl::StrContains(text, "xl/")) {
    return Refuse("an Excel workbook", "save its sheet as CSV UTF-8 first");
  }
  if (absl::StrContains(text, "opendocument")) {
    return Refuse("an OpenDocument file", "save its sheet as CSV in UTF-8 first");
  }
  return Refuse(
      "a ZIP archive",
      "unpack it first, for example with unzip -p FILE > UNPACKED where it holds one file");
}

absl::Status CheckMagic(absl::string_view text) {
  MUSTER_RETURN_IF_ERROR(CheckZip(text));
  for (const Magic& magic : kMagics) {
    if (text.substr(std::min(magic.offset, text.size()), magic.bytes.size()) != magic.bytes) {
      continue;
    }
    if (magic.may_be_text && !HasBinary(text)) continue;
    return Refuse(magic.what, magic.to_do);
  }
  return absl::OkStatus();
}

// Encodings.

absl::Status Convert(absl::string_view encoding) {
  return absl::InvalidArgumentError(
      absl::StrCat("the input is ", encoding, ", not UTF-8: convert it, for example with iconv -f ",
                   encoding, " -t UTF-8"));
}

// ASCII in UTF-16 and UTF-32 has its NUL bytes at the same places.
absl::Status CheckWideWithoutMark(absl::string_view text) {
  size_t nuls[4] = {};
  for (size_t i = 0; i < text.size(); ++i) nuls[i % 4] += text[i] == '\0' ? 1 : 0;
  const size_t each = std::max<size_t>(text.size() / 4, 1);
  const auto many = [&](size_t place) { return nuls[place] > each * 6 / 10; };
  const auto few = [&](size_t place) { return nuls[place] < each / 10 + 1; };
  if (few(0) && many(1) && many(2) && many(3)) return Convert("UTF-32LE");
  if (many(0) && many(1) && many(2) && few(3)) return Convert("UTF-32BE");
  if (few(0) && many(1) && few(2) && many(3)) return Convert("UTF-16LE");
  if (many(0) && few(1) && many(2) && few(3)) return Convert("UTF-16BE");
  return absl::OkStatus();
}

// Calls `visit` with each line of `text` that is no empty one, without its line end, and its number
// from 1. `is_all` false: the last line may go on behind the text, and is left out.
template <typename Visit>
void ForEachWholeLine(absl::string_view text, bool is_all, Visit visit) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos && !is_all) return;
    const absl::string_view line = WithoutLineEnd(text.substr(0, end));
    text.remove_prefix(end == absl::string_view::npos ? text.size() : end + 1);
    if (!line.empty()) visit(line, number);
  }
}

// Text in an encoding of one byte for each letter has no letters of UTF-8 but ASCII, and a binary
// file few lines that could be read. A NUL here and there is UTF-8, and spoils its record alone.
absl::Status CheckEncoding(absl::string_view text, bool is_all) {
  int lines = 0, unreadable = 0, with_nul = 0, letters_of_utf8 = 0;
  int64_t first_line = 0;
  size_t first_byte = 0;
  ForEachWholeLine(text, is_all, [&](absl::string_view line, int64_t number) {
    ++lines;
    const size_t wrong = base::FirstInvalidUtf8(line);
    const size_t bad = std::min(wrong, line.find('\0'));
    if (bad >= line.size()) {
      letters_of_utf8 += IsAscii(line) ? 0 : 1;
      return;
    }
    ++(wrong < line.size() ? unreadable : with_nul);
    if (unreadable + with_nul > 1) return;
    first_line = number;
    first_byte = bad + 1;
  });
  if (with_nul > lines / 10) unreadable += with_nul;
  if (unreadable < kFewRecords || letters_of_utf8 > unreadable / 10) return absl::OkStatus();
  const std::string hint = EncodingHint(text);
  return absl::InvalidArgumentError(
      absl::StrCat("the input is not UTF-8: ", unreadable, " of its first ", lines,
                   " lines are not, at first byte ", first_byte, " of line ", first_line,
                   hint.empty() ? ". It seems to be binary data, and no text" : hint));
}

// Lines.

absl::Status CheckLineEnds(absl::string_view text, Kind kind) {
  size_t newlines = 0, alone = 0, doubled = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    newlines += text[i] == '\n' ? 1 : 0;
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] == '\n') continue;
    const bool is_doubled = text.substr(i + 1, 2) == "\r\n";
    ++(is_doubled ? doubled : alone);
    i += is_doubled ? 1 : 0;
  }
  // A quoted field of a CSV may hold any number of CRs.
  if (alone > newlines && (newlines == 0 || kind != Kind::kCsv)) {
    return LineEndError(false);
  }
  return doubled > 0 && doubled >= newlines ? LineEndError(true) : absl::OkStatus();
}

absl::Status CheckNulPadding(absl::string_view text) {
  const size_t nuls = std::min(text.find_first_not_of('\0'), text.size());
  if (nuls == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the input begins with ", nuls == text.size() ? "at least " : "", nuls,
                   nuls == 1 ? " NUL byte" : " NUL bytes",
                   ": a part of it was not written, as after a crash or a copy that was cut off"));
}

// What stands instead of records.

bool BeginsMarkup(absl::string_view text) {
  const std::string start = absl::AsciiStrToLower(text.substr(0, kShownBytes));
  return absl::StartsWith(start, "<!doctype html") || absl::StartsWith(start, "<html") ||
         absl::StartsWith(start, "<head");
}

absl::Status CheckMarkup(absl::string_view text) {
  if (BeginsMarkup(text)) {
    return Refuse("an HTML page",
                  "perhaps what a web server answered instead of the file; look at it");
  }
  if (absl::StartsWith(text, "<?xml")) return Refuse("an XML document", kExport);
  return absl::OkStatus();
}

absl::string_view FirstLine(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  return absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('\n')));
}

// Whether the first line of `text` begins a JSON object that goes on behind it.
bool IsSpreadJson(absl::string_view text) {
  const absl::string_view line = FirstLine(text);
  return line == "{" || (absl::StartsWith(line, "{") && absl::EndsWith(line, ","));
}

// Whether the first line of `text` begins an array of objects that goes on behind it.
bool IsSpreadArray(absl::string_view text) {
  absl::string_view line = FirstLine(text);
  if (nlohmann::json::accept(line.begin(), line.end())) return false;
  if (!absl::ConsumePrefix(&line, "[")) return false;
  line = absl::StripLeadingAsciiWhitespace(line);
  return line.empty() || absl::StartsWith(line, "{");
}

absl::Status CheckJsonLines(absl::string_view text, bool is_all) {
  int lines = 0, objects = 0;
  absl::string_view first;
  ForEachWholeLine(text, is_all, [&](absl::string_view line, int64_t) {
    if (objects > 0) return;
    if (lines++ == 0) first = line;
    objects += nlohmann::json::parse(line.begin(), line.end(), nullptr, false).is_object() ? 1 : 0;
  });
  const bool is_array = IsSpreadArray(text);
  if (objects > 0 && !is_array) return absl::OkStatus();
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (is_array || absl::StartsWith(start, "[")) {
    return Refuse(
        "one JSON array, not JSON lines",
        "write each object on a line of its own, for example with jq -c '.[]' FILE > LINES");
  }
  if (IsSpreadJson(start) && lines > 1) {
    return Refuse("JSON whose objects span several lines",
                  "write each object on a line of its own, for example with jq -c . FILE > LINES");
  }
  if (lines < kFewRecords) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "none of the first ", lines, " lines is a JSON object; the first is ",
      base::Quoted(base::Printable(first, kShownBytes)), ": is `format: jsonl` of the job right?"));
}

// Wide records are more bytes than other checks look at.
absl::Status CheckMembersOfFirst(const ByteSource& source, const InputFormat& format,
                                 absl::string_view text, bool is_all) {
  if (is_all || std::count(text.begin(), text.end(), '\n') >= kLookedAtRecords) {
    return CheckMembers(format, text, is_all);
  }
  Window window(&source, 0, kLookedAtWideBytes + 1);
  MUSTER_RETURN_IF_ERROR(window.Require(kLookedAtWideBytes));
  absl::string_view more = window.text().substr(0, kLookedAtWideBytes);
  absl::ConsumePrefix(&more, kUtf8Mark);
  return CheckMembers(format, more, window.at_end() && window.text().size() <= kLookedAtWideBytes);
}

// Excel's own way to name the delimiter in the file.
absl::Status CheckSepLine(absl::string_view text) {
  const absl::string_view line = WithoutLineEnd(text.substr(0, text.find('\n')));
  if (line.size() != 5 || !absl::StartsWithIgnoreCase(line, "sep=")) return absl::OkStatus();
  const std::string delimiter = line[4] == '\t' ? "\\t" : std::string(line.substr(4));
  return absl::InvalidArgumentError(absl::StrCat("the input begins with ", base::Quoted(line),
                                                 ", which only Excel reads: delete this line, and "
                                                 "write `delimiter: \"",
                                                 delimiter, "\"` below `input` in the job file"));
}

absl::Status CheckCsv(const InputFormat& format, absl::string_view text) {
  MUSTER_RETURN_IF_ERROR(CheckSepLine(text));
  const absl::string_view line = FirstLine(text);
  const bool is_json =
      absl::StartsWith(line, "{\"") || absl::StartsWith(line, "[{") || line == "{" || line == "[";
  if (!format.header || !is_json) return absl::OkStatus();
  return Refuse("JSON, not CSV",
                "is `format: csv` of the job right? JSON lines are `format: jsonl`");
}

// Of a source that has stopped growing: the end is not padded with NUL bytes.
absl::Status CheckEnd(const ByteSource& source) {
  const uint64_t size = source.size();
  std::string tail(std::min<uint64_t>(size, kTailBytes), '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t read,
                          source.Read(size - tail.size(), tail.data(), tail.size()));
  const absl::string_view text = absl::string_view(tail).substr(0, read);
  const size_t last = text.find_last_not_of('\0');
  const size_t nuls = text.size() - (last == absl::string_view::npos ? 0 : last + 1);
  if (nuls == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the input ends with ", nuls == text.size() ? "at least " : "", nuls,
      nuls == 1 ? " NUL byte" : " NUL bytes", ", from byte ", size - nuls + 1,
      " on: it was not wholly written, or padded. Take them away, for example with tr -d '\\000'"));
}

}  // namespace

absl::Status CheckMark(absl::string_view text) {
  if (absl::StartsWith(text, absl::string_view("\xFF\xFE\0\0", 4)) ||
      absl::StartsWith(text, absl::string_view("\0\0\xFE\xFF", 4))) {
    return Convert("UTF-32");
  }
  if (absl::StartsWith(text, "\xFF\xFE") || absl::StartsWith(text, "\xFE\xFF")) {
    return Convert("UTF-16");
  }
  return absl::OkStatus();
}

absl::Status LineEndError(bool doubled) {
  if (doubled) {
    return absl::InvalidArgumentError(
        "the input's lines end with CR CR LF, as of a file that was converted twice; they must end "
        "with LF or CRLF: convert it, for example with tr -d '\\r'");
  }
  return absl::InvalidArgumentError(
      "the input's lines end with CR alone; they must end with LF or CRLF: convert it, for example "
      "with tr '\\r' '\\n'");
}

std::string EncodingHint(absl::string_view text) {
  bool has_controls = false, has_c1 = false, has_letters = false;
  for (const unsigned char c : text) {
    has_controls |= c < 0x07 || (c > 0x0D && c < 0x1B);
    has_c1 |= c >= 0x80 && c < 0xA0;
    has_letters |= c >= 0xA0;
  }
  if (has_controls || !(has_c1 || has_letters)) return "";
  const absl::string_view encoding = has_c1 ? "WINDOWS-1252" : "LATIN1";
  return absl::StrCat(". Its encoding is probably ", has_c1 ? "Windows-1252" : "Latin-1",
                      ": convert it, for example with iconv -f ", encoding, " -t UTF-8");
}

absl::Status CheckContentKind(const ByteSource& source, const InputFormat& format) {
  Window window(&source, 0, kLookedAtBytes + 1);
  MUSTER_RETURN_IF_ERROR(window.Require(kLookedAtBytes));
  const bool is_all = window.at_end() && window.text().size() <= kLookedAtBytes;
  absl::string_view text = window.text().substr(0, kLookedAtBytes);
  MUSTER_RETURN_IF_ERROR(CheckMark(text));
  if (absl::StartsWith(text, kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  if (text.empty()) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckMagic(text));
  MUSTER_RETURN_IF_ERROR(CheckWideWithoutMark(text));
  MUSTER_RETURN_IF_ERROR(CheckNulPadding(text));
  MUSTER_RETURN_IF_ERROR(CheckLineEnds(text, format.kind));
  MUSTER_RETURN_IF_ERROR(CheckEncoding(text, is_all));
  // Lines may be those of a page.
  if (format.kind != Kind::kLines) {
    MUSTER_RETURN_IF_ERROR(CheckMarkup(absl::StripLeadingAsciiWhitespace(text)));
  }
  if (format.kind == Kind::kCsv) MUSTER_RETURN_IF_ERROR(CheckCsv(format, text));
  if (format.kind == Kind::kJsonl) {
    MUSTER_RETURN_IF_ERROR(CheckJsonLines(text, is_all));
    MUSTER_RETURN_IF_ERROR(CheckMembersOfFirst(source, format, text, is_all));
  }
  return source.size() == kStillGrowing ? absl::OkStatus() : CheckEnd(source);
}

}  // namespace muster::input
