// SPDX-License-Identifier: Apache-2.0

// A blob store that holds one blob.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "muster/blob/blob_store.h"

namespace muster::fuzz {

// Not thread-safe.
class OneBlob final : public blob::BlobStore {
 public:
  absl::Status Put(absl::string_view name, absl::string_view data) override {
    name_ = std::string(name);
    data_ = std::string(data);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Get(absl::string_view name) override {
    if (name != name_) return absl::NotFoundError("no such blob");
    return data_;
  }
  absl::Status Delete(absl::string_view) override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<blob::BlobScan>> Scan() override {
    return absl::UnimplementedError("nobody scans here");
  }

 private:
  std::string name_;
  std::string data_;
};

}  // namespace muster::fuzz
