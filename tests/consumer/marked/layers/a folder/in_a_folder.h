#define IN_A_FOLDER 4
