// SPDX-License-Identifier: Apache-2.0
#include "services/processor/revision_router.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "services/processor/item_worker.h"

namespace muster::processor {
namespace {

// The reason why only a worker with another setup can take the item; nullopt: this one can.
std::optional<std::string> Misfit(const item::BatchIdentity& identity, const WorkerSetup& setup) {
  const bool fits_version =
      identity.handler_version.empty() || identity.handler_version == setup.handler_version;
  if (identity.job == setup.job->name && identity.job_revision == setup.job->revision &&
      fits_version) {
    return std::nullopt;
  }
  return absl::StrCat("batch ", identity.batch, " wants job ", identity.job, " revision ",
                      identity.job_revision.substr(0, 12), " handler version ",
                      identity.handler_version.empty() ? "any" : identity.handler_version,
                      "; this worker has job ", setup.job->name, " revision ",
                      setup.job->revision.substr(0, 12), " handler version ",
                      setup.handler_version);
}

}  // namespace

RevisionRouter::RevisionRouter(ItemWorker* own, const WorkerSetup* setup)
    : own_(own), setup_(setup) {}

RevisionRouter::~RevisionRouter() = default;

absl::StatusOr<ItemWorker*> RevisionRouter::Route(const item::BatchIdentity& identity) {
  std::optional<std::string> misfit = Misfit(identity, *setup_);
  if (!misfit.has_value()) return own_;
  const bool other_revision =
      identity.job == setup_->job->name && identity.job_revision != setup_->job->revision;
  if (!other_revision || setup_->revisions == nullptr) {
    return absl::NotFoundError(*std::move(misfit));
  }
  absl::StatusOr<ItemWorker*> other = OtherWorker(identity);
  if (other.ok()) return other;
  return base::Annotate(other.status(), *misfit);
}

absl::StatusOr<ItemWorker*> RevisionRouter::OtherWorker(const item::BatchIdentity& identity) {
  if (other_revision_ == nullptr || other_revision_->job.revision != identity.job_revision) {
    MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<const Revision> revision,
                            setup_->revisions->Find(identity.job_revision));
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<handler::Handler> handler,
                            revision->handlers(revision->setup.schema));
    other_worker_ = std::make_unique<ItemWorker>(&revision->setup, std::move(handler));
    other_revision_ = std::move(revision);
  }
  if (std::optional<std::string> misfit = Misfit(identity, other_revision_->setup)) {
    return absl::NotFoundError(*std::move(misfit));
  }
  return other_worker_.get();
}

std::optional<std::string> RevisionRouter::KnownMisfit(const item::BatchIdentity& identity) const {
  std::optional<std::string> misfit = Misfit(identity, *setup_);
  if (!misfit.has_value() || setup_->revisions == nullptr || identity.job != setup_->job->name ||
      identity.job_revision == setup_->job->revision) {
    return misfit;
  }
  // Another revision of the job may have a worker here.
  if (other_revision_ == nullptr || other_revision_->job.revision != identity.job_revision) {
    return std::nullopt;
  }
  return Misfit(identity, other_revision_->setup);
}

}  // namespace muster::processor
