// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/os/temp_dir.h"
#include "services/queue-gateway/auth/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::queue_gateway::auth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string Key(char byte, size_t bytes = 64) {
  return absl::Base64Escape(std::string(bytes, byte));
}

TEST(AccountsTest, ReadsAnAccountWithOneKeyOrTwo) {
  const auto one = ParseAccount(absl::StrCat("sally:", Key('a')));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->name, "sally");
  EXPECT_THAT(one->keys, ElementsAre(std::string(64, 'a')));

  const auto two = ParseAccount(absl::StrCat("abc:", Key('a'), ":", Key('b', kMinKeyBytes)));
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT(two->keys, ElementsAre(std::string(64, 'a'), std::string(kMinKeyBytes, 'b')));
}

TEST(AccountsTest, RefusesWhatIsNoAccount) {
  const std::string key = Key('a');
  for (const std::string& text :
       {std::string(), std::string("sally"), std::string("sally:"), ":" + key, "ab:" + key,
        "Sally:" + key, "sal-ly:" + key, "abcdefghijklmnopqrstuvwxy:" + key, "sally:" + key + ":",
        "sally:" + key + ":" + key + ":" + key, std::string("sally:not base64"),
        "sally:" + Key('a', kMinKeyBytes - 1), "sally:" + Key('a', kMaxKeyBytes + 1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAccount(text).status())) << text;
  }
}

TEST(AccountsTest, ShowsNoKeyInAnError) {
  const std::string secret = "c2VjcmV0";
  for (const std::string& text : {"sally:" + secret, "sally:" + secret + "!",
                                  "sally:" + secret + ":" + secret + ":" + secret}) {
    EXPECT_THAT(std::string(ParseAccount(text).status().message()), Not(HasSubstr(secret))) << text;
  }
}

TEST(AccountsTest, ReadsAListAsTheEnvironmentHasIt) {
  const auto accounts =
      ParseAccountList(absl::StrCat("sally:", Key('a'), "; bob:", Key('b'), ":", Key('c'), ";"));
  ASSERT_TRUE(accounts.ok()) << accounts.status();
  EXPECT_THAT(*accounts, SizeIs(2));
  EXPECT_THAT(accounts->at("bob").keys, SizeIs(2));
  EXPECT_THAT(*ParseAccountList(""), SizeIs(0));

  const auto twice = ParseAccountList(absl::StrCat("sally:", Key('a'), ";sally:", Key('b')));
  EXPECT_THAT(std::string(twice.status().message()), HasSubstr("'sally' is there twice"));
}

TEST(AccountsTest, NamesTheLineOfAMistakeInAFile) {
  const std::string good = absl::StrCat("# keys of the test\n\nsally:", Key('a'), "\r\n");
  EXPECT_THAT(*ParseAccountFile(good, "accounts"), SizeIs(1));
  const auto wrong = ParseAccountFile(good + "bob", "accounts");
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("accounts:4: "));
}

TEST(AccountsTest, KnowsThePublishedKeyOfTheDevelopmentAccount) {
  const Account account = DevelopmentAccount();
  EXPECT_EQ(account.name, "devstoreaccount1");
  ASSERT_THAT(account.keys, SizeIs(1));
  EXPECT_THAT(account.keys[0], SizeIs(64));
}

class AccountFileTest : public ::testing::Test {
 protected:
  // Replaces the file as a secret that is mounted into a container is replaced.
  void Write(const std::string& text) {
    const std::string next = dir_ / "next";
    std::ofstream(next) << text;
    ASSERT_EQ(std::rename(next.c_str(), path_.c_str()), 0);
  }

  std::unique_ptr<AccountFile> Open() {
    auto file = AccountFile::Open(path_, {}, &clock_);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  base::LogCapture log_;
  os::TempDir dir_;
  const std::string path_ = dir_ / "accounts";
  base::FakeClock clock_;
};

TEST_F(AccountFileTest, TakesANewKeyWithoutARestart) {
  Write(absl::StrCat("sally:", Key('a'), "\n"));
  const auto accounts = Open();
  const auto before = accounts->Find("sally");
  ASSERT_NE(before, nullptr);

  Write(absl::StrCat("sally:", Key('b'), ":", Key('a'), "\n"));
  EXPECT_THAT(accounts->Find("sally")->keys, SizeIs(1)) << "looked sooner than it says";
  clock_.Advance(kFileRefresh);
  EXPECT_THAT(accounts->Find("sally")->keys,
              ElementsAre(std::string(64, 'b'), std::string(64, 'a')));
  EXPECT_THAT(before->keys, SizeIs(1)) << "a request goes on with the keys that it began with";
}

TEST_F(AccountFileTest, KeepsTheAccountsWhenTheFileBecomesWrong) {
  Write(absl::StrCat("sally:", Key('a'), "\n"));
  const auto accounts = Open();
  Write("sally:short\n");
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kFileRefresh);
    EXPECT_NE(accounts->Find("sally"), nullptr);
  }
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  clock_.Advance(kFileRefresh);
  EXPECT_NE(accounts->Find("sally"), nullptr);
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("no base64"), HasSubstr("cannot read")));
}

// A key that the file has no more stayed valid until the next change of the file, where one look at
// it had found no file descriptor left.
TEST_F(AccountFileTest, ReadsAChangedFileAgainThatCouldNotBeRead) {
  Write(absl::StrCat("sally:", Key('a'), "\n"));
  const auto accounts = Open();
  Write(absl::StrCat("sally:", Key('b'), "\n"));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kFileRefresh);
    EXPECT_THAT(accounts->Find("sally")->keys, ElementsAre(std::string(64, 'a')));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  clock_.Advance(kFileRefresh);
  EXPECT_THAT(accounts->Find("sally")->keys, ElementsAre(std::string(64, 'b')));
  EXPECT_THAT(log_.lines(), ElementsAre(HasSubstr("cannot read"), HasSubstr("is in force")));
}

TEST_F(AccountFileTest, ForgetsAnAccountThatTheFileHasNoMore) {
  Write(absl::StrCat("sally:", Key('a'), "\nbob:", Key('b'), "\n"));
  const auto accounts = Open();
  Write(absl::StrCat("sally:", Key('a'), "\n"));
  clock_.Advance(kFileRefresh);
  EXPECT_EQ(accounts->Find("bob"), nullptr);
}

TEST_F(AccountFileTest, AddsTheAccountsThatTheFileHasNot) {
  Write(absl::StrCat("sally:", Key('a'), "\n"));
  const Accounts also = *ParseAccountList(absl::StrCat("sally:", Key('x'), ";bob:", Key('y')));
  const auto file = AccountFile::Open(path_, also, &clock_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->Find("sally")->keys, ElementsAre(std::string(64, 'a')));
  EXPECT_NE((*file)->Find("bob"), nullptr);
}

TEST_F(AccountFileTest, RefusesToStartWithAWrongFile) {
  EXPECT_TRUE(absl::IsInvalidArgument(AccountFile::Open(path_, {}, &clock_).status()));
  Write(std::string(kMaxFileBytes + 1, '#'));
  EXPECT_TRUE(absl::IsInvalidArgument(AccountFile::Open(path_, {}, &clock_).status()));
}

}  // namespace
}  // namespace muster::queue_gateway::auth
