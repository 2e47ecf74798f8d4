#include "services/initiator/back_pressure_options.h"

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "muster/base/quantity.h"
#include "services/host/host_options.h"

namespace muster::initiator {
namespace {

// More than any machine holds; sums of some of them fit.
constexpr int64_t kMostItems = int64_t{1} << 40;
constexpr int64_t kMostBytes = int64_t{1} << 50;

std::string RefuseSize(const std::string& text) {
  const absl::StatusOr<int64_t> bytes = base::ParseBytes(text);
  if (!bytes.ok()) return std::string(bytes.status().message());
  if (*bytes >= 1 && *bytes <= kMostBytes) return "";
  return absl::StrCat(text, " is not within 1B to ", base::BytesToString(kMostBytes));
}

}  // namespace

void AddBackPressureOptions(CLI::App* app, batch::BackPressureOptions* options) {
  app->add_option("--max-queue-items", options->max_items,
                  "Items that a job's queue holds at most; the rest waits in the ledger")
      ->envname(host::EnvironmentName("--max-queue-items"))
      ->check(CLI::Range(int64_t{1}, kMostItems))
      ->capture_default_str();
  const auto set = [options](const std::string& text) {
    options->max_bytes = base::ParseBytes(text).value_or(options->max_bytes);  // checked
  };
  app->add_option_function<std::string>("--max-queue-bytes", set,
                                        "Bytes of these items' messages, at most")
      ->envname(host::EnvironmentName("--max-queue-bytes"))
      ->check(RefuseSize)
      ->type_name("SIZE")
      ->default_str(base::BytesToString(options->max_bytes));
}

}  // namespace muster::initiator
