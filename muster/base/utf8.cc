#include "muster/base/utf8.h"

#include <cstdint>
#include <cstring>

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

// Most text is ASCII, eight bytes of which are checked at once.
size_t AsciiPrefix(absl::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return i;
}

}  // namespace

size_t Utf8Prefix(absl::string_view text) { return Decode(text).bytes; }

size_t PrintableUtf8Prefix(absl::string_view text) {
  const Character c = Decode(text);
  const bool is_control = c.code_point < 0x20 || (c.code_point >= 0x7f && c.code_point < 0xa0) ||
                          c.code_point == 0x2028 || c.code_point == 0x2029;
  return is_control ? 0 : c.bytes;
}

bool IsValidUtf8(absl::string_view text) {
  while (true) {
    text.remove_prefix(AsciiPrefix(text));
    if (text.empty()) return true;
    const size_t size = Utf8Prefix(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
}

}  // namespace muster::base
