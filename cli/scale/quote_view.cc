#include "cli/scale/quote_view.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "cli/output/batch_view.h"
#include "cli/output/exit_code.h"
#include "cli/output/table.h"
#include "cli/scale/time_view.h"
#include "muster/base/proto_time.h"
#include "muster/queue/bill.h"
#include "muster/scaling/policy/explain.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kSecondsOfAnHour = 3600;

std::string WhenCell(const google::protobuf::Timestamp& proto, absl::Time now) {
  const absl::Time time = base::FromProto(proto);
  return absl::StrCat(Rfc3339(time), " (", FromNow(time, now), ")");
}

std::string VerdictCell(const v1::QuoteResponse& quote) {
  if (quote.feasible()) return "yes";
  const std::string late =
      quote.has_late_by() ? absl::StrCat(DurationCell(quote.late_by()), " late") : "never done";
  const std::string needs = quote.needs() > 0
                                ? absl::StrCat("it needs ", quote.needs(), " replicas")
                                : "no number of replicas would do it";
  return absl::StrCat("no: ", late, "; ", needs);
}

}  // namespace

std::optional<double> QuoteView::Cost() const {
  if (!price.has_value()) return std::nullopt;
  return quote.replica_seconds() / kSecondsOfAnHour * *price;
}

void QuoteView::PrintTo(std::ostream& out, absl::Time now) const {
  if (!job.empty()) out << "job: " << Printable(job) << "\n";
  if (!target.empty()) out << "target: " << Printable(target) << "\n";
  if (transactions.has_value()) {
    out << "transactions: " << Grouped(static_cast<uint64_t>(*transactions)) << "\n";
  }
  out << "items: " << Grouped(static_cast<uint64_t>(quote.items()))
      << "\nfeasible: " << VerdictCell(quote)
      << "\nfinish: " << (quote.has_finish() ? WhenCell(quote.finish(), now) : "never") << "\n";
  if (quote.has_deadline()) out << "deadline: " << WhenCell(quote.deadline(), now) << "\n";
  out << "replicas: " << quote.replicas_now() << " now, " << quote.replicas()
      << " for this, at most " << quote.max()
      << "\nreplica time: " << scaling::policy::ShowDuration(absl::Seconds(quote.replica_seconds()))
      << "\n";
  if (const std::optional<double> cost = Cost(); cost.has_value()) {
    out << "cost: " << queue::ShowDollars(*cost) << "\n";
  }
  if (quote.has_shortest_sla()) {
    out << "shortest promise: " << DurationCell(quote.shortest_sla()) << "\n";
  }
  out << "\n" << Printable(quote.explanation()) << "\n";
}

ordered_json QuoteView::Json() const {
  ordered_json json;
  if (!job.empty()) json["job"] = job;
  if (!target.empty()) json["target"] = target;
  if (transactions.has_value()) json["transactions"] = *transactions;
  json["items"] = quote.items();
  json["feasible"] = quote.feasible();
  json["finish"] = TimeJson(quote.has_finish(), quote.finish());
  json["deadline"] = TimeJson(quote.has_deadline(), quote.deadline());
  json["late_by_seconds"] = SecondsJson(quote.has_late_by(), quote.late_by());
  json["replicas_now"] = quote.replicas_now();
  json["replicas"] = quote.replicas();
  json["needs"] = quote.needs();
  json["max"] = quote.max();
  json["replica_seconds"] = quote.replica_seconds();
  const std::optional<double> cost = Cost();
  json["cost"] = cost.has_value() ? ordered_json(*cost) : ordered_json();
  json["shortest_sla_seconds"] = SecondsJson(quote.has_shortest_sla(), quote.shortest_sla());
  json["explanation"] = quote.explanation();
  return json;
}

int QuoteView::Code() const { return quote.feasible() ? kOk : kDeadlineMissed; }

}  // namespace muster::cli
