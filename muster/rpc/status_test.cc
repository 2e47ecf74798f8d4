// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/rpc/limits.h"

namespace muster::rpc {
namespace {

using ::testing::IsEmpty;

absl::Status ThereAndBack(const absl::Status& status) { return FromGrpc(ToGrpc(status)); }

TEST(Status, NamesABadFieldForPeopleAndForPrograms) {
  const absl::Status bad = BadField("header.job", "must not be empty");
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(bad.message(), "header.job: must not be empty");
  EXPECT_EQ(Violations(bad), (std::vector<FieldViolation>{{"header.job", "must not be empty"}}));
}

TEST(Status, TellsProgramsElsewhereOfAMismatch) {
  const absl::Status there = ThereAndBack(base::WithMismatch(
      absl::FailedPreconditionError("otherwise"), {"KV_muster", "storage", "memory", "file"}));
  EXPECT_TRUE(absl::IsFailedPrecondition(there));
  EXPECT_EQ(
      Reason(there),
      (ErrorReason{
          kStreamIncompatible,
          {{"stream", "KV_muster"}, {"field", "storage"}, {"is", "memory"}, {"wanted", "file"}}}));
}

TEST(Status, KeepsEveryCodeAndItsMessage) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what happened");
    EXPECT_EQ(static_cast<int>(ToGrpc(status).error_code()), code);
    EXPECT_EQ(ThereAndBack(status), status);
  }
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(Status, HasTheSameNumbersAsGrpc) {
  EXPECT_EQ(ToGrpc(absl::NotFoundError("")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ToGrpc(absl::DataLossError("")).error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ToGrpc(absl::UnauthenticatedError("")).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST(Status, SendsACodeThatGrpcDoesNotHaveAsUnknown) {
  EXPECT_EQ(ToGrpc(absl::Status(static_cast<absl::StatusCode>(99), "")).error_code(),
            grpc::StatusCode::UNKNOWN);
}

TEST(Status, CarriesDetailsOfEachKind) {
  absl::Status status = absl::OutOfRangeError("wrong offset");
  status = WithViolations(status, {{"chunk.offset", "must be 4096"}, {"chunk.data", "is empty"}});
  status = WithRetryAfter(status, absl::Milliseconds(1500));
  status = WithReason(status, {"WRONG_OFFSET", {{"expected_offset", "4096"}}});

  const absl::Status arrived = ThereAndBack(status);
  EXPECT_EQ(arrived.message(), "wrong offset");
  EXPECT_THAT(Violations(arrived),
              ::testing::ElementsAre(FieldViolation{"chunk.offset", "must be 4096"},
                                     FieldViolation{"chunk.data", "is empty"}));
  EXPECT_EQ(RetryAfter(arrived), absl::Milliseconds(1500));
  EXPECT_EQ(Reason(arrived), (ErrorReason{"WRONG_OFFSET", {{"expected_offset", "4096"}}}));
}

TEST(Status, WithoutDetailsHasNone) {
  const absl::Status status = ThereAndBack(absl::AbortedError("why"));
  EXPECT_THAT(Violations(status), IsEmpty());
  EXPECT_EQ(RetryAfter(status), std::nullopt);
  EXPECT_EQ(Reason(status), std::nullopt);
}

TEST(Status, KeepsItsDetailsWhenNounsAreAdded) {
  const absl::Status status = WithReason(absl::AbortedError("why"), {"REVISION_CHANGED"});
  EXPECT_EQ(Reason(ThereAndBack(base::Annotate(status, "job retail")))->reason, "REVISION_CHANGED");
}

TEST(Status, ThatIsOkTakesNoDetails) {
  EXPECT_TRUE(WithReason(absl::OkStatus(), {"REASON"}).ok());
  EXPECT_TRUE(WithRetryAfter(absl::OkStatus(), absl::Seconds(1)).ok());
}

TEST(Status, SendsNoPayloadThatIsAnInternalMatter) {
  absl::Status status = absl::InternalError("why");
  status.SetPayload("muster/secret", absl::Cord("secret"));
  EXPECT_THAT(ToGrpc(status).error_details(), IsEmpty());
}

TEST(Status, CutsALongMessageBetweenTwoCharacters) {
  std::string message(kMaxStatusMessageBytes - 1, 'x');
  message += "ü and more";
  const grpc::Status status = ToGrpc(absl::InternalError(message));
  EXPECT_EQ(status.error_message(), std::string(kMaxStatusMessageBytes - 1, 'x'));
}

TEST(Status, SendsNothingButUtf8) {
  const grpc::Status status = ToGrpc(absl::InternalError("caf\xe9!"));
  EXPECT_EQ(status.error_message(), "caf?!");
}

TEST(Status, HasWordsWhereTheServerGaveNone) {
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::INTERNAL, "")).message(),
            "the server gave no reason for INTERNAL; is a text not UTF-8?");
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::UNKNOWN, "")).message(),
            "the server gave no reason for UNKNOWN");
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "")).message(), "");
}

TEST(Status, LeavesOutDetailsThatNoTrailerCouldHold) {
  absl::Status status = WithRetryAfter(absl::UnavailableError("why"), absl::Seconds(1));
  status = WithViolations(status, {{"field", std::string(kMaxStatusDetailBytes, 'x')}});
  const grpc::Status sent = ToGrpc(status);
  EXPECT_LT(sent.error_details().size(), kMaxStatusDetailBytes + kMaxStatusMessageBytes);
  EXPECT_EQ(FromGrpc(sent).message(), "why");
}

TEST(Status, SurvivesDetailsThatCannotBeRead) {
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "no batch 7", "\xff\xff"));
  EXPECT_EQ(status, absl::NotFoundError("no batch 7"));
}

}  // namespace
}  // namespace muster::rpc
