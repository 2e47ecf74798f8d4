// HandlerInventory: which versions of the handlers of jobs the processors of a mesh have.
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/types/span.h"
#include "muster/v1/batch_service.pb.h"
#include "muster/v1/mesh_service.pb.h"

namespace muster::cli {

// Thread-compatible.
class HandlerInventory {
 public:
  // Of `instances`, those count that are processors and do not leave.
  explicit HandlerInventory(absl::Span<const v1::Instance> instances);

  // Of the handler of `job`; empty: no processor has it.
  std::set<std::string> VersionsOf(const std::string& job) const;
  // Some processor has the handler that the batch is bound to, or any where it is bound to none.
  bool Fit(const v1::BatchStatus& batch) const;

 private:
  std::map<std::string, std::set<std::string>> versions_;  // by job
};

// What must be there for the batch: "version 2 of the handler of job shop".
std::string HandlerOf(const v1::BatchStatus& batch);

}  // namespace muster::cli
