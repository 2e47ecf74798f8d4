// SPDX-License-Identifier: Apache-2.0

// Account: a name and its keys. AccountSource: where the gateway looks accounts up.
//
// An account is written NAME:KEY or NAME:KEY:KEY2, with keys in base64. A list of accounts, as in
// the environment's MUSTER_ACCOUNTS, is separated by ";". A file has one account in each line;
// empty lines and lines that begin with "#" mean nothing. To change a key without a gap, clients
// move to the second one while the first is replaced.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "services/queue-gateway/auth/watched_file.h"

namespace muster::queue_gateway::auth {

struct Account {
  std::string name;               // 3–24 of a–z and 0–9
  std::vector<std::string> keys;  // one or two; the bytes that base64 stood for

  bool operator==(const Account&) const = default;
};

using Accounts = std::map<std::string, Account>;

// The account of a local run, with its published key: devstoreaccount1.
Account DevelopmentAccount();

// InvalidArgument, without the key: the name is none, there is no key or a third one, a key is no
// base64 or not kMinKeyBytes to kMaxKeyBytes long.
absl::StatusOr<Account> ParseAccount(absl::string_view text);
// The same for a list that is separated by ";". Two accounts of one name are InvalidArgument.
absl::StatusOr<Accounts> ParseAccountList(absl::string_view text);
// The same for the text of a file; errors name `file_name` and the line.
absl::StatusOr<Accounts> ParseAccountFile(absl::string_view text, absl::string_view file_name);

// Thread-safe.
class AccountSource {
 public:
  virtual ~AccountSource() = default;
  // Null: there is no such account. Shared: a request goes on with the keys that it began with.
  virtual std::shared_ptr<const Account> Find(const std::string& name) const = 0;
  // Of all accounts, in order.
  virtual std::vector<std::string> Names() const = 0;
};

// Accounts that stay as they are. Thread-safe.
class FixedAccounts final : public AccountSource {
 public:
  explicit FixedAccounts(const Accounts& accounts);
  std::shared_ptr<const Account> Find(const std::string& name) const override;
  std::vector<std::string> Names() const override;

 private:
  std::map<std::string, std::shared_ptr<const Account>> accounts_;
};

// The accounts of a file. A changed file is in force within kFileRefresh (limits.h); if it is
// wrong, that is logged as an error, and the accounts before stay. Thread-safe.
class AccountFile final : public AccountSource {
 public:
  // `also` are accounts beside those of the file, which counts where both have a name.
  // InvalidArgument: the file cannot be read, or is wrong. `clock` is not owned.
  static absl::StatusOr<std::unique_ptr<AccountFile>> Open(const std::string& path,
                                                           const Accounts& also,
                                                           const base::Clock* clock);
  std::shared_ptr<const Account> Find(const std::string& name) const override;
  std::vector<std::string> Names() const override;

 private:
  explicit AccountFile(std::unique_ptr<WatchedFile<FixedAccounts>> file) : file_(std::move(file)) {}

  const std::unique_ptr<WatchedFile<FixedAccounts>> file_;
};

}  // namespace muster::queue_gateway::auth
