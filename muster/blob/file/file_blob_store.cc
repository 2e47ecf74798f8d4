// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/file/file_blob_store.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/blob/file/blob_codec.h"
#include "muster/os/durable_directory.h"
#include "muster/os/durable_file.h"
#include "muster/os/quarantine.h"

namespace muster::blob::file {

namespace {

std::string FileName(absl::string_view name) { return absl::StrCat(name, ".blob"); }

std::string Naming(absl::string_view name) { return absl::StrCat("blob '", name, "'"); }

}  // namespace

absl::StatusOr<std::unique_ptr<FileBlobStore>> FileBlobStore::Open(const std::string& dir,
                                                                   const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<os::DurableDirectory> directory,
      options.read_only ? os::DurableDirectory::View(dir) : os::DurableDirectory::Own(dir));
  return std::unique_ptr<FileBlobStore>(new FileBlobStore(dir, std::move(directory)));
}

FileBlobStore::FileBlobStore(std::string dir, std::unique_ptr<os::DurableDirectory> directory)
    : dir_(std::move(dir)), directory_(std::move(directory)) {}

FileBlobStore::~FileBlobStore() = default;

absl::Status FileBlobStore::Put(absl::string_view name, absl::string_view data) {
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobName(name));
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobSize(name, data.size()));
  return base::Annotate(directory_->Replace(FileName(name), EncodeBlob(name, data)), Naming(name));
}

absl::StatusOr<std::string> FileBlobStore::Get(absl::string_view name) {
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobName(name));
  const absl::StatusOr<std::string> file = directory_->Read(FileName(name), MaxEncodedBytes());
  if (!file.ok()) return base::Annotate(file.status(), Naming(name));
  return DecodeBlob(name, *file);
}

absl::Status FileBlobStore::Delete(absl::string_view name) {
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobName(name));
  return base::Annotate(directory_->Remove(FileName(name)), Naming(name));
}

namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".blob";

class FileBlobScan final : public BlobScan {
 public:
  FileBlobScan(std::string dir, fs::directory_iterator next)
      : dir_(std::move(dir)), next_(std::move(next)) {}

  absl::StatusOr<std::vector<BlobEntry>> Next(size_t max) override {
    std::vector<BlobEntry> page;
    std::error_code error;
    for (; page.size() < max && next_ != fs::directory_iterator(); next_.increment(error)) {
      const fs::path& file = next_->path();
      if (file.extension() != kEnding) continue;
      struct stat status {};
      // Deleted meanwhile.
      if (stat(file.c_str(), &status) != 0) continue;
      page.push_back({file.stem().string(), absl::TimeFromTimespec(status.st_mtim)});
    }
    if (error) return os::FileError(error.value(), "listing", dir_);
    return page;
  }

 private:
  const std::string dir_;
  fs::directory_iterator next_;
};

absl::StatusOr<std::vector<std::string>> BlobsIn(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(dir, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == kEnding) names.push_back(it->path().stem().string());
  }
  if (error) return os::FileError(error.value(), "listing", dir);
  return names;
}

// OK also when it is gone meanwhile.
absl::Status CheckBlob(const std::string& name, const os::DurableDirectory& directory) {
  const absl::StatusOr<std::string> file =
      directory.Read(absl::StrCat(name, kEnding), MaxEncodedBytes());
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(file.status());
  return DecodeBlob(name, *file).status();
}

absl::Status MoveToQuarantine(const fs::path& file, os::Quarantine* quarantine) {
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, quarantine->FolderOf("blobs"));
  return base::Annotate(os::Rename(file, fs::path(folder) / file.filename()),
                        absl::StrCat("keeping ", file.string()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobScan>> FileBlobStore::Scan() {
  std::error_code error;
  fs::directory_iterator first(dir_, error);
  if (error) return os::FileError(error.value(), "listing", dir_);
  return std::make_unique<FileBlobScan>(dir_, std::move(first));
}

absl::StatusOr<os::CheckSummary> CheckBlobs(const std::string& dir,
                                            const os::CheckOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<os::DurableDirectory> directory,
                          options.quarantine == nullptr || !fs::exists(dir)
                              ? os::DurableDirectory::View(dir)
                              : os::DurableDirectory::Own(dir));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> names, BlobsIn(dir));
  os::CheckSummary summary;
  for (const std::string& name : names) {
    ++summary.records;
    const absl::Status blob = CheckBlob(name, *directory);
    if (blob.ok()) continue;
    if (!absl::IsDataLoss(blob)) return blob;
    ++summary.damaged;
    const os::Damage damage{.part = "blobs",
                            .kind = "blob",
                            .name = absl::StrCat("blobs/", name, kEnding),
                            .why = std::string(blob.message()),
                            .remedy = "the file is taken away"};
    MUSTER_RETURN_IF_ERROR(options.findings->Add(damage));
    if (options.quarantine == nullptr) continue;
    MUSTER_RETURN_IF_ERROR(
        MoveToQuarantine(fs::path(dir) / absl::StrCat(name, kEnding), options.quarantine));
  }
  if (options.quarantine != nullptr) MUSTER_RETURN_IF_ERROR(options.quarantine->Sync());
  return summary;
}

}  // namespace muster::blob::file
