// A directory for the tests of one report; gone with the object.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace muster::report_sqlite {

class ReportDir {
 public:
  ReportDir() : dir_(::testing::TempDir() + "reportXXXXXX") {
    if (mkdtemp(dir_.data()) == nullptr) ADD_FAILURE() << "cannot make " << dir_;
  }
  ReportDir(const ReportDir&) = delete;
  ReportDir& operator=(const ReportDir&) = delete;
  ~ReportDir() {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  std::string path() const { return dir_ + "/report.db"; }

 private:
  std::string dir_;
};

}  // namespace muster::report_sqlite
