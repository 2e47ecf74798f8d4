// A `muster` with a handler of one's own: adds up the hours that people booked on projects.
#include "cli/main.h"

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "muster/base/decimal.h"
#include "muster/base/status.h"
#include "muster/handler/handler.h"

namespace {

using muster::base::Decimal;
using muster::handler::Column;
using muster::handler::Group;
using muster::handler::Handler;
using muster::handler::JobSchema;
using muster::handler::Outcome;
using muster::handler::Results;
using muster::handler::Transaction;
using muster::handler::WorkItem;

class TimesheetHandler final : public Handler {
 public:
  TimesheetHandler(Column project, Column hours, Group by_project)
      : project_(project), hours_(hours), by_project_(by_project) {}

  Outcome Process(const WorkItem& item, Results& results) override {
    for (const Transaction& booking : item.transactions()) {
      const std::optional<Decimal> hours = Decimal::TryParse(booking[hours_]);
      if (!hours) {
        results.Reject(booking, "hours: not a number");
      } else {
        results.Count(booking, {{by_project_, {booking[project_]}, {*hours, Decimal::FromInt(1)}}});
      }
    }
    return Outcome::Ok();
  }

 private:
  const Column project_;
  const Column hours_;
  const Group by_project_;
};

// Looks up by name, once, what Process uses for every transaction.
absl::StatusOr<std::unique_ptr<Handler>> MakeTimesheetHandler(const JobSchema& job) {
  MUSTER_ASSIGN_OR_RETURN(const Column project, job.FindColumn("project"));
  MUSTER_ASSIGN_OR_RETURN(const Column hours, job.FindColumn("hours"));
  MUSTER_ASSIGN_OR_RETURN(const Group by_project, job.FindGroup("by_project"));
  return std::make_unique<TimesheetHandler>(project, hours, by_project);
}

}  // namespace

int main(int argc, char** argv) {
  muster::handler::HandlerRegistry handlers;
  handlers.Register({"timesheet", "1", MakeTimesheetHandler});
  return muster::cli::Main(argc, argv, handlers);
}
