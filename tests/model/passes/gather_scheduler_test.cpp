// The list schedulers on graphs small enough to follow by hand. AGw gathers parameter w, RELw
// releases it, Rw reduces its gradient; P(w) are the gathers that w's last use needs; a gather is
// committed "full" (with all that its release needs) or "alone". Waits are left out of the texts.

#include "model/passes/deepcompile/gather_scheduler.h"

#include <map>

#include <gtest/gtest.h>

#include "model/base/text.h"

namespace dcsim {
namespace {

using enum DeepSpeedVersion;

PassNode NodeOf(PassNodeKind kind) {
  PassNode node;
  node.kind = kind;
  return node;
}

/// Builds a PassGraph by names. Inputs and parameters come first, then ops, then Output.
class GraphMaker {
 public:
  void Input(const std::string& name) { Add(name, NodeOf(PassNodeKind::kPlaceholder), {}); }

  /// Placeholder, gather and wait; ops name the parameter. Parameters are numbered as they come;
  /// `bytes` are both what it is ranked by and what its buffer takes.
  void Param(const std::string& name, std::int64_t bytes) {
    params_[name] = ParamId(params_.size());
    PassNode gather = NodeOf(PassNodeKind::kGather);
    gather.param = params_[name];
    gather.tensor_bytes = Bytes(bytes);
    gather.allocated_bytes = Bytes(bytes);
    gather.name = "allgather_ds_param_" + name;
    Add("in." + name, NodeOf(PassNodeKind::kPlaceholder), {});
    Add("AG" + name, gather, {"in." + name});
    PassNode wait = NodeOf(PassNodeKind::kWait);
    wait.aliases = true;
    wait.param = params_[name];
    Add("wait." + name, wait, {"AG" + name});
    values_[name] = values_["wait." + name];
  }

  /// An op, and behind it the releases of parameters that `releases` names, the nearest first.
  void Op(const std::string& name,
          const std::vector<std::string>& args,
          std::int64_t time_ns,
          const std::vector<std::string>& releases = {}) {
    PassNode op;
    op.time = Duration::FromNs(time_ns);
    Add(name, op, args);
    for (const std::string& param : releases) {
      PassNode release = NodeOf(PassNodeKind::kRelease);
      release.param = params_.at(param);
      release.uses = 1;
      Add("REL" + param, release, {name});
      values_[name] = values_["REL" + param];
    }
  }

  void Reduce(const std::string& param, const std::string& gradient) {
    PassNode reduce = NodeOf(PassNodeKind::kReduce);
    reduce.param = params_.at(param);
    Add("R" + param, reduce, {gradient});
    values_[gradient] = values_["R" + param];
  }

  void Output(const std::vector<std::string>& args) {
    Add("out", NodeOf(PassNodeKind::kOutput), args);
  }

  /// Names in scheduled order; inputs, waits and the output are left out.
  std::string Schedule(DeepSpeedVersion version, std::optional<std::int64_t> budget = {}) {
    const auto limit = budget ? std::optional(Bytes(*budget)) : std::nullopt;
    schedule_ = ScheduleGathers(graph_, version, limit);
    std::vector<std::string> words;
    for (const std::uint32_t node : schedule_.order) {
      const PassNodeKind kind = graph_.nodes[node].kind;
      if (kind != PassNodeKind::kPlaceholder && kind != PassNodeKind::kWait &&
          kind != PassNodeKind::kOutput) {
        words.push_back(names_[node]);
      }
    }
    return Join(words, " ");
  }

  std::size_t overflows() const { return schedule_.overflows; }

 private:
  void Add(const std::string& name, PassNode node, const std::vector<std::string>& args) {
    for (const std::string& arg : args) {
      node.args.push_back(values_.at(arg));
    }
    values_[name] = static_cast<std::uint32_t>(graph_.nodes.size());
    names_.push_back(name);
    graph_.nodes.push_back(std::move(node));
  }

  PassGraph graph_;
  std::vector<std::string> names_;               // by node
  std::map<std::string, std::uint32_t> values_;  // what users of a name get
  std::map<std::string, ParamId> params_;
  GatherSchedule schedule_;
};

// A backward of two layers. P(2) = {2}, P(1) = {1, 2}: gx comes from mm2.
// Round 1 takes 2 full: AG2 mm2 REL2. Reductions: R1 needed only AG2, so dw1 R1 follow. R2 needs no
// gather: 0.19.8 takes it here, and before R1 (graph order); 0.19.6 waits for a set to become
// empty, and R2's was from the start: it comes last, holding its inputs all the while.
// Round 2: 1 full.
TEST(GatherSchedulerTest, ReductionsThatNeedNoGatherComeLastOrAtOnce) {
  GraphMaker graph;
  graph.Input("go");
  graph.Input("x");
  graph.Param("2", 8);
  graph.Param("1", 8);
  graph.Op("mm2", {"go", "2"}, 1, {"2"});
  graph.Op("mm1", {"mm2", "1"}, 1, {"1"});
  graph.Op("dw2", {"go", "x"}, 1);
  graph.Reduce("2", "dw2");
  graph.Op("dw1", {"mm2", "x"}, 1);
  graph.Reduce("1", "dw1");
  graph.Output({"mm1", "dw2", "dw1"});
  EXPECT_EQ(graph.Schedule(kRelease0196), "AG2 mm2 REL2 dw1 R1 AG1 mm1 REL1 dw2 R2");
  EXPECT_EQ(graph.Schedule(kRelease0198), "AG2 mm2 REL2 dw2 R2 dw1 R1 AG1 mm1 REL1");
}

// Three products that need nothing else, of 8, 4 and 8 bytes, 3, 5 and 3 ns. 0.19.6 ranks them by
// bytes, time and name: b, a, c. 0.17.1 by time alone, and then as they come: c, a, b.
TEST(GatherSchedulerTest, BeforePr8033OnlyTheTimeUntilFreeIsCompared) {
  GraphMaker graph;
  graph.Input("x");
  graph.Param("c", 8);
  graph.Param("b", 4);
  graph.Param("a", 8);
  graph.Op("mmc", {"x", "c"}, 3, {"c"});
  graph.Op("mmb", {"x", "b"}, 5, {"b"});
  graph.Op("mma", {"x", "a"}, 3, {"a"});
  graph.Output({"mmc", "mmb", "mma"});
  EXPECT_EQ(graph.Schedule(kRelease0171), "AGc mmc RELc AGa mma RELa AGb mmb RELb");
  EXPECT_EQ(graph.Schedule(kRelease0196), "AGb mmb RELb AGa mma RELa AGc mmc RELc");
}

/// Three blocks h = norm_i(h, n_i); h = addmm_i(b_i, h, w_i): n 1 byte, b 2, w 50. Releases b, then
/// w.
GraphMaker ThreeBlocks() {
  GraphMaker graph;
  graph.Input("h");
  for (const std::string i : {"0", "1", "2"}) {
    graph.Param("n" + i, 1);
    graph.Param("w" + i, 50);
    graph.Param("b" + i, 2);
  }
  std::string h = "h";
  for (const std::string i : {"0", "1", "2"}) {
    graph.Op("norm" + i, {h, "n" + i}, 1, {"n" + i});
    h = "addmm" + i;
    graph.Op(h, {"b" + i, "norm" + i, "w" + i}, 1, {"b" + i, "w" + i});
  }
  graph.Output({h});
  return graph;
}

// n0 alone needs nothing else: full. Then b0 and w0 need each other: b0 until its release costs 50
// more bytes, w0 only 2: w0 alone. Now b0 needs nothing: full, which ends with RELb0. w0's release
// comes with n1's path, behind n1's gather. And so on.
TEST(GatherSchedulerTest, OfTwoThatNeedEachOtherTheOneWithFewerFurtherBytesComesFirst) {
  const std::string expected =
      "AGn0 norm0 RELn0 AGw0 AGb0 addmm0 RELb0 "
      "AGn1 RELw0 norm1 RELn1 AGw1 AGb1 addmm1 RELb1 "
      "AGn2 RELw1 norm2 RELn2 AGw2 AGb2 addmm2 RELb2 RELw2";
  GraphMaker graph = ThreeBlocks();
  EXPECT_EQ(graph.Schedule(kRelease0196), expected);
  EXPECT_EQ(graph.Schedule(kRelease0198), expected);
  // w + b = 52 bytes are the most that this holds.
  EXPECT_EQ(graph.Schedule(kRelease0198, 52), expected);
  EXPECT_EQ(graph.overflows(), 0U);
}

// 50 bytes. n0 full (live 0), w0 alone (live 50). From here nothing fits; the lowest peak wins:
//   n1 alone 51 (n2 too, but its release needs 55 further bytes, n1's 2) against b0 52;
//   n2 alone 52 against b0 and b1 53;
//   b0 until its release 54, live 52 behind it: w0's release comes later in the chain;
//   b1 54 either way, alone 54 live behind it, full 51: RELw0 comes before w1 is gathered;
//   b2 full likewise: 51 + 2 = 53.
// Five overflows and a peak of 54 bytes, where no budget at all needs 52.
TEST(GatherSchedulerTest, ATightBudgetHoistsDistantGathersAndOverflows) {
  GraphMaker graph = ThreeBlocks();
  EXPECT_EQ(graph.Schedule(kRelease0198, 50),
            "AGn0 norm0 RELn0 AGw0 AGn1 AGn2 AGb0 addmm0 RELb0 "
            "AGb1 RELw0 norm1 RELn1 AGw1 addmm1 RELb1 "
            "AGb2 RELw1 norm2 RELn2 AGw2 addmm2 RELb2 RELw2");
  EXPECT_EQ(graph.overflows(), 5U);
}

// Older releases know no budget.
TEST(GatherSchedulerTest, OnlyTheNewestReleaseMindsABudget) {
  GraphMaker graph = ThreeBlocks();
  for (const DeepSpeedVersion older : {kRelease0171, kRelease0196}) {
    const std::string without = graph.Schedule(older);
    EXPECT_EQ(graph.Schedule(older, 50), without);
  }
}

// |P(1)| = 1, but its 60 bytes do not fit 50; 2, which needs 1 as well, does: it is gathered alone,
// ahead of its turn. Then 1 overflows.
TEST(GatherSchedulerTest, WhereTheNearGatherDoesNotFitADistantOneComesFirst) {
  GraphMaker graph;
  graph.Input("x");
  graph.Param("1", 60);
  graph.Param("2", 10);
  graph.Op("mm1", {"x", "1"}, 1, {"1"});
  graph.Op("mm2", {"mm1", "2"}, 1, {"2"});
  graph.Output({"mm2"});
  EXPECT_EQ(graph.Schedule(kRelease0198, 50), "AG2 AG1 mm1 REL1 mm2 REL2");
  EXPECT_EQ(graph.overflows(), 1U);
  EXPECT_EQ(graph.Schedule(kRelease0198), "AG1 mm1 REL1 AG2 mm2 REL2");
}

/// Two products of one input each, and what they are ranked by.
struct Branch {
  std::string param;
  std::int64_t bytes;
  std::int64_t time_ns;
};

GraphMaker TwoBranches(const Branch& first, const Branch& second) {
  GraphMaker graph;
  graph.Input("x");
  graph.Param(first.param, first.bytes);
  graph.Param(second.param, second.bytes);
  graph.Op("mm" + first.param, {"x", first.param}, first.time_ns, {first.param});
  graph.Op("mm" + second.param, {"x", second.param}, second.time_ns, {second.param});
  graph.Op("sum", {"mm" + first.param, "mm" + second.param}, 1);
  graph.Output({"sum"});
  return graph;
}

// Both free without another gather: fewer bytes first, whatever they take; then less time; then the
// name, as a string.
TEST(GatherSchedulerTest, BytesThenTimeThenNameDecide) {
  for (const DeepSpeedVersion version : {kRelease0196, kRelease0198}) {
    EXPECT_EQ(TwoBranches({"a", 20, 1}, {"b", 10, 9}).Schedule(version),
              "AGb mmb RELb AGa mma RELa sum");
    EXPECT_EQ(TwoBranches({"a", 10, 9}, {"b", 10, 1}).Schedule(version),
              "AGb mmb RELb AGa mma RELa sum");
    EXPECT_EQ(TwoBranches({"primals_2", 10, 1}, {"primals_10", 10, 1}).Schedule(version),
              "AGprimals_10 mmprimals_10 RELprimals_10 AGprimals_2 mmprimals_2 RELprimals_2 sum");
  }
}

// a's last use needs nothing else, but a is used in first as well, which needs b: two gathers until
// it is free. c needs one, so c comes first though it is larger. b's last use needs a, so |P(b)| =
// 2 and a's tier comes before it. a full: AGa last, then what its releases need in graph order:
// that of first comes first, and with it AGb first RELb; last's own release ends the path.
TEST(GatherSchedulerTest, TheNumberOfGathersUntilReleaseDecidesFirst) {
  GraphMaker graph;
  graph.Input("x");
  graph.Param("a", 1);
  graph.Param("b", 1);
  graph.Param("c", 1000);
  graph.Op("first", {"a", "b"}, 1, {"b", "a"});
  graph.Op("last", {"x", "a"}, 1, {"a"});
  graph.Op("mmc", {"x", "c"}, 1, {"c"});
  graph.Output({"first", "last", "mmc"});
  const std::string expected = "AGc mmc RELc AGa last AGb first RELb RELa RELa";
  EXPECT_EQ(graph.Schedule(kRelease0198), expected);
  EXPECT_EQ(graph.Schedule(kRelease0196), expected);
}

// Tied embeddings: e is used by the first op and the last, so P(e) = {e, 1, 2} and all others need
// e until their release; nothing can be freed. P(1) = {e, 1} is smallest: 1 alone. Then e needs 10
// further bytes (2), 2 needs 100 (e): e alone. Only then 2 is free of others. So all are gathered
// before the first op.
TEST(GatherSchedulerTest, TiedEmbeddingsGatherTheWholeModelFirst) {
  GraphMaker graph;
  graph.Input("x");
  graph.Param("e", 100);
  graph.Param("1", 10);
  graph.Param("2", 10);
  graph.Op("embed", {"e", "x"}, 1, {"e"});
  graph.Op("mm1", {"embed", "1"}, 1, {"1"});
  graph.Op("mm2", {"mm1", "2"}, 1, {"2"});
  graph.Op("head", {"mm2", "e"}, 1, {"e"});
  graph.Output({"head"});
  for (const DeepSpeedVersion version : {kRelease0196, kRelease0198}) {
    EXPECT_EQ(graph.Schedule(version), "AG1 AGe AG2 embed RELe mm1 REL1 mm2 REL2 head RELe");
  }
}

// An output that needs no gather any more follows the path that gave it the last one: aux does not
// wait for the rest of the graph.
TEST(GatherSchedulerTest, OutputsFollowAsSoonAsTheirGathersAreIssued) {
  GraphMaker graph;
  graph.Input("x");
  graph.Param("1", 10);
  graph.Param("2", 10);
  graph.Op("mm1", {"x", "1"}, 1, {"1"});
  graph.Op("mm2", {"mm1", "2"}, 1, {"2"});
  graph.Op("aux", {"mm1", "x"}, 1);
  graph.Output({"mm2", "aux"});
  for (const DeepSpeedVersion version : {kRelease0196, kRelease0198}) {
    EXPECT_EQ(graph.Schedule(version), "AG1 mm1 REL1 aux AG2 mm2 REL2");
  }
}

// Without gathers nothing moves.
TEST(GatherSchedulerTest, AGraphWithoutGathersKeepsItsOrder) {
  GraphMaker graph;
  graph.Input("x");
  graph.Op("a", {"x"}, 1);
  graph.Op("b", {"x"}, 1);
  graph.Output({"b", "a"});
  EXPECT_EQ(graph.Schedule(kRelease0196), "a b");
  EXPECT_EQ(graph.Schedule(kRelease0198, 0), "a b");
}

}  // namespace
}  // namespace dcsim
