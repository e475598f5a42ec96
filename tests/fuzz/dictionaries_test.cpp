// Fuzzers know every key: those of all committed files are in the dictionaries that they get.

#include <array>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/source_folder.h"
#include "tools/common/file.h"
#include "tools/common/yaml_document.h"

namespace dcsim {
namespace {

const std::string kRoot = SourceFolder();

std::set<std::string> DictionaryOf(const std::string& target) {
  const std::string command = kRoot + "/tests/fuzz/dictionary.sh " + target;
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::set<std::string> entries;
  std::array<char, 256> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string text = line.data();
    entries.insert(text.substr(0, text.find('\n')));
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return entries;
}

void AddKeys(const Json& value, std::set<std::string>& keys) {
  for (const auto& [key, part] : value.items()) {
    if (value.is_object()) {
      keys.insert(key);
    }
    if (part.is_structured()) {
      AddKeys(part, keys);
    }
  }
}

std::set<std::string> KeysOf(const std::string& folder) {
  std::set<std::string> keys;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/configs/" + folder)) {
    if (entry.path().extension() == ".yaml") {
      AddKeys(YamlDocument::Parse(ReadFile(entry.path().string()), "configs").json(), keys);
    }
  }
  EXPECT_FALSE(keys.empty()) << folder;
  return keys;
}

void ExpectKnown(const std::string& target, const std::string& folder) {
  const std::set<std::string> known = DictionaryOf(target);
  for (const std::string& key : KeysOf(folder)) {
    EXPECT_TRUE(known.contains('"' + key + '"')) << target << ": " << key;
  }
}

TEST(DictionariesTest, KnowTheKeysOfEveryCommittedFile) {
  ExpectKnown("cluster", "clusters");
  ExpectKnown("cluster", "gpus");
  ExpectKnown("plan", "plans");
  ExpectKnown("space", "spaces");
}

}  // namespace
}  // namespace dcsim
