#include "muster/scaling/replay/station.h"

#include "muster/scaling/replay/fluid_station.h"
#include "muster/scaling/replay/item_station.h"

namespace muster::scaling::replay {

std::unique_ptr<Station> MakeStation(const Trace& trace, const SimOptions& options) {
  if (options.service == Service::kFluid) return std::make_unique<FluidStation>(trace, options);
  return std::make_unique<ItemStation>(trace, options);
}

}  // namespace muster::scaling::replay
