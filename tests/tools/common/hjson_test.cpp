#include "tools/common/hjson.h"

#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace dcsim {
namespace {

Json Read(std::string_view text) {
  return ParseHjson(text, "ds.json").json();
}

TEST(HjsonTest, CommentsAndCommasAreDeepSpeeds) {
  const Json expected = {{"a", 1}, {"b", {1, 2}}, {"c", {{"d", "x"}}}};
  EXPECT_EQ(
      Read("{// one\n \"a\": 1, # two\n /* three\n*/ \"b\": [1, 2,],\n \"c\": {\"d\": 'x',},}"),
      expected);
  EXPECT_EQ(Read("a: 1\nb: [1\n2]\nc: {d: \"x\"}\n"), expected);
}

TEST(HjsonTest, TextsWithoutQuotesEndWithTheirLine) {
  EXPECT_EQ(Read("{a: one, two\n b: true, c: null # no\n d: 5e8 }"),
            (Json{{"a", "one, two"}, {"b", true}, {"c", nullptr}, {"d", 500000000}}));
}

// hjson/decoder.py makes whole fractions below 1e10 integers.
TEST(HjsonTest, NumbersAreDeepSpeeds) {
  const Json read = Read("[2e8, 1.0, 1e12, 0.5, -3]");
  EXPECT_TRUE(read[0].is_number_integer());
  EXPECT_TRUE(read[1].is_number_integer());
  EXPECT_TRUE(read[2].is_number_float());
  EXPECT_EQ(read[3], 0.5);
  EXPECT_EQ(read[4], -3);
}

TEST(HjsonTest, EscapesAreJsons) {
  EXPECT_EQ(Read(R"(["\u00e9\n\"", "\ud83d\ude00"])"), (Json{"é\n\"", "😀"}));
}

TEST(HjsonTest, FaultsHaveAPlace) {
  const auto fault = [](std::string_view text) { return ErrorText([&] { Read(text); }); };
  EXPECT_EQ(fault("{\"a\": 1,\n \"a\": 2}"), "ds.json:2:2: key 'a' stands twice");
  EXPECT_EQ(fault("{\"a\": 1"),
            "ds.json:1:8: not valid JSON: expected '}' before the end of the file");
  EXPECT_EQ(fault("{\"a\": \"x\n\"}"),
            "ds.json:1:7: not valid JSON: a text that runs over the end of its line");
  EXPECT_EQ(fault("{a 1}"), "ds.json:1:2: not valid JSON: expected a key and ':'");
  EXPECT_EQ(fault("{} x"),
            "ds.json:1:4: not valid JSON: expected the end of the file behind its value");
  EXPECT_EQ(fault("{a: /* x"), "ds.json:1:5: not valid JSON: the comment has no end");
  EXPECT_NE(fault(std::string(100, '[')).find("nests too deep"), std::string::npos);
}

TEST(HjsonTest, PlacesAreThoseOfKeys) {
  const YamlDocument document = ParseHjson("{\n  \"a\": {\"b\": [1,\n 2]}}", "ds.json");
  EXPECT_EQ(document.locator()("/a/b"), "ds.json:2:9: a/b");
  EXPECT_EQ(document.locator()("/a/b/1"), "ds.json:3:2: a/b/1");
}

TEST(HjsonTest, WhatIsNoYamlIsTold) {
  EXPECT_TRUE(IsHjson("", "ds.json"));
  EXPECT_TRUE(IsHjson(" // x\n{", "ds_config"));
  EXPECT_FALSE(IsHjson("format: dc-plan-spec/1", "plan"));
  EXPECT_FALSE(IsHjson("{format: dc-plan-spec/1}", "plan.yaml"));
}

}  // namespace
}  // namespace dcsim
