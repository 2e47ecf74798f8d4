#include "muster/scaling/actuator/threads/processor_directory.h"

#include "muster/base/proto_time.h"

namespace muster::scaling::actuator::threads {

LiveProcessor FromHeartbeat(const v1::Heartbeat& heartbeat) {
  LiveProcessor processor{heartbeat.instance().instance(),
                          heartbeat.instance().address(),
                          base::FromProto(heartbeat.instance().started()),
                          {}};
  for (const v1::JobLoad& load : heartbeat.jobs()) {
    const bool listens = load.trouble().empty() || load.threads_max() > 0;
    if (listens) processor.jobs.insert(load.job());
  }
  return processor;
}

}  // namespace muster::scaling::actuator::threads
