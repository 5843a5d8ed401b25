// A run that resumes over records of another version or commit of lipscope.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lipscope/core/version.h"
#include "lipscope/record/key.h"
#include "lipscope/record/records.h"

namespace lipscope {
namespace other_versions_test {

using nlohmann::ordered_json;

class OtherVersions : public testing::Test {
 protected:
  OtherVersions() {
    std::filesystem::remove(file);
    question.command = "measure";
    question.model = "random d=2,heads=1";
    question.lower = 1.5;
    Records(RecordsOptions{.file = file}).add(question);
    std::ifstream(file) >> record;
  }
  ~OtherVersions() override { std::filesystem::remove(file); }

  // resumes over the record with one field changed; whether it was an answer
  bool is_answer(const char* field, const std::string& value) {
    ordered_json changed = record;
    changed[field] = value;
    std::ofstream(file) << changed.dump() << "\n";
    notes.clear();
    Records records({.file = file, .resume = true, .noted = [&](auto& note) {
                       notes.push_back(note);
                     }});
    return records.find(question) != nullptr;
  }

  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "other_versions.jsonl";
  Record question;
  ordered_json record;
  std::vector<std::string> notes;
};

TEST_F(OtherVersions, AreDoneAgain) {
  EXPECT_FALSE(is_answer("version", "0.1.0"));
  EXPECT_EQ(notes, std::vector<std::string>{
                       "records of version 0.1.0 (1 in the file) are not "
                       "answers of this version, 0.2.0, and are done again"});
}

TEST_F(OtherVersions, CommitsOfOneVersionAnswerAlike) {
  EXPECT_EQ(record["commit"], commit());
  EXPECT_TRUE(is_answer("commit", "0123456789ab"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("of commit 0123456789ab (1 in the file) are kept"),
            std::string::npos)
      << notes[0];
}

TEST_F(OtherVersions, AreNotSpokenOfWhereThereAreNone) {
  EXPECT_TRUE(is_answer("version", version()));
  EXPECT_TRUE(notes.empty());
}

}  // namespace other_versions_test
}  // namespace lipscope
