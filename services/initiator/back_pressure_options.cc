// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/back_pressure_options.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "services/host/host_options.h"

namespace muster::initiator {
namespace {

// More than any machine holds; sums of some of them fit.
constexpr int64_t kMostItems = int64_t{1} << 40;
constexpr int64_t kMostBytes = int64_t{1} << 50;
// These would take some 36 GB of memory.
constexpr int64_t kMostUploads = 1'000'000;

std::string RefuseSize(const std::string& text) {
  const absl::StatusOr<int64_t> bytes = base::ParseBytes(text);
  if (!bytes.ok()) return std::string(bytes.status().message());
  if (*bytes >= 1 && *bytes <= kMostBytes) return "";
  return absl::StrCat(text, " is not within 1B to ", base::BytesToString(kMostBytes));
}

void AddSize(CLI::App* app, const std::string& name, const std::string& description,
             int64_t* bytes) {
  const auto set = [bytes](const std::string& text) {
    *bytes = base::ParseBytes(text).value_or(*bytes);  // checked
  };
  args::AddFunction(app, name, set, description)
      .Envname(host::EnvironmentName(name))
      .Check(RefuseSize)
      .TypeName("SIZE")
      .DefaultStr(base::BytesToString(*bytes));
}

}  // namespace

void AddBackPressureOptions(CLI::App* app, batch::BackPressureOptions* options) {
  args::Add(app, "--max-queue-items", &options->max_items,
            "Items that a job's queue holds at most; the rest waits in the ledger")
      .Envname(host::EnvironmentName("--max-queue-items"))
      .Check(args::Range(int64_t{1}, kMostItems))
      .CaptureDefaultStr();
  AddSize(app, "--max-queue-bytes", "Bytes of these items' messages, at most", &options->max_bytes);
}

void AddUploadOptions(CLI::App* app, retention::UploadLimits* options) {
  args::Add(app, "--max-stopped-uploads", &options->max_stopped,
            "Uploads that were cut off and wait for their clients, at most")
      .Envname(host::EnvironmentName("--max-stopped-uploads"))
      .Check(args::Range(int64_t{1}, kMostUploads))
      .CaptureDefaultStr();
  AddSize(app, "--max-stopped-upload-bytes", "What has arrived of these, at most",
          &options->max_stopped_bytes);
}

}  // namespace muster::initiator
