#include "muster/job/job_records.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/hex.h"
#include "muster/job/job_registry_limits.h"
#include "muster/job/limits.h"
#include "muster/sync/limits.h"
#include "muster/sync/validate.h"

namespace muster::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobRecord Record(const std::string& name) {
  return {.name = name,
          .revision = std::string(32, 'a'),
          .text_hash = std::string(64, 'b'),
          .text_bytes = 300,
          .updated = absl::FromUnixNanos(1'500'000'001)};
}

TEST(JobRecordsTest, ComeBackAsTheyWere) {
  EXPECT_EQ(DecodeRecord(EncodeRecord(Record("a")), "k").value(), Record("a"));
  EXPECT_THAT(DecodeDirectory(EncodeDirectory({{Record("a"), Record("b")}, ""})).value().jobs,
              ElementsAre(Record("a"), Record("b")));
  EXPECT_THAT(DecodeDirectory("").value().jobs, ElementsAre());
}

// Never to be changed: these bytes lie in stores.
TEST(JobRecordsTest, KeepTheirForm) {
  const std::string record = absl::StrCat("0a0161", "1220", std::string(64, '6'), "1a20",
                                          std::string(64, 'b'), "20ac02", "2a0808011080cab5ee01");
  JobRecord golden = Record("a");
  golden.revision = std::string(32, 'f');
  golden.updated = absl::FromUnixNanos(1'500'000'000);
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord(golden)), record);
  EXPECT_EQ(DecodeRecord(base::BytesFromHex(record), "k").value(), golden);
  EXPECT_EQ(absl::BytesToHexString(EncodeDirectory({{golden}, ""})), absl::StrCat("0a54", record));
}

// 13:"new", behind what this muster knows.
constexpr char kNewerField[] = "6a036e6577";

TEST(JobRecordsTest, KeepTheFieldsThatANewerMusterHasAdded) {
  const std::string newer = base::BytesFromHex(kNewerField);
  const std::string record = EncodeRecord(Record("a")) + newer;
  EXPECT_EQ(DecodeRecord(record, "k")->name, "a");
  EXPECT_EQ(EncodeRecord(DecodeRecord(record, "k").value()), record);
  std::string directory = EncodeDirectory({{Record("a"), Record("b")}, ""}) + newer;
  EXPECT_EQ(EncodeDirectory(DecodeDirectory(directory).value()), directory);
}

TEST(JobRecordsTest, AFullDirectoryFitsIntoARecord) {
  std::vector<JobRecord> jobs;
  for (size_t i = 0; i < kMaxJobs; ++i) {
    JobRecord job = Record(absl::StrCat(10'000 + i, std::string(kMaxNameBytes - 5, 'n')));
    job.text_bytes = kMaxJobFileBytes;
    job.updated = absl::FromUnixSeconds(253'402'300'799) + absl::Nanoseconds(999'999'999);
    jobs.push_back(job);
  }
  EXPECT_LE(EncodeDirectory({jobs, ""}).size(), sync::kMaxDataBytes);
  EXPECT_LE(kPieceBytes, sync::kMaxDataBytes);
}

TEST(JobRecordsTest, LieUnderKeysThatAreSound) {
  EXPECT_TRUE(sync::ValidateKey(kDirectoryKey).ok());
  EXPECT_TRUE(sync::ValidateKey(RevisionKey(Record("a").revision)).ok());
  EXPECT_TRUE(sync::ValidateKey(PieceKey(Record("a").text_hash, 21)).ok());
}

TEST(JobRecordsTest, NamesARecordThatCannotBe) {
  JobRecord nameless = Record(""), unhashed = Record("a"), empty = Record("a");
  unhashed.text_hash = "bb";
  empty.text_bytes = 0;
  for (const std::string& data : {std::string("\xff"), std::string(), EncodeRecord(nameless),
                                  EncodeRecord(unhashed), EncodeRecord(empty)}) {
    const absl::Status status = DecodeRecord(data, "jobs/revisions/x").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << absl::CHexEscape(data);
    EXPECT_THAT(status.message(), HasSubstr("'jobs/revisions/x'"));
  }
  for (const std::string& data :
       {std::string("\xff"), EncodeDirectory({{Record("b"), Record("a")}, ""})}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeDirectory(data).status()));
  }
}

}  // namespace
}  // namespace muster::job
