// Stands in for libnvrtc-builtins, of which NVRTC's stand-in wants nothing but that it can be opened.
extern "C" [[gnu::visibility("default")]] const int nvrtc_builtins_stand_in = 1;
