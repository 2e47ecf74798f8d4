// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"

namespace muster::controller {

namespace {

using Length = uint32_t;  // a page is far smaller: it is one gRPC message

absl::Status DiskError(absl::string_view doing, const std::string& folder) {
  return os::FileError(errno, doing, folder);
}

// A new file without a name.
absl::StatusOr<os::FileDescriptor> Nameless(std::string folder) {
  std::error_code error;
  if (folder.empty()) folder = std::filesystem::temp_directory_path(error).string();
  std::string path = absl::StrCat(folder, "/muster-report-XXXXXX");
  os::FileDescriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (file.get() < 0) return DiskError("making a file for a report in", folder);
  if (unlink(path.c_str()) != 0) return DiskError("removing the name of a file in", folder);
  return file;
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return DiskError("writing a report to a file in", folder);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status ReadAll(int fd, size_t offset, char* out, size_t bytes, const std::string& folder) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = pread(fd, out + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError("reading a report from a file in", folder);
    if (got == 0) return absl::DataLossError(absl::StrCat("a report's file ends early: ", folder));
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

Length LengthAt(const char* bytes) {
  Length length = 0;
  std::memcpy(&length, bytes, sizeof(length));
  return length;
}

}  // namespace

ReportSpool::ReportSpool(std::string folder, size_t memory_bytes)
    : folder_(std::move(folder)), memory_bytes_(memory_bytes) {}

absl::Status ReportSpool::Add(const v1::GetReportResponse& page) {
  const auto length = static_cast<Length>(page.ByteSizeLong());
  memory_.append(reinterpret_cast<const char*>(&length), sizeof(length));
  page.AppendToString(&memory_);
  return memory_.size() > memory_bytes_ ? Flush() : absl::OkStatus();
}

absl::Status ReportSpool::Flush() {
  if (file_.get() < 0) {
    MUSTER_ASSIGN_OR_RETURN(file_, Nameless(folder_));
  }
  MUSTER_RETURN_IF_ERROR(WriteAll(file_.get(), memory_, folder_));
  file_bytes_ += memory_.size();
  memory_.clear();
  return absl::OkStatus();
}

absl::Status ReportSpool::Send(const std::function<bool(const v1::GetReportResponse&)>& send) {
  v1::GetReportResponse page;
  const auto send_page = [&](absl::string_view bytes) -> absl::Status {
    if (!page.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return absl::DataLossError("a page of a report cannot be read back");
    }
    return send(page) ? absl::OkStatus() : absl::CancelledError("the report's reader has left");
  };
  std::string bytes;
  for (size_t offset = 0; offset < file_bytes_;) {
    Length length = 0;
    MUSTER_RETURN_IF_ERROR(
        ReadAll(file_.get(), offset, reinterpret_cast<char*>(&length), sizeof(length), folder_));
    bytes.resize(length);
    offset += sizeof(length);
    MUSTER_RETURN_IF_ERROR(ReadAll(file_.get(), offset, bytes.data(), length, folder_));
    offset += length;
    MUSTER_RETURN_IF_ERROR(send_page(bytes));
  }
  for (absl::string_view rest = memory_; !rest.empty();) {
    const Length length = LengthAt(rest.data());
    rest.remove_prefix(sizeof(length));
    MUSTER_RETURN_IF_ERROR(send_page(rest.substr(0, length)));
    rest.remove_prefix(length);
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
