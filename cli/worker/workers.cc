#include "cli/worker/workers.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::cli {

absl::StatusOr<std::vector<Worker>> FindWorkers(MeshClient& mesh, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<v1::Instance> instances, mesh.Instances(v1::ROLE_PROCESSOR));
  std::vector<Worker> workers;
  for (v1::Instance& instance : instances) {
    if (!name.empty() && instance.info().instance() != name) continue;
    Worker worker{std::move(instance), {}};
    if (worker.serves()) {
      MUSTER_ASSIGN_OR_RETURN(worker.peer,
                              mesh.Connect(worker.instance.info().address(), "muster-processor"));
    }
    workers.push_back(std::move(worker));
  }
  if (!name.empty() && workers.empty()) {
    return absl::NotFoundError(absl::StrCat(mesh.options().address,
                                            " has not heard of a processor '", name,
                                            "' lately; `muster worker list` shows those it has"));
  }
  return workers;
}

}  // namespace muster::cli
