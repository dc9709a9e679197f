// What a source needs of the prelude: everything that it reaches, nothing else.
#include <gtest/gtest.h>

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

TEST(NeededPrelude, AllOfItWhereAllIsNamed) {
  std::string whole;
  for (const EmbeddedFile& file : PreludeFiles()) whole += file.text;
  EXPECT_EQ(Text(whole), whole);
}

}  // namespace
}  // namespace umbra::codegen
