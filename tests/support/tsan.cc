// Debian's oneTBB is not instrumented. What its tasks call is not suppressed: runtime/handed_over.h says who waits for
// whom.
extern "C" const char* __tsan_default_suppressions() {
  return "race_top:tbb::detail\n"             // tasks, which its headers write and its library hands over
         "race:tbb::detail::d1::fold_tree\n"  // the tree that they are counted in, by atomics of libstdc++
         "called_from_lib:libtbb.so\n";       // what its library does itself
}
