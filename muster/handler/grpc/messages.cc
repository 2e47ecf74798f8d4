// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/grpc/messages.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/out_of_process.h"
#include "muster/handler/schema_proto.h"

namespace muster::handler::grpc {
namespace {

using base::Annotate;
using base::Decimal;
using handler::JobSchema;
using handler::Outcome;
using handler::Results;
using handler::WorkItem;

constexpr size_t kShownBytes = 64;

absl::Status Wrong(absl::string_view place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

absl::Status ReadRow(handler::Group group, const handler::GroupSchema& schema,
                     const v1::PartialRow& row, Results& results) {
  const std::vector<std::string> keys(row.keys().begin(), row.keys().end());
  const bool has_the_shape = keys.size() == schema.keys.size() &&
                             static_cast<size_t>(row.measures_size()) == schema.measures.size();
  std::vector<Decimal> measures;
  for (int i = 0; has_the_shape && i < row.measures_size(); ++i) {
    absl::StatusOr<Decimal> number = Decimal::ParseWithExponent(row.measures(i));
    if (!number.ok()) {
      return absl::OutOfRangeError(absl::StrCat(schema.measures[static_cast<size_t>(i)].name, ": ",
                                                number.status().message()));
    }
    measures.push_back(*std::move(number));
  }
  const absl::Status added = results.AddRow(group, keys, measures);
  if (added.ok()) return added;
  return has_the_shape ? absl::OutOfRangeError(added.message())
                       : absl::InvalidArgumentError(added.message());
}

absl::Status ReadGroup(const v1::GroupPartial& partial, const JobSchema& schema, Results& results) {
  const absl::StatusOr<handler::Group> group = schema.FindGroup(partial.group());
  if (!group.ok()) {
    const std::string shown = base::Printable(partial.group(), kShownBytes);
    return Wrong("groups", schema.FindGroup(shown).status().message());
  }
  const handler::GroupSchema& expected = schema.groups[static_cast<size_t>(group->index)];
  for (int i = 0; i < partial.rows_size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Annotate(ReadRow(*group, expected, partial.rows(i), results),
                                    absl::StrCat("groups.", expected.name, "[", i, "]")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Outcome> ReadOk(const v1::HandlerResult& ok, const JobSchema& schema,
                               const WorkItem& item, Results& results) {
  for (const v1::GroupPartial& partial : ok.groups()) {
    MUSTER_RETURN_IF_ERROR(ReadGroup(partial, schema, results));
  }
  handler::OpenLines open(item, &results);
  for (int i = 0; i < ok.rejected_size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Annotate(open.Reject(ok.rejected(i).line(), ok.rejected(i).reason()),
                                    absl::StrCat("rejected[", i, "]")));
  }
  if (ok.outputs_size() > 0 && schema.outputs.empty()) {
    return Wrong("outputs", "the job has none");
  }
  for (int i = 0; i < ok.outputs_size(); ++i) {
    const v1::OutputRecord& output = ok.outputs(i);
    if (static_cast<size_t>(output.fields_size()) != schema.outputs.size()) {
      return Wrong(absl::StrCat("outputs[", i, "]"),
                   absl::StrCat("has ", output.fields_size(),
                                output.fields_size() == 1 ? " field" : " fields", ", and the job ",
                                schema.outputs.size(), " columns"));
    }
    MUSTER_RETURN_IF_ERROR(
        Annotate(open.AddOutput(output.line(), {output.fields().begin(), output.fields().end()}),
                 absl::StrCat("outputs[", i, "]")));
  }
  return handler::ConcludeOk(results);
}

absl::StatusOr<std::string> ReadWhy(absl::string_view why) {
  if (why.empty()) return Wrong("why", "is empty");
  return handler::PrintableReason(why);
}

// Of Retry and of Defer.
template <typename Postponed>
absl::StatusOr<Outcome> ReadPostponed(const Postponed& postponed,
                                      Outcome (*make)(absl::Duration, std::string)) {
  absl::Duration after;
  if (postponed.has_after()) after = base::FromProto(postponed.after());
  if (after < absl::ZeroDuration() || after > handler::kMaxRetryDelay) {
    return Wrong("after", absl::StrCat("is not within 0 to ",
                                       absl::FormatDuration(handler::kMaxRetryDelay)));
  }
  MUSTER_ASSIGN_OR_RETURN(std::string why, ReadWhy(postponed.why()));
  return make(after, std::move(why));
}

}  // namespace

v1::WorkRequest EncodeHello(const JobSchema& schema,
                            const std::map<std::string, std::string>& parameters,
                            absl::string_view processor) {
  v1::WorkRequest request;
  v1::Hello& hello = *request.mutable_hello();
  hello.set_protocol_version(kProtocolVersion);
  *hello.mutable_schema() = handler::ToProto(schema);
  hello.mutable_parameters()->insert(parameters.begin(), parameters.end());
  hello.set_processor(std::string(processor));
  return request;
}

v1::WorkRequest EncodeItem(const JobSchema& schema, const WorkItem& item, Results& results) {
  v1::WorkRequest request;
  v1::HandlerItem& proto = *request.mutable_item();
  proto.set_item(item.id());
  proto.set_attempt(item.attempt());
  if (item.trace().has_value()) {
    proto.set_traceparent(item.trace()->ToTraceparent());
    proto.set_tracestate(item.trace()->state);
  }
  for (const handler::Transaction& transaction : item.transactions()) {
    if (handler::RejectUnlessUtf8(schema, transaction, results)) continue;
    v1::HandlerTransaction& sent = *proto.add_transactions();
    sent.set_line(transaction.line());
    for (const absl::string_view field : transaction.fields()) {
      sent.add_fields(field.data(), field.size());
    }
  }
  return request;
}

void SetDeadline(absl::Duration allowed, absl::Time now, v1::HandlerItem* item) {
  *item->mutable_deadline() = base::ToProto(allowed);
  *item->mutable_deadline_at() = base::ToProto(now + allowed);
}

v1::WorkRequest EncodeAbandon(absl::string_view item) {
  v1::WorkRequest request;
  request.mutable_abandon()->set_item(std::string(item));
  return request;
}

absl::Status CheckReady(const v1::Ready& ready) {
  if (ready.name().size() > kMaxReadyTextBytes) {
    return Wrong("ready.name", absl::StrCat("has more than ", kMaxReadyTextBytes, " bytes"));
  }
  if (ready.version().empty() || ready.version().size() > kMaxReadyTextBytes) {
    return Wrong("ready.version", absl::StrCat("has not 1 to ", kMaxReadyTextBytes, " bytes"));
  }
  if (ready.concurrency() < 1 || ready.concurrency() > kMaxConcurrency) {
    return Wrong("ready.concurrency", absl::StrCat("is not within 1 to ", kMaxConcurrency));
  }
  return absl::OkStatus();
}

absl::StatusOr<Outcome> DecodeAnswer(const v1::HandlerAnswer& answer, const JobSchema& schema,
                                     const WorkItem& item, Results& results) {
  switch (answer.outcome_case()) {
    case v1::HandlerAnswer::kOk:
      return ReadOk(answer.ok(), schema, item, results);
    case v1::HandlerAnswer::kRetry:
      return ReadPostponed(answer.retry(), Outcome::Retry);
    case v1::HandlerAnswer::kDefer:
      return ReadPostponed(answer.defer(), Outcome::Defer);
    case v1::HandlerAnswer::kDead: {
      MUSTER_ASSIGN_OR_RETURN(std::string why, ReadWhy(answer.dead().why()));
      return Outcome::Dead(std::move(why));
    }
    case v1::HandlerAnswer::OUTCOME_NOT_SET:
      break;
  }
  return Wrong("outcome", "is none of ok, retry, defer, dead");
}

}  // namespace muster::handler::grpc
