#include "muster/base/printable.h"

#include <algorithm>

#include "muster/base/utf8.h"

namespace muster::base {

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

}  // namespace muster::base
