// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/initiator_role.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::initiator {
namespace {

using ::testing::HasSubstr;

class InitiatorOptionsTest : public ::testing::Test {
 protected:
  ~InitiatorOptionsTest() override {
    for (const char* name : {"MUSTER_TRACE_SAMPLE", "OTEL_TRACES_SAMPLER", "MUSTER_MAX_QUEUE_ITEMS",
                             "MUSTER_MAX_QUEUE_BYTES", "MUSTER_MAX_STOPPED_UPLOADS",
                             "MUSTER_MAX_STOPPED_UPLOAD_BYTES"}) {
      unsetenv(name);
    }
  }

  // Returns the error in `arguments`; empty if there is none.
  std::string Parse(const std::vector<std::string>& arguments) {
    CLI::App app;
    options_ = {};
    AddInitiatorOptions(&app, &options_);
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  RoleOptions options_;
};

TEST_F(InitiatorOptionsTest, TracesOneBatchInAHundredUnlessToldOtherwise) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.trace_sample, 0.01);
  for (const char* share : {"0", "1", "0.5", "1e-9"}) {
    EXPECT_EQ(Parse({"--trace-sample", share}), "");
    EXPECT_EQ(options_.trace_sample, std::stod(share));
  }
  setenv("MUSTER_TRACE_SAMPLE", "0.25", 1);
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.trace_sample, 0.25);
}

TEST_F(InitiatorOptionsTest, TakesTheSamplerOfOpenTelemetryUnlessItIsToldAShareItself) {
  setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.trace_sample, 0);
  EXPECT_EQ(Parse({"--trace-sample", "0.5"}), "");
  EXPECT_EQ(options_.trace_sample, 0.5);
}

TEST_F(InitiatorOptionsTest, KeepsQueuesWithinTheirMemtablesUnlessToldOtherwise) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.back_pressure.max_items, 500'000);
  EXPECT_EQ(options_.back_pressure.max_bytes, 64 << 20);
  EXPECT_EQ(Parse({"--max-queue-items", "7", "--max-queue-bytes", "1.5KiB"}), "");
  EXPECT_EQ(options_.back_pressure.max_items, 7);
  EXPECT_EQ(options_.back_pressure.max_bytes, 1536);
  setenv("MUSTER_MAX_QUEUE_ITEMS", "8", 1);
  setenv("MUSTER_MAX_QUEUE_BYTES", "1GiB", 1);
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.back_pressure.max_items, 8);
  EXPECT_EQ(options_.back_pressure.max_bytes, 1 << 30);
}

TEST_F(InitiatorOptionsTest, BoundsTheUploadsThatWaitForTheirClients) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.uploads.max_stopped, 1000);
  EXPECT_EQ(options_.uploads.max_stopped_bytes, int64_t{64} << 30);
  EXPECT_EQ(Parse({"--max-stopped-uploads", "7", "--max-stopped-upload-bytes", "1.5KiB"}), "");
  EXPECT_EQ(options_.uploads.max_stopped, 7);
  EXPECT_EQ(options_.uploads.max_stopped_bytes, 1536);
  setenv("MUSTER_MAX_STOPPED_UPLOADS", "8", 1);
  setenv("MUSTER_MAX_STOPPED_UPLOAD_BYTES", "1GiB", 1);
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(options_.uploads.max_stopped, 8);
  EXPECT_EQ(options_.uploads.max_stopped_bytes, 1 << 30);
  EXPECT_THAT(Parse({"--max-stopped-uploads=0"}), HasSubstr("--max-stopped-uploads"));
}

TEST_F(InitiatorOptionsTest, RefusesBoundsThatNoQueueCanHave) {
  for (const char* items : {"0", "-1", "1.5", "many", "99999999999999", ""}) {
    EXPECT_THAT(Parse({std::string("--max-queue-items=") + items}), HasSubstr("--max-queue-items"))
        << items;
  }
  for (const char* bytes : {"0", "-1MiB", "1MX", "1000000TiB", ""}) {
    EXPECT_THAT(Parse({std::string("--max-queue-bytes=") + bytes}), HasSubstr("--max-queue-bytes"))
        << bytes;
  }
}

TEST_F(InitiatorOptionsTest, RefusesWhatIsNoShare) {
  for (const char* share : {"-0.1", "1.0001", "nan", "inf", "1e999", "all", "0.5x", ""}) {
    EXPECT_THAT(Parse({std::string("--trace-sample=") + share}), HasSubstr("--trace-sample"))
        << share;
  }
}

}  // namespace
}  // namespace muster::initiator
