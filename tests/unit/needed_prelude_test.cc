// What a source needs of the prelude: everything that it reaches, nothing else.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "compiler/codegen/prelude.h"

namespace umbra::codegen {
namespace {

std::string Text(std::string_view source) {
  std::string text;
  for (const PreludeFile& file : NeededPrelude(source)) text += file.text;
  return text;
}

bool Has(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

TEST(NeededPrelude, KeepsWhatIsReachedThroughOthers) {
  const std::string text = Text("store(y, exp(load<f32x16>(x)));");
  EXPECT_TRUE(Has(text, "V exp(V x)"));
  EXPECT_TRUE(Has(text, "exp_parts(V x, Rest"));
  EXPECT_TRUE(Has(text, "V pow2("));
  EXPECT_TRUE(Has(text, "using packet ="));
  EXPECT_FALSE(Has(text, "V tanh(V x)"));
  EXPECT_FALSE(Has(text, "log_parts"));
  EXPECT_FALSE(Has(text, "scatter"));
}

TEST(NeededPrelude, CommentsNeedNothing) { EXPECT_FALSE(Has(Text("// tanh of x\n"), "V tanh(V x)")); }

TEST(NeededPrelude, MembersAreReachedByTheirType) {
  EXPECT_FALSE(Has(Text("finish(joined);"), "struct StreamedRow"));
  const std::string text = Text("StreamedRow<f32x16> row(y);");
  EXPECT_TRUE(Has(text, "void finish()"));
  EXPECT_TRUE(Has(text, "void stream("));
}

std::size_t Count(const std::string& text, std::string_view piece) {
  std::size_t count = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + piece.size())) ++count;
  return count;
}

// Whatever alone is named, conditions that are kept are kept to their ends.
TEST(NeededPrelude, ConditionsEnd) {
  const std::regex word("[A-Za-z_]\\w+");
  std::set<std::string> words;
  for (const EmbeddedFile& file : PreludeFiles()) {
    const std::string text(file.text);
    for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) words.insert(at->str());
  }
  EXPECT_GT(words.size(), 500u);
  for (const std::string& name : words) {
    const std::string text = Text(name);
    EXPECT_EQ(Count(text, "\n#if"), Count(text, "\n#endif")) << name;
  }
}

TEST(NeededPrelude, AllOfItWhereAllIsNamed) {
  std::string whole;
  for (const EmbeddedFile& file : PreludeFiles()) whole += file.text;
  EXPECT_EQ(Text(whole), whole);
}

}  // namespace
}  // namespace umbra::codegen
