// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/failure.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::telemetry {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(DescribeFailureTest, SaysWhatToSetWhereACollectorSpeaksHttpOnly) {
  for (const char* logged :
       {"[OTLP TRACE GRPC Exporter] Export() failed with status_code: \"UNAVAILABLE\" "
        "error_message: \"failed to connect to all addresses; last error: INTERNAL: "
        "ipv4:127.0.0.1:4318: Trying to connect an http1.x server\"",
        "[OTLP LOG GRPC Exporter] Export() failed: Received http2 header with status: 404"}) {
    EXPECT_THAT(DescribeFailure(logged), AllOf(HasSubstr("HTTP and no gRPC"), HasSubstr("4317"),
                                               HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT")));
  }
}

TEST(DescribeFailureTest, SaysWhatToSetWhereACollectorHasNoTls) {
  EXPECT_THAT(DescribeFailure("[OTLP LOG GRPC Exporter] Export() failed: failed to connect to all "
                              "addresses; last error: UNKNOWN: ipv4:127.0.0.1:4317: Ssl handshake "
                              "failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version "
                              "number"),
              AllOf(HasSubstr("no TLS"), HasSubstr("write http://")));
}

TEST(DescribeFailureTest, LeavesTheLibraryOutOfAnyOtherCause) {
  EXPECT_EQ(DescribeFailure("[OTLP METRIC GRPC Exporter] Export() failed: Deadline Exceeded"),
            "Deadline Exceeded");
  EXPECT_EQ(DescribeFailure("[OTLP TRACE GRPC Exporter] Export() failed with status_code: "
                            "\"UNIMPLEMENTED\" error_message: \"Method not found!\""),
            "Method not found!");
  EXPECT_EQ(DescribeFailure("something else"), "something else");
}

}  // namespace
}  // namespace muster::telemetry
