#include "muster/base/instance_id.h"

#include <limits.h>
#include <unistd.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/random.h"

namespace muster::base {
namespace {

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::string LowerCaseWords(absl::string_view text) {
  std::string result = absl::AsciiStrToLower(text);
  for (char& c : result) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return result;
}

}  // namespace

std::string MakeInstanceId(absl::string_view role) {
  const auto random = static_cast<uint32_t>(RandomSeed());
  return absl::StrCat(LowerCaseWords(role), "-", LowerCaseWords(HostName()), "-", getpid(), "-",
                      absl::Hex(random, absl::kZeroPad8));
}

}  // namespace muster::base
