// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/accounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/mac.h"

namespace muster::queue_gateway::auth {

namespace {

constexpr absl::string_view kDevelopmentAccount =
    "devstoreaccount1:"
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

constexpr size_t kMinNameBytes = 3;
constexpr size_t kMaxNameBytes = 24;

bool IsAccountName(absl::string_view name) {
  return name.size() >= kMinNameBytes && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); });
}

// Names the account only: what is wrong with a key must not show the key.
absl::StatusOr<std::string> ParseKey(absl::string_view name, absl::string_view text) {
  const std::optional<std::string> key = DecodeBase64(text);
  if (!key.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("a key of account '", name, "' is no base64"));
  }
  if (key->size() < kMinKeyBytes || key->size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a key of account '", name, "' has ",
                                                   key->size(), " bytes, but must have ",
                                                   kMinKeyBytes, " to ", kMaxKeyBytes));
  }
  return *key;
}

absl::Status Insert(Account account, Accounts* accounts) {
  const std::string name = account.name;
  if (accounts->emplace(name, std::move(account)).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the account '", name, "' is there twice"));
}

}  // namespace

Account DevelopmentAccount() {
  absl::StatusOr<Account> account = ParseAccount(kDevelopmentAccount);
  MUSTER_CHECK(account.ok(), account.status().message());
  return *std::move(account);
}

absl::StatusOr<Account> ParseAccount(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() < 2 || parts.size() > 3) {
    return absl::InvalidArgumentError("an account is written NAME:KEY or NAME:KEY:KEY2");
  }
  if (!IsAccountName(parts[0])) {
    return absl::InvalidArgumentError(
        absl::StrCat(base::Quoted(parts[0]), " is no name of an account: it must have ",
                     kMinNameBytes, " to ", kMaxNameBytes, " lower-case letters and digits"));
  }
  Account account;
  account.name = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    MUSTER_ASSIGN_OR_RETURN(std::string key, ParseKey(account.name, parts[i]));
    account.keys.push_back(std::move(key));
  }
  return account;
}

absl::StatusOr<Accounts> ParseAccountList(absl::string_view text) {
  Accounts accounts;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(Account account, ParseAccount(part));
    MUSTER_RETURN_IF_ERROR(Insert(std::move(account), &accounts));
  }
  return accounts;
}

absl::StatusOr<Accounts> ParseAccountFile(absl::string_view text, absl::string_view file_name) {
  Accounts accounts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<Account> account = ParseAccount(line);
    absl::Status status = account.status();
    if (status.ok()) status = Insert(*std::move(account), &accounts);
    MUSTER_RETURN_IF_ERROR(base::Annotate(status, absl::StrCat(file_name, ":", number)));
  }
  return accounts;
}

FixedAccounts::FixedAccounts(const Accounts& accounts) {
  for (const auto& [name, account] : accounts) {
    accounts_.emplace(name, std::make_shared<const Account>(account));
  }
}

std::shared_ptr<const Account> FixedAccounts::Find(const std::string& name) const {
  const auto account = accounts_.find(name);
  return account == accounts_.end() ? nullptr : account->second;
}

std::vector<std::string> FixedAccounts::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, account] : accounts_) names.push_back(name);
  return names;
}

absl::StatusOr<std::unique_ptr<AccountFile>> AccountFile::Open(const std::string& path,
                                                               const Accounts& also,
                                                               const base::Clock* clock) {
  auto parse = [path, also](absl::string_view text) -> absl::StatusOr<FixedAccounts> {
    MUSTER_ASSIGN_OR_RETURN(Accounts accounts, ParseAccountFile(text, path));
    accounts.insert(also.begin(), also.end());
    return FixedAccounts(accounts);
  };
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<WatchedFile<FixedAccounts>> file,
                          WatchedFile<FixedAccounts>::Open(path, std::move(parse), clock));
  return std::unique_ptr<AccountFile>(new AccountFile(std::move(file)));
}

std::shared_ptr<const Account> AccountFile::Find(const std::string& name) const {
  return file_->Current()->Find(name);
}

std::vector<std::string> AccountFile::Names() const { return file_->Current()->Names(); }

}  // namespace muster::queue_gateway::auth
