#include "muster/actuator_threads/processor_directory.h"

#include "muster/proto_time/proto_time.h"

namespace muster::actuator_threads {

LiveProcessor FromHeartbeat(const v1::Heartbeat& heartbeat) {
  LiveProcessor processor{heartbeat.instance().instance(),
                          heartbeat.instance().address(),
                          proto_time::FromProto(heartbeat.instance().started()),
                          {}};
  for (const v1::JobLoad& load : heartbeat.jobs()) {
    const bool listens = load.trouble().empty() || load.threads_max() > 0;
    if (listens) processor.jobs.insert(load.job());
  }
  return processor;
}

}  // namespace muster::actuator_threads
