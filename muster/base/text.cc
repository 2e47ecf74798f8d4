// SPDX-License-Identifier: Apache-2.0
#include "muster/base/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace muster::base {

namespace {

struct Character {
  size_t bytes = 0;  // 0: not a valid character
  uint32_t code_point = 0;
};

// How many bytes follow the first one, and the least code point that needs so many.
struct Form {
  size_t more;
  uint32_t first_bits;
  uint32_t least;
};

bool FormOf(unsigned char first, Form* form) {
  if (first < 0x80) {
    *form = {0, first, 0};
  } else if (first >= 0xc2 && first < 0xe0) {
    *form = {1, first & 0x1fu, 0x80};
  } else if (first >= 0xe0 && first < 0xf0) {
    *form = {2, first & 0x0fu, 0x800};
  } else if (first >= 0xf0 && first < 0xf5) {
    *form = {3, first & 0x07u, 0x10000};
  } else {
    return false;
  }
  return true;
}

Character Decode(absl::string_view text) {
  Form form;
  if (text.empty() || !FormOf(static_cast<unsigned char>(text[0]), &form)) return {};
  if (text.size() <= form.more) return {};
  uint32_t code_point = form.first_bits;
  for (size_t i = 1; i <= form.more; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {};
    code_point = code_point << 6 | (byte & 0x3fu);
  }
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < form.least || code_point > 0x10ffff || is_surrogate) return {};
  return {form.more + 1, code_point};
}

// Bytes at the start of `text` that are ASCII for certain; a multiple of 8.
size_t AsciiWords(absl::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  size_t at = 0;
  for (uint64_t word; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  return at;
}

}  // namespace

size_t Utf8Prefix(absl::string_view text) { return Decode(text).bytes; }

size_t PrintableUtf8Prefix(absl::string_view text) {
  const Character c = Decode(text);
  const bool is_control = c.code_point < 0x20 || (c.code_point >= 0x7f && c.code_point < 0xa0) ||
                          c.code_point == 0x2028 || c.code_point == 0x2029;
  return is_control ? 0 : c.bytes;
}

size_t FirstInvalidUtf8(absl::string_view text) {
  size_t at = AsciiWords(text);
  while (at < text.size()) {
    const size_t bytes = Utf8Prefix(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
    if (bytes > 1) at += AsciiWords(text.substr(at));
  }
  return at;
}

std::string Printable(absl::string_view text, size_t max_bytes) {
  std::string printable;
  while (!text.empty()) {
    const size_t size = PrintableUtf8Prefix(text);
    const size_t taken = std::max<size_t>(size, 1);
    if (printable.size() + taken > max_bytes) break;
    if (size == 0) {
      printable += '?';
    } else {
      printable.append(text.data(), size);
    }
    text.remove_prefix(taken);
  }
  return printable;
}

namespace {

// Letters to insert, drop, change or (neighbours) swap to make `b` of `a`.
size_t Slips(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(absl::string_view name, absl::Span<const std::string> names) {
  const std::string wanted = absl::AsciiStrToLower(name.substr(0, kMaxQuotedBytes));
  size_t least = std::max<size_t>(1, wanted.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : names) {
    const absl::string_view start = absl::string_view(candidate).substr(0, kMaxQuotedBytes);
    const size_t slips = Slips(wanted, absl::AsciiStrToLower(start));
    if (slips >= least || slips >= candidate.size()) continue;
    least = slips;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, absl::Span<const std::string> names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", Quoted(nearest), "?");
}

std::string ListNames(absl::Span<const std::string> names) {
  const absl::Span<const std::string> shown = names.subspan(0, kMaxListedNames);
  std::string list = absl::StrJoin(
      shown, ", ", [](std::string* out, const std::string& name) { out->append(Quoted(name)); });
  if (shown.size() < names.size()) {
    absl::StrAppend(&list, " and ", names.size() - shown.size(), " more");
  }
  return list;
}

std::string Quoted(absl::string_view text) {
  std::string shown;
  size_t at = 0;
  while (at < text.size()) {
    const size_t printable = PrintableUtf8Prefix(text.substr(at));
    const absl::string_view character = text.substr(at, std::max<size_t>(printable, 1));
    if (at + character.size() > kMaxQuotedBytes) break;
    absl::StrAppend(&shown, printable > 1 ? character : absl::CHexEscape(character));
    at += character.size();
  }
  return absl::StrCat("'", shown, at < text.size() ? "…'" : "'");
}

std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", R"('\'')"}}), "'");
}

}  // namespace muster::base
