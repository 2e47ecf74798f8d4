#include "muster/bus/local/local_heartbeat_bus.h"

#include <memory>

#include "tests/conformance/bus/heartbeat_bus_conformance.h"

namespace muster::bus::conformance {

INSTANTIATE_TEST_SUITE_P(Local, HeartbeatBusConformance, ::testing::Values(HeartbeatBusEngine([] {
                           return std::make_unique<LocalHeartbeatBus>();
                         })));

}  // namespace muster::bus::conformance
