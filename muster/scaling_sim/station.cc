#include "muster/scaling_sim/station.h"

#include "muster/scaling_sim/fluid_station.h"
#include "muster/scaling_sim/item_station.h"

namespace muster::scaling_sim {

std::unique_ptr<Station> MakeStation(const Trace& trace, const SimOptions& options) {
  if (options.service == Service::kFluid) return std::make_unique<FluidStation>(trace, options);
  return std::make_unique<ItemStation>(trace, options);
}

}  // namespace muster::scaling_sim
