#define FIRST 5
