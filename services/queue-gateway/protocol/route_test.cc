// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/route.h"

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::queue_gateway::protocol {
namespace {

using auth::Operation;

bool IsAcct(const std::string& name) { return name == "acct"; }

// "account[*]|queue|messages|id", with a star for the secondary location; or the error's code.
std::string Find(absl::string_view host, absl::string_view path) {
  const std::optional<Target> target = ParseTarget(path);
  if (!target.has_value()) return "no target";
  const OrError<Resource> resource = FindResource(host, *target, IsAcct);
  if (!resource.ok()) return std::string(errors::InfoOf(resource.error().code).name);
  return absl::StrCat(resource->account, resource->is_secondary ? "*" : "", "|", resource->queue,
                      "|", resource->is_messages ? "messages" : "", "|", resource->message_id);
}

TEST(RouteTest, FindsTheAccountInThePath) {
  EXPECT_EQ(Find("localhost:10001", "/acct"), "acct|||");
  EXPECT_EQ(Find("localhost:10001", "/acct/?comp=list"), "acct|||");
  EXPECT_EQ(Find("127.0.0.1:10001", "/acct/queue"), "acct|queue||");
  EXPECT_EQ(Find("[::1]:10001", "/acct/queue/messages"), "acct|queue|messages|");
  EXPECT_EQ(Find("host", "/acct-secondary/queue/messages/id-1"), "acct*|queue|messages|id-1");
}

TEST(RouteTest, FindsTheAccountInTheHost) {
  EXPECT_EQ(Find("acct.queue.localhost:10001", "/"), "acct|||");
  EXPECT_EQ(Find("acct.queue.localhost", "/queue/messages/id-1?popreceipt=x"),
            "acct|queue|messages|id-1");
  EXPECT_EQ(Find("acct-secondary.queue.localhost", "/?comp=list"), "acct*|||");
}

TEST(RouteTest, FindsTheAccountInThePathWhereTheHostHasDotsAndNamesNone) {
  EXPECT_EQ(Find("mesh.svc.cluster.local:10001", "/acct/queue"), "acct|queue||");
  EXPECT_EQ(Find("mesh-secondary.example", "/acct/queue"), "acct|queue||");
  EXPECT_EQ(Find("ACCT.example", "/queue"), "acct|queue||");
}

TEST(RouteTest, TakesATargetWithItsOrigin) {
  EXPECT_EQ(Find("localhost", "http://localhost:1/acct/queue"), "acct|queue||");
}

// As a proxy sends it, whose own name may be in the header.
TEST(RouteTest, PrefersTheHostOfTheTargetToThatOfTheHeader) {
  EXPECT_EQ(Find("proxy", "http://acct.queue.localhost:1/queue"), "acct|queue||");
  EXPECT_EQ(Find("", "http://acct-secondary.queue.localhost?comp=list"), "acct*|||");
  EXPECT_EQ(Find("acct.queue.localhost", "http://localhost/acct/queue"), "acct|queue||");
}

TEST(RouteTest, TakesAListOrAServiceForThatOfTheAccountWhateverThePath) {
  EXPECT_EQ(Find("localhost", "/acct-secondary/acct?restype=service&comp=stats"), "acct*|||");
  EXPECT_EQ(Find("localhost", "/acct/queue?comp=list"), "acct|||");
}

TEST(RouteTest, RefusesPathsOfNoResource) {
  for (const char* path :
       {"/", "//queue", "/acct/queue/other", "/acct/queue/messages/id/more", "/acct//messages"}) {
    EXPECT_EQ(Find("localhost", path), "InvalidUri") << path;
  }
  EXPECT_EQ(Find("localhost", "/acct/%zz"), "no target");
  EXPECT_EQ(Find("localhost", "*"), "no target");
}

TEST(RouteTest, DecodesThePathAndTheQuery) {
  EXPECT_EQ(Find("localhost", "/acct/a%2Fb"), "acct|a/b||");
  const Target target = *ParseTarget("/a%20b?x=1%2B+2&Y&x=3");
  EXPECT_EQ(target.raw_path, "/a%20b");
  EXPECT_EQ(target.Parameter("x"), "1+ 2");
  EXPECT_EQ(target.Parameter("y"), "");
  EXPECT_EQ(target.Parameter("z"), std::nullopt);
}

TEST(RouteTest, FindsTheOperationOfEachVerb) {
  const std::vector<std::tuple<std::string, std::string, Operation>> cases = {
      {"GET", "/a?comp=list", Operation::kListQueues},
      {"GET", "/a?restype=service&comp=properties", Operation::kGetServiceProperties},
      {"PUT", "/a?restype=service&comp=properties", Operation::kSetServiceProperties},
      {"GET", "/a?restype=service&comp=stats", Operation::kGetServiceStats},
      {"POST", "/a?restype=service&comp=userdelegationkey", Operation::kGetUserDelegationKey},
      {"PUT", "/a/q", Operation::kCreateQueue},
      {"DELETE", "/a/q", Operation::kDeleteQueue},
      {"GET", "/a/q?comp=metadata", Operation::kGetQueueMetadata},
      {"HEAD", "/a/q?comp=metadata", Operation::kGetQueueMetadata},
      {"PUT", "/a/q?comp=metadata", Operation::kSetQueueMetadata},
      {"GET", "/a/q?comp=acl", Operation::kGetQueueAcl},
      {"HEAD", "/a/q?comp=acl", Operation::kGetQueueAcl},
      {"PUT", "/a/q?comp=acl", Operation::kSetQueueAcl},
      {"POST", "/a/q/messages", Operation::kPutMessage},
      {"PUT", "/a/q/messages", Operation::kPutMessage},
      {"GET", "/a/q/messages", Operation::kGetMessages},
      {"GET", "/a/q/messages?peekonly=true", Operation::kPeekMessages},
      {"DELETE", "/a/q/messages", Operation::kClearMessages},
      {"GET", "/a/q?comp=muster-stats", Operation::kGetQueueStats},
      {"GET", "/a/q?comp=muster-poison", Operation::kListPoison},
      {"POST", "/a/q?comp=muster-redrive", Operation::kRedrivePoison},
      {"PUT", "/a/q/messages/id", Operation::kUpdateMessage},
      {"DELETE", "/a/q/messages/id", Operation::kDeleteMessage},
  };
  for (const auto& [method, path, operation] : cases) {
    const Target target = *ParseTarget(path);
    const OrError<Operation> found =
        FindOperation(method, *FindResource("localhost", target, IsAcct), target);
    ASSERT_TRUE(found.ok()) << method << " " << path;
    EXPECT_EQ(*found, operation) << method << " " << path;
  }
}

TEST(RouteTest, RefusesVerbsAndComponentsThatAreNone) {
  const std::vector<std::tuple<std::string, std::string, ErrorCode>> cases = {
      {"POST", "/a?comp=list", ErrorCode::kUnsupportedHttpVerb},
      {"GET", "/a", ErrorCode::kInvalidQueryParameterValue},
      {"GET", "/a?comp=stats", ErrorCode::kInvalidQueryParameterValue},
      {"GET", "/a/q", ErrorCode::kUnsupportedHttpVerb},
      {"PUT", "/a/q?comp=lease", ErrorCode::kInvalidQueryParameterValue},
      {"PATCH", "/a/q/messages", ErrorCode::kUnsupportedHttpVerb},
      {"GET", "/a/q/messages?peekonly=maybe", ErrorCode::kInvalidQueryParameterValue},
      {"GET", "/a/q/messages/id", ErrorCode::kUnsupportedHttpVerb},
      // Of what is there at the level of a queue: it must not clear, or lease, instead.
      {"DELETE", "/a/q/messages?comp=acl", ErrorCode::kInvalidQueryParameterValue},
      {"GET", "/a/q/messages?comp=metadata", ErrorCode::kInvalidQueryParameterValue},
      {"PUT", "/a/q/messages/id?comp=metadata", ErrorCode::kInvalidQueryParameterValue},
      // As SDKs send the delete of a message with an empty id.
      {"DELETE", "/a/q/messages/?popreceipt=x", ErrorCode::kInvalidUri},
  };
  for (const auto& [method, path, code] : cases) {
    const Target target = *ParseTarget(path);
    const OrError<Operation> found =
        FindOperation(method, *FindResource("localhost", target, IsAcct), target);
    ASSERT_FALSE(found.ok()) << method << " " << path;
    EXPECT_EQ(found.error().code, code) << method << " " << path;
  }
}

TEST(RouteTest, SaysWhichVerbsAResourceHas) {
  const auto allowed = [](absl::string_view method, absl::string_view path) {
    const Target target = *ParseTarget(path);
    return AllowedVerbs(method, *FindResource("localhost", target, IsAcct), target);
  };
  EXPECT_EQ(allowed("HEAD", "/a?comp=list"), "GET, OPTIONS");
  EXPECT_EQ(allowed("POST", "/a/q?comp=acl"), "GET, HEAD, PUT, OPTIONS");
  EXPECT_EQ(allowed("GET", "/a/q"), "PUT, DELETE, OPTIONS");
  // Put by PUT is of the dialect of 2008, and refused to others.
  EXPECT_EQ(allowed("PUT", "/a/q/messages"), "GET, POST, DELETE, OPTIONS");
}

TEST(RouteTest, AllowsTheSecondaryLocationToReadOnly) {
  EXPECT_TRUE(IsReadOnly(Operation::kPeekMessages));
  EXPECT_TRUE(IsReadOnly(Operation::kGetServiceStats));
  EXPECT_FALSE(IsReadOnly(Operation::kGetMessages));
  EXPECT_FALSE(IsReadOnly(Operation::kPutMessage));
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
