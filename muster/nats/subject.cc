#include "muster/nats/subject.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace muster::nats {

std::string SubjectToken(absl::string_view text) {
  if (text.empty()) return "=";
  std::string token;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '_' || c == '-') {
      token += c;
    } else {
      absl::StrAppendFormat(&token, "=%02X", byte);
    }
  }
  return token;
}

}  // namespace muster::nats
