// Writes the precompiled preludes into the folder that is given: a step of the build.
extern "C" int umbra_precompile_preludes(const char* folder);

int main(int argc, char** argv) { return argc == 2 ? umbra_precompile_preludes(argv[1]) : 2; }
