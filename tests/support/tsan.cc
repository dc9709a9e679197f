// Debian's oneTBB is not instrumented: what its tasks hand over looks like a race.
extern "C" const char* __tsan_default_suppressions() {
  return "race:tbb::detail\ncalled_from_lib:libtbb.so\n";
}
