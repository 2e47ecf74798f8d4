#include "services/initiator/batch/whole_content.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/input/slice_reader.h"
#include "services/initiator/batch/batch_source.h"

namespace muster::initiator::batch {
namespace {

struct HeldText {
  explicit HeldText(std::string content) : text(std::move(content)), source(text) {}

  const std::string text;
  const input::TextSource source;
};

}  // namespace

std::vector<ledger::ItemBoundary> SplitInline(const job::JobDefinition& job,
                                              absl::string_view content) {
  std::vector<ledger::ItemBoundary> items;
  const auto source = BatchSource::Over(SourceOf(std::string(content)), "", job.input);
  if (!source.ok()) return items;
  input::SliceReader slices = (*source)->Slices((*source)->FirstRecord(), SliceLimitsOf(job));
  while (items.size() < kMaxInlineItems) {
    const absl::StatusOr<std::optional<input::Slice>> slice = slices.Next();
    if (!slice.ok() || !slice->has_value()) return items;
    const absl::StatusOr<ledger::ItemBoundary> item = (*source)->BoundaryOf(**slice);
    if (!item.ok()) return items;
    items.push_back(*item);
  }
  return items;
}

std::shared_ptr<const input::ByteSource> SourceOf(std::string content) {
  const auto held = std::make_shared<const HeldText>(std::move(content));
  return {held, &held->source};
}

}  // namespace muster::initiator::batch
