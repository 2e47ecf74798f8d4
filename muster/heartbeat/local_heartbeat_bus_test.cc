#include "muster/heartbeat/local_heartbeat_bus.h"

#include <memory>

#include "muster/heartbeat/conformance/heartbeat_bus_conformance.h"

namespace muster::heartbeat::conformance {

INSTANTIATE_TEST_SUITE_P(Local, HeartbeatBusConformance, ::testing::Values(HeartbeatBusEngine([] {
                           return std::make_unique<LocalHeartbeatBus>();
                         })));

}  // namespace muster::heartbeat::conformance
