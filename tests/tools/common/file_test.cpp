#include "tools/common/file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <vector>
#include <zlib.h>

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/error_text.h"
#include "tests/tools/temporary_folder.h"

namespace dcsim {
namespace {

namespace fs = std::filesystem;

/// Writes bytes as they are, without the code under test.
void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string ReadError(const std::string& path) {
  return ErrorText([&path] { ReadFile(path); });
}

std::string WriteError(const std::string& path, const std::string& content) {
  try {
    WriteFile(path, content);
  } catch (const SystemError& error) {
    return error.what();
  }
  return "";
}

/// Text that does not compress to nothing.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += std::to_string(i * 7919 % 100'003) + "\n";
  }
  return text;
}

TEST(FileTest, TextComesBack) {
  const TemporaryFolder folder;
  const std::string text("one\ntwo\0three", 13);
  WriteFile(folder / "a.txt", text);
  EXPECT_EQ(ReadFile(folder / "a.txt"), text);
}

TEST(FileTest, CompressedTextComesBack) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.gz", LongText());
  EXPECT_EQ(ReadFile(folder / "a.gz"), LongText());
  EXPECT_LT(fs::file_size(folder / "a.gz"), LongText().size());
}

TEST(FileTest, EmptyFilesComeBack) {
  const TemporaryFolder folder;
  for (const std::string name : {"a.txt", "a.gz"}) {
    WriteFile(folder / name, "");
    EXPECT_EQ(ReadFile(folder / name), "");
  }
}

// No time stamp and no name inside: the same content is the same file.
TEST(FileTest, CompressedFilesAreReproducible) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.gz", "text");
  WriteFile(folder / "b.gz", "text");
  EXPECT_EQ(Get(folder / "a.gz"), Get(folder / "b.gz"));
}

TEST(FileTest, GzipMembersInARowAreOneText) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.gz", "one");
  WriteFile(folder / "b.gz", "two");
  Put(folder / "c.gz", Get(folder / "a.gz") + Get(folder / "b.gz"));
  EXPECT_EQ(ReadFile(folder / "c.gz"), "onetwo");
}

// Reading what is no such file

TEST(FileTest, MissingFileIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(ReadError(folder / "a"), folder / "a" + ": no such file");
}

TEST(FileTest, FolderIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(ReadError(folder.path()), folder.path() + ": expected a file, found a directory");
}

TEST(FileTest, NameInGzWithoutGzipIsAnError) {
  const TemporaryFolder folder;
  for (const std::string content : {"", "\x1f", "plain text"}) {
    Put(folder / "a.gz", content);
    EXPECT_EQ(ReadError(folder / "a.gz"), folder / "a.gz" + ": not a gzip file");
  }
}

class CutGzipTest : public testing::TestWithParam<std::size_t> {};

TEST_P(CutGzipTest, IsAnError) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.gz", LongText());
  const std::string whole = Get(folder / "a.gz");
  const std::size_t kept = GetParam() < whole.size() ? GetParam() : whole.size() - 1;
  Put(folder / "a.gz", whole.substr(0, kept));
  EXPECT_TRUE(ReadError(folder / "a.gz").starts_with(folder / "a.gz" + ": damaged gzip data: "));
}

// In the magic bytes' neighbourhood, in the header, in the data, in the last checksum.
INSTANTIATE_TEST_SUITE_P(Lengths, CutGzipTest, testing::Values(2, 5, 10, 11, 1000, SIZE_MAX));

TEST(FileTest, GarbageBehindTheMagicBytesIsAnError) {
  const TemporaryFolder folder;
  Put(folder / "a.gz", "\x1f\x8b garbage that is no deflate stream");
  EXPECT_EQ(ReadError(folder / "a.gz"),
            folder / "a.gz" + ": damaged gzip data: unknown compression method");
}

TEST(FileTest, FlippedBitIsAnError) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.gz", LongText());
  std::string bytes = Get(folder / "a.gz");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  Put(folder / "a.gz", bytes);
  EXPECT_TRUE(ReadError(folder / "a.gz").starts_with(folder / "a.gz" + ": damaged gzip data: "));
}

/// So many zeros, compressed a thousandfold.
void PutZeros(const std::string& path, std::int64_t count) {
  gzFile file = gzopen(path.c_str(), "wb1");
  const std::string block(1 << 20, '\0');
  for (std::int64_t left = count; left > 0; left -= 1 << 20) {
    gzwrite(file, block.data(), static_cast<unsigned>(std::min<std::int64_t>(left, 1 << 20)));
  }
  gzclose(file);
}

// A few hundred kilobytes on disk.
TEST(FileTest, FileThatGrowsBeyondTheLimitIsAnError) {
  const TemporaryFolder folder;
  PutZeros(folder / "a.gz", kLargestInput.count() + 1);
  EXPECT_EQ(ReadError(folder / "a.gz"),
            folder / "a.gz" + ": larger than 256 MiB uncompressed, the most that is read");
}

// No bytes on disk at all.
TEST(FileTest, LargeFileWithoutGzipIsAnError) {
  const TemporaryFolder folder;
  Put(folder / "a.json", "");
  fs::resize_file(folder / "a.json", std::uintmax_t{1} << 30);
  EXPECT_EQ(ReadError(folder / "a.json"),
            folder / "a.json" + ": larger than 256 MiB uncompressed, the most that is read");
}

TEST(FileTest, FileOfTheLimitIsRead) {
  const TemporaryFolder folder;
  PutZeros(folder / "a.gz", kLargestInput.count());
  EXPECT_EQ(static_cast<std::int64_t>(ReadFile(folder / "a.gz").size()), kLargestInput.count());
}

// Writing

TEST(FileTest, WriteReplacesTheOldFile) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.txt", "a longer old content");
  WriteFile(folder / "a.txt", "new");
  EXPECT_EQ(ReadFile(folder / "a.txt"), "new");
}

TEST(FileTest, WriteLeavesNothingElseBehind) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.txt", "text");
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"a.txt"});
}

TEST(FileTest, WriteIntoAMissingFolderNamesFileAndReason) {
  const TemporaryFolder folder;
  EXPECT_EQ(WriteError(folder / "missing/a.txt", "text"),
            "cannot write " + folder / "missing/a.txt" + ": No such file or directory");
}

TEST(FileTest, WriteOverAFolderChangesNothing) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  EXPECT_EQ(WriteError(folder / "a", "text"), "cannot write " + folder / "a" + ": Is a directory");
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"a"});
}

/// Files of this process may have this many bytes at most, as on a disk that is full.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  void (*old_handler_)(int);
  rlimit old_limit_{};
};

TEST(FileTest, WriteThatFailsHalfwayKeepsTheOldFile) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.txt", "old");
  std::string error;
  {
    const SmallDisk disk(4096);
    error = WriteError(folder / "a.txt", std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(error, "cannot write " + folder / "a.txt" + ": File too large");
  EXPECT_EQ(ReadFile(folder / "a.txt"), "old");
  EXPECT_EQ(folder.Names(), std::vector<std::string>{"a.txt"});
}

TEST(FileTest, FullDeviceIsReportedAndStaysADevice) {
  EXPECT_EQ(WriteError("/dev/full", "text"), "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(FileTest, NullDeviceTakesEverythingAndStaysADevice) {
  EXPECT_EQ(WriteError("/dev/null", "text"), "");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(FileTest, DashIsStandardOutput) {
  testing::internal::CaptureStdout();
  WriteFile("-", "text\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "text\n");
}

TEST(FileTest, FilesAndFoldersAreToldApart) {
  const TemporaryFolder folder;
  Put(folder / "a", "");
  EXPECT_TRUE(FileExists(folder / "a"));
  EXPECT_FALSE(IsDirectory(folder / "a"));
  EXPECT_TRUE(IsDirectory(folder.path()));
  EXPECT_FALSE(FileExists(folder / "b"));
}

std::string OutputError(const std::vector<OutputOption>& outputs) {
  return ErrorText([&] { CheckOutputs(outputs); });
}

TEST(FileTest, OutputsThatCannotBeAreRefusedBefore) {
  const TemporaryFolder folder;
  Put(folder / "read.json", "{}");
  ReadFile(folder / "read.json");
  Put(folder / "locked.json", "{}");
  fs::permissions(folder / "locked.json", fs::perms::owner_read);
  const std::string path = folder.path();
  EXPECT_EQ(OutputError({{"--json", path + "/none/a.json"}}),
            "--json " + path + "/none/a.json: no such folder " + path + "/none; make it first");
  EXPECT_EQ(OutputError({{"--json", path}}),
            "--json " + path + ": expected a file, found a folder");
  EXPECT_EQ(OutputError({{"--json", folder / "locked.json"}}),
            "--json " + path + "/locked.json: the file is read-only");
  EXPECT_EQ(OutputError({{"--json", folder / "a"}, {"--memory", path + "/./a"}}),
            "--memory " + path + "/./a: --json has the same name");
}

// Whatever its name: by a link, too.
TEST(FileTest, OutputsDoNotReplaceWhatWasRead) {
  const TemporaryFolder folder;
  Put(folder / "read.json", "{}");
  Put(folder / "other.json", "{}");
  ReadFile(folder / "read.json");
  fs::create_symlink(folder / "read.json", folder / "link.json");
  for (const char* name : {"read.json", "link.json"}) {
    EXPECT_EQ(OutputError({{"--save-plan", folder / name}}),
              "--save-plan " + (folder / name) +
                  ": this is one of the files that were read; name another one");
  }
  EXPECT_NO_THROW(CheckOutputs({{"--save-plan", folder / "other.json"}, {"--json", ""}}));
}

TEST(FileTest, OutputsMayBeStandardOutputOnceAndDevices) {
  EXPECT_NO_THROW(CheckOutputs({{"--json", "-"}, {"--memory", "/dev/null"}}));
  EXPECT_EQ(OutputError({{"--json", "-"}, {"--memory", "-"}}),
            "--memory -: --json has the same name");
}

TEST(FileTest, LinkThatLeadsNowhereIsNotLeftOut) {
  const TemporaryFolder folder;
  fs::create_symlink(folder / "gone", folder / "link");
  EXPECT_EQ(ErrorText([&] { FileExists(folder / "link"); }),
            folder / "link" + ": a link to " + (folder / "gone") + ", which leads nowhere");
  EXPECT_FALSE(FileExists(folder / "gone"));
}

TEST(FileTest, PipeWithoutWriterIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadError(folder / "pipe"), folder / "pipe" + ": a pipe to which nobody writes");
}

TEST(FileTest, PipeThatIsWrittenToIsRead) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { Put(folder / "pipe", LongText()); });
  EXPECT_EQ(ReadFile(folder / "pipe"), LongText());
  writer.join();
}

}  // namespace
}  // namespace dcsim
