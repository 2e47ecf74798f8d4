// SPDX-License-Identifier: Apache-2.0

// queue_auth_judge ACCOUNTS: reads requests from stdin, one JSON object in each line, and writes
// what the Authenticator says of each: {"code":"AuthenticationFailed","detail":"…"}; "" is OK.
// ACCOUNTS is a list as MUSTER_ACCOUNTS has it. The time is now.
//
//   {"method":"GET","path":"/sally/q","query":[["comp","acl"]],"headers":[["x-ms-date","…"]],
//    "account":"sally","secondary":false,"queue":"q","ip":"127.0.0.1","https":false,
//    "operation":"GetQueueAcl","policies":[["id","start","expiry","permission"]]}
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "services/queue-gateway/auth/authenticator.h"

namespace muster::queue_gateway::auth {
namespace {

using nlohmann::json;

const std::map<std::string, Operation>& Operations() {
  static const auto* const operations = new std::map<std::string, Operation>{
      {"ListQueues", Operation::kListQueues},
      {"GetServiceProperties", Operation::kGetServiceProperties},
      {"SetServiceProperties", Operation::kSetServiceProperties},
      {"GetServiceStats", Operation::kGetServiceStats},
      {"CreateQueue", Operation::kCreateQueue},
      {"DeleteQueue", Operation::kDeleteQueue},
      {"GetQueueMetadata", Operation::kGetQueueMetadata},
      {"SetQueueMetadata", Operation::kSetQueueMetadata},
      {"GetQueueAcl", Operation::kGetQueueAcl},
      {"SetQueueAcl", Operation::kSetQueueAcl},
      {"PutMessage", Operation::kPutMessage},
      {"GetMessages", Operation::kGetMessages},
      {"PeekMessages", Operation::kPeekMessages},
      {"UpdateMessage", Operation::kUpdateMessage},
      {"DeleteMessage", Operation::kDeleteMessage},
      {"ClearMessages", Operation::kClearMessages}};
  return *operations;
}

SignedRequest ReadRequest(const json& line) {
  SignedRequest request;
  request.method = line.at("method");
  request.raw_path = line.at("path");
  request.query = line.at("query").get<std::vector<std::pair<std::string, std::string>>>();
  request.headers = line.at("headers").get<std::vector<std::pair<std::string, std::string>>>();
  request.account = line.at("account");
  request.is_secondary = line.at("secondary");
  request.queue = line.at("queue");
  request.peer_ip = line.at("ip");
  request.is_https = line.at("https");
  return request;
}

std::vector<StoredPolicy> ReadPolicies(const json& line) {
  std::vector<StoredPolicy> policies;
  for (const auto& policy : line.at("policies").get<std::vector<std::array<std::string, 4>>>()) {
    policies.push_back({policy[0], policy[1], policy[2], policy[3]});
  }
  return policies;
}

int Run(const std::string& account_list) {
  const absl::StatusOr<Accounts> accounts = ParseAccountList(account_list);
  if (!accounts.ok()) {
    std::cerr << accounts.status() << "\n";
    return 2;
  }
  const FixedAccounts source(*accounts);
  const Authenticator authenticator(&source, nullptr, base::RealClock());
  for (std::string line; std::getline(std::cin, line);) {
    const json object = json::parse(line);
    const Verdict verdict =
        authenticator.Check(ReadRequest(object), Operations().at(object.at("operation")),
                            [&] { return ReadPolicies(object); });
    const absl::string_view code = verdict.ok() ? "" : errors::InfoOf(*verdict.code).name;
    std::cout << json{{"code", std::string(code)}, {"detail", verdict.detail}} << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace muster::queue_gateway::auth

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: queue_auth_judge ACCOUNTS < REQUESTS\n";
    return 2;
  }
  return muster::queue_gateway::auth::Run(argv[1]);
}
