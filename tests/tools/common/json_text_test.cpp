#include "tools/common/json_text.h"

#include <gtest/gtest.h>

namespace dcsim {
namespace {

TEST(JsonTextTest, ShortDocumentIsOneLine) {
  EXPECT_EQ(PrintJson(Json::parse(R"({"b":[1,2.5,null],"a":{"x":"\"é\""},"e":[],"o":{}})")),
            "{\"b\": [1, 2.5, null], \"a\": {\"x\": \"\\\"é\\\"\"}, \"e\": [], \"o\": {}}\n");
}

// 120 characters still are one line, and the comma behind an element counts.
TEST(JsonTextTest, LongerThanALineBreaks) {
  const std::string word(120 - 8, 'x');  // ["…", 1] and a comma's place
  EXPECT_EQ(PrintJson(Json::array({word, 1})), "[\"" + word + "\", 1]\n");
  EXPECT_EQ(PrintJson(Json::array({word + "x", 1})), "[\n \"" + word + "x\", 1\n]\n");
  EXPECT_EQ(PrintJson(Json{{"key", word}, {"other", Json::array()}}),
            "{\n \"key\": \"" + word + "\",\n \"other\": []\n}\n");
}

TEST(JsonTextTest, NumbersFillLines) {
  Json numbers = Json::array();
  for (int i = 100; i < 150; ++i) {
    numbers.push_back(i);
  }
  const std::string text = PrintJson(Json{{"numbers", numbers}});
  std::size_t lines = 0;
  std::size_t longest = 0;
  for (std::size_t from = 0; from < text.size(); ++lines) {
    const std::size_t end = text.find('\n', from);
    longest = std::max(longest, end - from);
    from = end + 1;
  }
  EXPECT_EQ(lines, 7U);  // 50 numbers of five characters, 23 to a line, in a list in an object
  EXPECT_LE(longest, 120U);
  EXPECT_GT(longest, 114U);
  EXPECT_EQ(Json::parse(text).at("numbers"), numbers);
}

TEST(JsonTextTest, NestedObjectsKeepTheirLines) {
  Json list = Json::array();
  for (int i = 0; i < 3; ++i) {
    list.push_back({{"position", i}, {"name", std::string(60, 'n')}});
  }
  const std::string name(60, 'n');
  EXPECT_EQ(PrintJson(list), "[\n {\"position\": 0, \"name\": \"" + name +
                                 "\"},\n {\"position\": 1, \"name\": \"" + name +
                                 "\"},\n {\"position\": 2, \"name\": \"" + name + "\"}\n]\n");
}

}  // namespace
}  // namespace dcsim
