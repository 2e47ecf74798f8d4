#include "muster/blob/file/file_blob_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/blob/file/blob_codec.h"
#include "muster/blob/validate.h"
#include "muster/os/durable_directory.h"

namespace muster::blob::file {
namespace {

std::string FileName(absl::string_view name) { return absl::StrCat(name, ".blob"); }

std::string Naming(absl::string_view name) { return absl::StrCat("blob '", name, "'"); }

}  // namespace

absl::StatusOr<std::unique_ptr<FileBlobStore>> FileBlobStore::Open(const std::string& dir,
                                                                   const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<DurableDirectory> directory,
      options.read_only ? DurableDirectory::View(dir) : DurableDirectory::Own(dir));
  return std::unique_ptr<FileBlobStore>(new FileBlobStore(std::move(directory)));
}

FileBlobStore::FileBlobStore(std::unique_ptr<DurableDirectory> directory)
    : directory_(std::move(directory)) {}

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

}  // namespace muster::blob::file
