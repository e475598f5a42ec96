// What a path of measured results stands for.

#include "tools/common/measured_results.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/error_text.h"
#include "tests/tools/temporary_folder.h"

namespace dcsim {
namespace {

using testing::ElementsAre;

void Put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A pack, compressed by the program of that name.
void PutPack(const std::string& path, const std::string& text) {
  Put(path.substr(0, path.size() - 3), text);
  ASSERT_EQ(std::system(("xz " + path.substr(0, path.size() - 3)).c_str()), 0);
}

/// "source=document" of all results.
std::vector<std::string> Found(const std::string& path) {
  std::vector<std::string> found;
  ForEachMeasured(path, [&](const MeasuredDocument& each) {
    found.push_back(each.source + "=" + each.document.dump());
  });
  return found;
}

std::string ErrorOf(const std::string& path) {
  return ErrorText([&path] { Found(path); });
}

constexpr const char* kTwo =
    "{\"name\":\"zero1\",\"result\":{\"a\":1}}\n{\"name\":\"zero3\",\"result\":2}\n";

TEST(MeasuredResultsTest, AFileIsOneResult) {
  const TemporaryFolder folder;
  Put(folder / "zero1.json", "{\"a\": 1}");
  EXPECT_THAT(Found(folder / "zero1.json"), ElementsAre(folder / "zero1.json={\"a\":1}"));
}

TEST(MeasuredResultsTest, APackIsAllOfThemOrOne) {
  const TemporaryFolder folder;
  const std::string pack = folder / "h200-4.jsonl.xz";
  PutPack(pack, kTwo);
  EXPECT_THAT(Found(pack), ElementsAre(pack + ":zero1={\"a\":1}", pack + ":zero3=2"));
  EXPECT_THAT(Found(pack + ":zero3"), ElementsAre(pack + ":zero3=2"));
}

TEST(MeasuredResultsTest, AFolderIsItsFilesAndPacksWithoutTimelines) {
  const TemporaryFolder folder;
  PutPack(folder / "h200-4.jsonl.xz", kTwo);
  Put(folder / "zero1.json", "7");
  Put(folder / "zero1.timeline.json", "8");
  Put(folder / "manifest.txt", "9");
  EXPECT_THAT(Found(folder.path()),
              ElementsAre(folder / "h200-4.jsonl.xz:zero1={\"a\":1}",
                          folder / "h200-4.jsonl.xz:zero3=2", folder / "zero1.json=7"));
}

TEST(MeasuredResultsTest, WhatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  const std::string pack = folder / "h200-4.jsonl.xz";
  EXPECT_EQ(ErrorOf(pack + ":zero1"), pack + ": no such file");
  EXPECT_EQ(ErrorOf(folder.path()),
            folder.path() +
                ": holds no result of dc-run (.json or .json.gz) and no pack of results "
                "(.jsonl.xz)");
  const TemporaryFolder recording;
  Put(recording / "graph.json.xz", "");
  EXPECT_EQ(ErrorOf(recording.path()),
            recording.path() + ": a recorded workload, expected results measured of it, such as " +
                (recording / "measured/CLUSTER.jsonl.xz"));
  PutPack(pack, kTwo);
  EXPECT_EQ(ErrorOf(pack + ":"), pack + ": holds no result ''");
  EXPECT_EQ(ErrorOf(pack + ":zero11"), pack + ": holds no result 'zero11', did you mean 'zero1'?");
}

TEST(MeasuredResultsTest, ALineThatIsNoneIsAnError) {
  const TemporaryFolder folder;
  const std::string pack = folder / "a.jsonl.xz";
  PutPack(pack, std::string(kTwo) + "{\"name\":3,\"results\":{}}\n");
  const std::string error = ErrorOf(pack);
  EXPECT_THAT(error, testing::HasSubstr(pack + ":3: /name: "));
  EXPECT_THAT(error, testing::HasSubstr(pack + ":3: /results: "));
  EXPECT_THAT(error, testing::HasSubstr("result"));
}

TEST(MeasuredResultsTest, ANameTwiceIsAnError) {
  const TemporaryFolder folder;
  const std::string pack = folder / "a.jsonl.xz";
  PutPack(pack, std::string(kTwo) + "{\"name\":\"zero1\",\"result\":{}}\n");
  EXPECT_EQ(ErrorOf(pack), pack + ":3: /name: 'zero1' is the name of an earlier line, too");
}

TEST(MeasuredResultsTest, AnEmptyPackIsAnError) {
  const TemporaryFolder folder;
  PutPack(folder / "a.jsonl.xz", "");
  EXPECT_EQ(ErrorOf(folder / "a.jsonl.xz"), folder / "a.jsonl.xz" + ": holds no result");
}

}  // namespace
}  // namespace dcsim
