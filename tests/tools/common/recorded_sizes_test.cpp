#include "tools/common/recorded_sizes.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_reader.h"
#include "model/ir/graph_text.h"
#include "tests/support/error_text.h"
#include "tests/tools/temporary_folder.h"
#include "tools/common/file.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

/// A model of one product; parameters differ between models.
Graph Model(const std::string& name, const std::string& param = "w bfloat16[3,1]") {
  return ParseGraphText("graph " + name + " 2 tokens\nparam " + param + R"(
input x bfloat16[2,3]
forward
  y: bfloat16[2,1] = aten::mm(x, w)
  l: bfloat16[] = aten::sum(y)
  loss l
)");
}

std::string Sizes(int batch, int sequence) {
  return R"("batch": )" + std::to_string(batch) + R"(, "sequence": )" + std::to_string(sequence);
}

/// A folder of workloads. "one" has batch 8 and sequence 1024.
class RecordedSizesTest : public testing::Test {
 protected:
  RecordedSizesTest() { Record("one", Sizes(8, 1024)); }

  /// Writes a workload with these options, which a command recorded.
  void Record(const std::string& name,
              const std::string& options,
              const std::string& command = "",
              Graph graph = Model("m")) {
    graph.name = name;
    graph.notes.options = "{" + options + "}";
    graph.notes.recorder = Json{{"command", command}}.dump();
    fs::create_directory(Folder(name));
    WriteFile(Folder(name) + "/graph.json.xz", PrintGraph(graph));
  }

  std::string Folder(const std::string& name) const { return folder / name; }

  /// The folder that a what-if from the workload takes.
  std::string Found(const std::string& name, AskedSizes sizes) const {
    return fs::path(LoadWorkload(Folder(name), sizes).folder).filename().string();
  }
  std::string Error(const std::string& name, AskedSizes sizes) const {
    return ErrorText([&] { LoadWorkload(Folder(name), sizes); });
  }

  TemporaryFolder folder;
};

TEST_F(RecordedSizesTest, NothingAskedTakesAnyGraph) {
  Record("unknown", "");
  EXPECT_EQ(Found("unknown", {}), "unknown");
}

TEST_F(RecordedSizesTest, GraphThatDoesNotSayItsSizesIsAnError) {
  for (const std::string options : {R"("batch": 8)", R"("batch": "8", "sequence": 1024)"}) {
    Record("unknown", options);
    EXPECT_EQ(Error("unknown", {.batch = 8}),
              Folder("unknown") +
                  ": the graph does not say its batch and sequence, so no recording with others "
                  "can be found; name its folder instead of --batch and --seq");
  }
}

// "also" has the sizes of "one" and would come first by name.
TEST_F(RecordedSizesTest, OwnSizesAreTheWorkloadItself) {
  Record("also", Sizes(8, 1024));
  EXPECT_EQ(Found("one", {.batch = 8, .sequence = 1024}), "one");
  EXPECT_EQ(Found("one", {.sequence = 1024}), "one");
}

TEST_F(RecordedSizesTest, SizeThatIsNotAskedForStays) {
  Record("batch-4", Sizes(4, 1024));
  Record("both", Sizes(4, 512));
  Record("sequence-512", Sizes(8, 512));
  EXPECT_EQ(Found("one", {.batch = 4}), "batch-4");
  EXPECT_EQ(Found("one", {.sequence = 512}), "sequence-512");
  EXPECT_EQ(Found("one", {.batch = 4, .sequence = 512}), "both");
}

TEST_F(RecordedSizesTest, FirstOfSeveralByNameIsTaken) {
  Record("c", Sizes(4, 1024));
  Record("b", Sizes(4, 1024));
  EXPECT_EQ(Found("one", {.batch = 4}), "b");
}

// Each differs from "one" in one thing, and only the sizes may.
TEST_F(RecordedSizesTest, OtherModelsAreNoSiblings) {
  Record("dtype", Sizes(4, 1024), "", Model("m", "w float32[3,1]"));
  Record("name", Sizes(4, 1024), "", ParseGraphText(R"(
graph m 2 tokens
param v bfloat16[3,1]
input x bfloat16[2,3]
forward
  y: bfloat16[2,1] = aten::mm(x, v)
  l: bfloat16[] = aten::sum(y)
  loss l
)"));
  Record("options", Sizes(4, 1024) + R"(, "attention": "flash")");
  Record("second", Sizes(4, 1024), "", Model("m", "w bfloat16[3,1]\nparam u bfloat16[2]"));
  Record("shape", Sizes(4, 1024), "", Model("m", "w bfloat16[1,3]"));
  const std::string error = Error("one", {.batch = 4});
  EXPECT_EQ(error, "no recording of one with batch 4 and sequence 1024 in " + folder.path() +
                       "; recorded:\n  " + Folder("one") + ": batch 8 and sequence 1024");
  Record("two", Sizes(4, 1024));
  EXPECT_EQ(Found("one", {.batch = 4}), "two");
}

TEST_F(RecordedSizesTest, WhatIsNoWorkloadIsPassedOver) {
  WriteFile(Folder("a-file"), "");
  fs::create_directory(Folder("a-folder"));
  fs::create_directory(Folder("broken"));
  WriteFile(Folder("broken") + "/graph.json.xz", "{");
  Record("two", Sizes(4, 1024));
  EXPECT_EQ(Found("one", {.batch = 4}), "two");
}

TEST_F(RecordedSizesTest, WorkloadMayEndWithASlashOrADot) {
  Record("two", Sizes(4, 1024));
  EXPECT_EQ(Found("one/", {.batch = 4}), "two");
  EXPECT_EQ(Found("one/.", {.batch = 4}), "two");
}

struct CommandRow {
  const char* name;
  AskedSizes asked;
  const char* command;   // that recorded the workload
  const char* expected;  // with "@" for the folder of workloads
};

// A size in the name is replaced, one that is not in it comes behind it; options that are not there
// come before "-o".
constexpr CommandRow kCommands[] = {
    {"m-batch8",
     {.batch = 4},
     "dcrecord m --batch 8 --name m-batch8 -o traces/m-batch8",
     "dcrecord m --batch 4 --name m-batch4 -o @/m-batch4"},
    {"m-batch8",
     {.batch = 4, .sequence = 512},
     "dcrecord m --batch 8 --name m-batch8 --dtype float32 -o traces/m-batch8",
     "dcrecord m --batch 4 --name m-batch4-seq512 --dtype float32 --seq 512 -o @/m-batch4-seq512"},
    {"m",
     {.sequence = 512},
     "dcrecord m --batch 8 --seq 1024 -o traces/m",
     "dcrecord m --batch 8 --seq 512 --name m-seq512 -o @/m-seq512"},
    {"m-seq1024-batch8",
     {.batch = 16},
     "dcrecord m -o traces/m-seq1024-batch8 --batch 8",
     "dcrecord m --name m-seq1024-batch16 -o @/m-seq1024-batch16 --batch 16"},
    {"m", {.batch = 4}, "dcrecord m", "dcrecord m --batch 4 --name m-batch4 -o @/m-batch4"},
};

TEST_F(RecordedSizesTest, CommandThatRecordsTheSizesIsGiven) {
  for (const CommandRow& row : kCommands) {
    Record(row.name, Sizes(8, 1024), row.command);
    std::string expected = row.expected;
    expected.replace(expected.find('@'), 1, folder.path());
    EXPECT_THAT(Error(row.name, row.asked), EndsWith("\nThis command records it:\n  " + expected));
  }
}

std::string Options(const std::string& checkpointing, const std::string& hold) {
  return Sizes(8, 1024) + R"(, "activation_checkpointing": )" + checkpointing + R"(, "hold": )" +
         hold;
}

// Each of the shelf's recordings is another answer; sizes alone find none of them.
TEST_F(RecordedSizesTest, CheckpointingAndHeldOutputsAreFoundWhereAsked) {
  Record("held", Options("false", R"(["y"])"));
  Record("checkpointed", Options("true", R"(["y"])"));
  Record("let-go", Options("false", "[]"));
  RecordingShelf shelf(LoadWorkload(Folder("held")));
  EXPECT_EQ(shelf.Find({}), Folder("held"));
  EXPECT_EQ(shelf.Find({{}, true, false}), Folder("checkpointed"));
  EXPECT_EQ(shelf.Find({{}, false, true}), Folder("let-go"));
  EXPECT_EQ(shelf.Find({{}, true, true}), std::nullopt);
  Record("both", Options("true", "[]"));
  EXPECT_EQ(shelf.Find({{}, true, true}), std::nullopt);
  shelf.Forget();
  EXPECT_EQ(shelf.Find({{}, true, true}), Folder("both"));
}

TEST_F(RecordedSizesTest, CommandRecordsWithOtherOptions) {
  Record("m", Options("false", R"(["y", "z"])"),
         "python -m dcrecord 'my model.py:make' --hold y --hold z -o traces/m");
  const RecordingShelf plain(LoadWorkload(Folder("m")));
  EXPECT_EQ(
      plain.Command({{.batch = 4}, true, true}),
      "python -m dcrecord 'my model.py:make' --batch 4 --activation-checkpointing --hold none "
      "--name m-batch4-checkpointing-hold-none -o " +
          Folder("m-batch4-checkpointing-hold-none"));
  EXPECT_EQ(plain.Words({{}, {}, false})[3], "my model.py:make");
  Record("c", Options(R"(["layers.*"])", "[]"),
         "python -m dcrecord m --checkpoint 'layers.*' --activation-checkpointing -o traces/c");
  EXPECT_EQ(RecordingShelf(LoadWorkload(Folder("c"))).Command({{}, false, true}),
            "python -m dcrecord m --name c-without-checkpointing -o " +
                Folder("c-without-checkpointing"));
}

TEST_F(RecordedSizesTest, GraphWithoutCommandGivesNone) {
  EXPECT_THAT(Error("one", {.batch = 4}), Not(HasSubstr("This command")));
}

}  // namespace
}  // namespace dcsim
