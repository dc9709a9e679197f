#include "compiler/codegen/names.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "compiler/graph/op.h"

namespace umbra::codegen {

namespace {

// Words with spaces between them.
template <typename Set>
void Insert(std::string_view words, Set* set) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    set->emplace(words.substr(at, end - at));
    at = end + 1;
  }
}

const std::set<std::string, std::less<>>& Keywords() {
  static const std::set<std::string, std::less<>> words = [] {
    std::set<std::string, std::less<>> set;
    Insert(
        "alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default "
        "delete do double else enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not nullptr operator or private protected public register return short signed "
        "sizeof static struct switch template this throw true try typedef typeid typename union unsigned using "
        "virtual void volatile while xor concept requires compl typeof restrict",
        &set);
    return set;
  }();
  return words;
}

// Keywords, words of the prelude, and the names that the emitter itself uses.
const std::set<std::string>& Reserved() {
  static const std::set<std::string> words = [] {
    std::set<std::string> set(Keywords().begin(), Keywords().end());
    Insert(
        "across add_product add_products add_products_by_line add_products_head advance apply args at "
        "away_from_first begin Bit Bits bits BitPacket BitsOfSize begin_sums block_all block_scan by_halves by_lane "
        "by_lane_head cast cast_mask choice_run column_all convert copy detail div_by divided Divisor divisor "
        "Divisors each_lane Elem end end_sums even_lanes even_odd_lanes exp2_beside_1 exp_at_most_0 exp_beside_1 "
        "fast_div fast_exp fast_sqrt fetch_pack fetched fill find_rows fold fold_columns from_bits gather "
        "gather_head gather_span HalfPacket head_bits in_groups in_order in_register IntOfSize iota is_aligned "
        "IsSame j join_group joined k keep kCallsForTiles KnownDivisor kGroup kIsHalf kMasks kMasksSpans "
        "kRegisterBytes kRowsAtOnce kWidth kZips lanes lanes_below lanes_between lanes_of_period larger "
        "launch_place launches_of linux load load_bytes load_columns load_columns_head load_even load_even_span "
        "load_head load_in_groups load_in_groups_head load_in_order load_masked load_of_pairs "
        "load_of_pairs_head load_pack load_pack_or load_repeated_span load_reversed load_reversed_span load_span "
        "load_table load_tile load_tile_head load_transposed load_transposed_head look_up main Mask Masked MaskOf Maximum "
        "maximum_at_once Minimum minimum_at_once Moments moments narrow no_less no_more NoReference odd_lanes "
        "pack pack_panel packet PacketOf Pair permuted_lanes place_in prefetch prefetch_column prefetch_lines "
        "prefetch_part prefetch_rows Product quotient_at quotient_run QuotientWalk ramp random_gaussian "
        "random_uniform Rebind repeat_columns reversed_lanes rows_ahead rows_at_once Scan scatter scatter_head simd "
        "smaller store store_columns store_columns_head store_head store_masked store_pack stream stream_columns "
        "stream_fence StreamedRow Sum Tile Traits transposed_tile transpose_tile umbra unix unzip warp_all warp_scan whole "
        "widen widened zip zip_high zip_low zip_tile",
        &set);
    for (std::string_view name : graph::OperatorNames()) set.emplace(name);
    for (const char* element : {"i8", "u8", "i16", "f16", "bf16", "i32", "i64", "f32", "f64"})
      for (const char* lanes : {"", "x2", "x4", "x8", "x16", "x32"})
        for (const char* group : {"", "w"}) set.insert(std::string(element) + lanes + group);
    for (int axis = 0; axis < 16; ++axis) {
      set.insert("i" + std::to_string(axis));
      set.insert("j" + std::to_string(axis));
      set.insert("n" + std::to_string(axis));
    }
    return set;
  }();
  return words;
}

// p0, p1, ...: what the computations of single lanes call their values.
bool IsOfLane(std::string_view name) {
  return name.size() > 1 && name[0] == 'p' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

bool IsKeyword(std::string_view word) { return Keywords().count(word) != 0; }

std::string Names::Make(std::string_view wanted) {
  std::string name;
  for (char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  const bool macro = name.rfind("UMBRA_", 0) == 0;
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_' || macro)
    name = "v" + name;
  std::string unique = name;
  for (int suffix = 1; IsOfLane(unique) || Reserved().count(unique) != 0 || !taken_.insert(unique).second; ++suffix)
    unique = name + "_" + std::to_string(suffix);
  return unique;
}

void Names::Leave(std::string_view words) { Insert(words, &taken_); }

}  // namespace umbra::codegen
